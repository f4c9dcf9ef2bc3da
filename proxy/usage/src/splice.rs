//! An edit of a body that is all there: a few places where bytes are replaced or inserted. The rest
//! is handed on as slices of the original, uncopied.

use bytes::Bytes;

/// Places in one edit. A question takes at most three: of the usage options one flag overridden and one
/// inserted, and the flag of the timings.
const PLACES: usize = 3;

/// An edit of one body, in the order of its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Splices {
    list: [Splice; PLACES],
    len: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Splice {
    /// Offset in the original.
    at: usize,
    /// Bytes of the original that go.
    remove: usize,
    insert: &'static [u8],
}

impl Splices {
    /// Adds one; they may come in any order, and must not overlap. Insertions at one place keep theirs.
    pub(crate) fn add(&mut self, at: usize, remove: usize, insert: &'static [u8]) {
        self.list[self.len] = Splice { at, remove, insert };
        self.len += 1;
        self.list[..self.len].sort_by_key(|splice| splice.at);
    }

    /// The edited body in parts, none of them empty: slices of `body` with the insertions between.
    /// `body` must be the one the edit was made for; of any other, what does not fit is left out.
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

    /// Bytes by which the body grows.
    pub fn delta_len(&self) -> i64 {
        let delta = |splice: &Splice| splice.insert.len() as i64 - splice.remove as i64;
        self.list[..self.len].iter().map(delta).sum()
    }

    /// The edited length of a body of `old` bytes: the new `Content-Length`.
    pub fn new_len(&self, old: usize) -> usize {
        old.saturating_add_signed(self.delta_len() as isize)
    }
}
