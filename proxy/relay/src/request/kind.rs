//! The facts of a request's head by which a gate refuses it.

/// The facts of a request's head by which a gate refuses it.
#[derive(Clone, Copy)]
pub(crate) struct RequestKind {
    /// It starts detached work.
    pub(crate) is_batch: bool,
    /// No known endpoint takes its method.
    pub(crate) is_unusual: bool,
}
