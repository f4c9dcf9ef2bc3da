//! Joins the slices of a buffered body as they arrive. A large body gets a memory mapping of its own: the kernel allocates
//! only the pages that are written, and frees all of them at the end. Buffers that grow would leave the allocator with
//! several times the memory of the buffered bodies.

use bytes::{Bytes, BytesMut};
use memmap2::MmapMut;

use crate::limits;

/// Slices that are being joined. A single one is not copied.
pub(super) struct Slices {
    joined: Joined,
    len: usize,
    len_max: usize,
}

enum Joined {
    One(Bytes),
    Heap(BytesMut),
    Mapped(MmapMut),
}

impl Slices {
    /// No slices yet; at most `len_max` bytes in all.
    pub(super) fn new(len_max: usize) -> Self {
        Self { joined: Joined::One(Bytes::new()), len: 0, len_max }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, slice: Bytes) {
        if self.len == 0 {
            self.len = slice.len();
            self.joined = Joined::One(slice);
            return;
        }
        let len = self.len + slice.len();
        if len > limits::HEAP_BODY_BYTES && !matches!(self.joined, Joined::Mapped(_)) {
            self.map();
        }
        match &mut self.joined {
            Joined::Mapped(mapped) if len <= mapped.len() => mapped[self.len..len].copy_from_slice(&slice),
            Joined::Heap(heap) => heap.extend_from_slice(&slice),
            joined => *joined = Joined::Heap([joined.bytes(self.len), &slice].concat()[..].into()),
        }
        self.len = len;
    }

    /// Moves the bytes so far to a mapping; if the kernel has none, they stay.
    fn map(&mut self) {
        if let Ok(mut mapped) = MmapMut::map_anon(self.len_max.max(self.len)) {
            mapped[..self.len].copy_from_slice(self.joined.bytes(self.len));
            self.joined = Joined::Mapped(mapped);
        }
    }

    pub(super) fn join(self) -> Bytes {
        match self.joined {
            Joined::One(slice) => slice,
            Joined::Heap(heap) => heap.freeze(),
            Joined::Mapped(mapped) => Bytes::from_owner(mapped).slice(..self.len),
        }
    }
}

impl Joined {
    fn bytes(&self, len: usize) -> &[u8] {
        match self {
            Self::One(slice) => slice,
            Self::Heap(heap) => heap,
            Self::Mapped(mapped) => &mapped[..len],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_slices_equal_the_body() {
        let body: Vec<u8> = (0..3 * limits::HEAP_BODY_BYTES).map(|n| (n % 251) as u8).collect();
        for size in [1000, 65_536, limits::HEAP_BODY_BYTES - 1, limits::HEAP_BODY_BYTES + 1, body.len()] {
            for len_max in [body.len(), 2 * body.len(), limits::HEAP_BODY_BYTES + 1] {
                let mut slices = Slices::new(len_max);
                body.chunks(size).for_each(|slice| slices.push(Bytes::copy_from_slice(slice)));
                assert_eq!(slices.len(), body.len());
                assert!(slices.join() == body, "{size} {len_max}");
            }
        }
    }

    #[test]
    fn small_slices_use_little_more_than_their_bytes() {
        let mut slices = Slices::new(1 << 20);
        for _ in 0..100_000 {
            slices.push(Bytes::from_static(b"x"));
        }
        let Joined::Heap(heap) = &slices.joined else { panic!("the body is not on the heap") };
        assert!(heap.capacity() <= 2 * 100_000);
        assert_eq!(slices.join().len(), 100_000);
    }

    #[test]
    fn large_bodies_get_a_mapping() {
        let mut slices = Slices::new(1 << 20);
        (0..4).for_each(|_| slices.push(Bytes::from(vec![1; 64 << 10])));
        assert!(matches!(slices.joined, Joined::Mapped(_)));
    }

    #[test]
    fn a_single_slice_is_not_copied() {
        let slice = Bytes::from(vec![1, 2, 3]);
        let at = slice.as_ptr();
        let mut slices = Slices::new(3);
        slices.push(slice);
        assert_eq!(slices.join().as_ptr(), at);
    }
}
