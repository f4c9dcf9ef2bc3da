//! A message of the client, with its frames, that a budget checks before it goes upstream.

use std::sync::Arc;

use bytes::Bytes;

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
}

/// Bytes on their way upstream, and the memory of a judged message among them.
struct Released {
    bytes: Vec<u8>,
    _memory: Permit,
}

impl AsRef<[u8]> for Released {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A slice of the client's bytes on its way upstream.
pub(super) struct Onward<'a> {
    bytes: &'a [u8],
    /// The number of bytes that were read.
    pub(super) at: usize,
    /// The number of bytes whose way is decided: upstream, withheld, or discarded.
    decided: usize,
    /// The bytes that go upstream so far, once they may differ from the slice.
    instead: Option<Vec<u8>>,
    /// The memory of the longest message in them: the others are parts of the slice.
    memory: Option<Permit>,
}

impl<'a> Onward<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, decided: 0, instead: None, memory: None }
    }

    /// Lets the bytes that were read go upstream.
    pub(super) fn pass(&mut self) {
        let passed = &self.bytes[self.decided..self.at];
        self.instead.get_or_insert_default().extend_from_slice(passed);
        self.decided = self.at;
    }

    /// Lets a judged message go upstream. Its memory is free once it is written.
    pub(super) fn release(&mut self, Withheld { bytes, memory }: Withheld) {
        match &mut self.instead {
            Some(instead) if !instead.is_empty() => instead.extend(bytes),
            instead => *instead = Some(bytes),
        }
        self.memory.get_or_insert(memory);
    }

    /// Adds the bytes that were read to `withheld`; returns false if it has no room.
    pub(super) fn withhold(&mut self, withheld: &mut Withheld) -> bool {
        self.instead.get_or_insert_default();
        let has_room = withheld.add(&self.bytes[self.decided..self.at]);
        if has_room {
            self.decided = self.at;
        }
        has_room
    }

    /// Returns the bytes that go upstream so far: the others are withheld, or discarded.
    pub(super) fn decided(self) -> Bytes {
        Self::onward(self.instead.unwrap_or_default(), self.memory)
    }

    /// Returns the bytes that go upstream, with the undecided ones; `None` if they are the slice.
    pub(super) fn whole(self) -> Option<Bytes> {
        let mut instead = self.instead?;
        instead.extend_from_slice(&self.bytes[self.decided..]);
        Some(Self::onward(instead, self.memory))
    }

    fn onward(bytes: Vec<u8>, memory: Option<Permit>) -> Bytes {
        match memory {
            Some(_memory) => Bytes::from_owner(Released { bytes, _memory }),
            None => bytes.into(),
        }
    }
}
