//! A message of the client that a budget judges before it goes upstream, in the frames in which it came.

use std::sync::Arc;

use crate::capacity::Permit;
use crate::holder::Holder;
use crate::limits;
use crate::state::WorkerState;

/// The frames of one message, of at most [`limits::GATHERED_BYTES`].
pub(super) struct Withheld {
    bytes: Vec<u8>,
    memory: Permit,
}

impl Withheld {
    /// No bytes yet; their memory is that of buffered request bodies.
    pub(super) fn new(worker: &WorkerState, holder: Option<Arc<Holder>>) -> Self {
        Self { bytes: Vec::new(), memory: worker.capacities.gathered_bytes.permit(holder) }
    }

    /// Adds bytes; returns false if they are too many, or if there is no memory for them.
    pub(super) fn add(&mut self, bytes: &[u8]) -> bool {
        let has_room =
            self.bytes.len() + bytes.len() <= limits::GATHERED_BYTES && self.memory.grow(bytes.len());
        if has_room {
            self.bytes.extend_from_slice(bytes);
        }
        has_room
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
