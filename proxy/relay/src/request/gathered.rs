//! A request body that was buffered because a decision depends on it.

use bytes::Bytes;

/// The result of buffering a body.
pub(crate) enum Gathered {
    /// The whole body. Trailers may follow it, which do not protect its bytes.
    Whole(Bytes),
    /// The whole body, but its trailers protect its bytes: it is forwarded unchanged.
    Sealed,
    /// It is too large: it is forwarded as it arrives.
    Not,
    /// There was no memory for it, or it was silent while there was none for another.
    Crowded,
}
