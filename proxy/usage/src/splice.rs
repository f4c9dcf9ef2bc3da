//! An edit of a complete body: a few positions where bytes are replaced or inserted. The rest passes on as
//! slices of the original, without a copy.

use bytes::Bytes;

/// The limit of changes in one edit: of the usage options one flag replaced and one inserted, and the flag
/// of the timings.
const MAX_SPLICES: usize = 3;

/// An edit of one body, in the order of its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Splices {
    list: [Splice; MAX_SPLICES],
    len: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Splice {
    /// Offset in the original.
    at: usize,
    /// Bytes of the original to remove.
    remove: usize,
    insert: &'static [u8],
}

impl Splices {
    /// Adds a change. Changes may come in any order and must not overlap; insertions at one position keep
    /// their order.
    pub(crate) fn add(&mut self, at: usize, remove: usize, insert: &'static [u8]) {
        self.list[self.len] = Splice { at, remove, insert };
        self.len += 1;
        self.list[..self.len].sort_by_key(|splice| splice.at);
    }

    /// Returns the edited body in non-empty parts: slices of `body` with the insertions between. `body` must
    /// be the one the edit was made for; changes that do not fit another body are left out.
    pub fn apply(&self, body: &Bytes) -> impl Iterator<Item = Bytes> {
        let body = body.clone();
        let Self { list, len } = *self;
        let parts = move |number: usize| {
            let (before, here) = (number.checked_sub(1).map(|n| list[n]), list[..len].get(number));
            let from = before.map_or(0, |splice| splice.at + splice.remove).min(body.len());
            let to = here.map_or(body.len(), |splice| splice.at.clamp(from, body.len()));
            [body.slice(from..to), Bytes::from_static(here.map_or(b"", |splice| splice.insert))]
        };
        (0..=len).flat_map(parts).filter(|part| !part.is_empty())
    }

    /// The growth of the body in bytes.
    pub fn delta_len(&self) -> i64 {
        let delta = |splice: &Splice| splice.insert.len() as i64 - splice.remove as i64;
        self.list[..self.len].iter().map(delta).sum()
    }

    /// The edited length of a body of `old` bytes: the new `Content-Length`.
    pub fn new_len(&self, old: usize) -> usize {
        old.saturating_add_signed(self.delta_len() as isize)
    }
}
