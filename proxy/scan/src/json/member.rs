//! The members of one value that an editor may remove or change: their ranges in the body.

/// The number of such members.
pub(super) const MEMBERS: usize = 4;

/// The ranges of the value's last member of each kind.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// The start of the last member of any kind: the comma before it, or the quote of an object's first key.
    pub(super) from: u64,
    /// The start of the last member that is its object's first.
    first: u64,
    /// Allocated with the first such member, which most values lack, and kept for later values.
    found: Option<Box<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    spans: [Span; MEMBERS],
    /// The kind of the last member that ended as its object's first.
    ended_first: usize,
}

/// The range of a member; its start and end are 0 before they are known.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    from: u64,
    to: u64,
    is_first: bool,
}

impl Members {
    /// Forgets the value.
    pub(super) fn clear(&mut self) {
        if let Some(found) = &mut self.found {
            **found = Found::default();
        }
    }

    /// Begins an object's first member, whose key's quote is at `from`.
    pub(super) fn begin_first(&mut self, from: u64) {
        (self.from, self.first) = (from, from);
    }

    /// Begins the value of a member of this kind.
    pub(super) fn begin(&mut self, kind: usize) {
        let span = Span { from: self.from, to: 0, is_first: self.from == self.first };
        self.found.get_or_insert_default().spans[kind] = span;
    }

    /// Ends the value of such a member. Returns true if the member is its object's first: it lasts until the next key.
    pub(super) fn end(&mut self, kind: usize, to: u64) -> bool {
        let Some(found) = &mut self.found else { return false };
        found.ended_first = kind;
        found.spans[kind].to = to;
        found.spans[kind].is_first
    }

    /// Ends such a member at the next key.
    pub(super) fn end_first(&mut self, key: u64) {
        if let Some(found) = &mut self.found {
            found.spans[found.ended_first].to = key;
        }
    }

    /// Sets the range of a kind.
    pub(super) fn set(&mut self, kind: usize, from: u64, to: u64) {
        self.found.get_or_insert_default().spans[kind] = Span { from, to, is_first: false };
    }

    /// The start of the last member of this kind, if its value has begun.
    pub(super) fn start(&self, kind: usize) -> Option<u64> {
        self.found.as_ref().map(|found| found.spans[kind].from).filter(|from| *from > 0)
    }

    /// The range of the last member of this kind, if it has ended.
    pub(super) fn span(&self, kind: usize) -> Option<(u64, u64)> {
        let Span { from, to, .. } = self.found.as_ref()?.spans[kind];
        (to > 0).then_some((from, to))
    }
}
