//! The way a response body can be read. Its head or its first byte determines it.

/// The way a response body can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Frame by frame, as it is generated.
    Frames,
    /// As one value, complete at the end.
    Whole,
    /// Unreadable: the body is encoded, or of an unknown type. Only its times are known.
    Unknown,
}
