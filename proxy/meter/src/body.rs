//! How a response body can be read, which its head or its first byte says.

/// How a response body can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Frame by frame, as it is generated.
    Frames,
    /// As one value at the end.
    Whole,
    /// Not at all: it is compressed, or of no known kind. Only its times are known.
    Unseen,
}
