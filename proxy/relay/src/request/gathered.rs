//! A request body that was buffered because a decision depends on it.

use bytes::Bytes;

/// The result of buffering a body.
pub(crate) enum Gathered {
    /// The whole body. If it has trailers, they contain no digest or signature of it.
    Whole(Bytes),
    /// The whole body, but its trailers contain a digest or a signature of it: it is forwarded unchanged.
    Sealed,
    /// The body is too large to be buffered: it is forwarded as it arrives.
    TooLarge,
    /// There was no memory for it, or its client was silent while there was none for another body.
    NoMemory,
}
