//! The buffers of one worker.

use crate::wire::Buffers;

/// The buffers of one worker.
pub(crate) struct Http1 {
    pub(crate) buffers: Buffers,
}

impl Http1 {
    /// The state of a worker without connections.
    pub(crate) fn new() -> Self {
        Self { buffers: Buffers::new() }
    }
}
