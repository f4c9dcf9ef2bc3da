//! The cuts that the filter sets for the editor. Offsets count from the start of the body, as in
//! [`scan::Extent`].

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The event of the frame at this range is removed.
    Event(u64, u64),
    /// The member at this range is removed, as in [`scan::UsageMember`].
    Member(u64, u64),
    /// The word `true` at this range becomes `false`.
    Flag(u64, u64),
}

impl Cut {
    /// Its start.
    pub(crate) fn from(self) -> u64 {
        let (Self::Event(from, _) | Self::Member(from, _) | Self::Flag(from, _)) = self;
        from
    }
}

/// The cuts, in the order of the bytes, and the position from which bytes are held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    pub(crate) cuts: Vec<Cut>,
    pub(crate) hold: Option<u64>,
}

impl Cuts {
    /// Marks without cuts and holds.
    pub const fn new() -> Self {
        Self { cuts: Vec::new(), hold: None }
    }

    /// Adds a change.
    pub fn cut(&mut self, cut: Cut) {
        self.cuts.push(cut);
    }

    /// Holds the bytes from this position on: the frame they belong to may have to be removed, or a member of it.
    pub fn hold(&mut self, from: Option<u64>) {
        self.hold = from;
    }
}
