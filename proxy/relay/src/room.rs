//! Room that workers share, such as memory for request bodies that are gathered to be edited: one number
//! for all, taken and given back with each such request. Who finds it full does without.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What may be taken together: bytes, or whatever is counted.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// A part of the room; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    room: Room,
    bytes: usize,
}

impl Room {
    /// Room for `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { taken: Arc::default(), most }
    }

    /// A part of so many bytes, if there is room for them.
    pub(crate) fn room_for(&self, bytes: usize) -> Option<Share> {
        let mut share = self.share();
        share.grow(bytes).then_some(share)
    }

    /// An empty part of it.
    pub(crate) fn share(&self) -> Share {
        Share { room: self.clone(), bytes: 0 }
    }
}

impl Share {
    /// Takes `bytes` more; false, and nothing is taken, if there is no room for them.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let taken = self.room.taken.fetch_add(bytes, Ordering::Relaxed);
        if taken.saturating_add(bytes) > self.room.most {
            self.room.taken.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.bytes += bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let room = Room::new(10);
        let mut one = room.share();
        assert!(one.grow(4) && one.grow(4));
        let mut other = room.share();
        assert!(!other.grow(3) && other.grow(2));
        drop(one);
        assert!(other.grow(8) && !other.grow(1));
    }
}
