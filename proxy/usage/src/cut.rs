//! The cuts that the filter sets for the editor. Offsets count from the start of the body, as in
//! [`scan::Extent`].

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The position of the frame.
    pub frame: (u64, u64),
    /// The part of the frame.
    pub part: Part,
}

/// The part of a frame that is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole event is removed.
    Event,
    /// This member is removed, from its key's quote to its value's brace.
    Member(u64, u64),
    /// The word `true` at this position becomes `false`.
    Flag(u64, u64),
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

    /// Holds the bytes from this position on: the frame they belong to may have to be removed.
    pub fn hold(&mut self, from: Option<u64>) {
        self.hold = from;
    }
}
