//! What the watch tells the editor about the bytes at hand. Offsets count the body's bytes from its
//! beginning, as in [`scan::Extent`].

/// Something to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where the frame stands.
    pub frame: (u64, u64),
    /// The part of it.
    pub part: Part,
}

/// The part of a frame that is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole event goes.
    Event,
    /// This member goes, from its key's quote to its value's brace.
    Member(u64, u64),
    /// The word `true` that stands here becomes `false`.
    Flag(u64, u64),
}

/// The ranges to cut, in the order of the bytes, and the position from which bytes are held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub(crate) cuts: Vec<Cut>,
    pub(crate) hold: Option<u64>,
}

impl Marks {
    /// Nothing to do.
    pub const fn new() -> Self {
        Self { cuts: Vec::new(), hold: None }
    }

    /// Something is to be taken out.
    pub fn cut(&mut self, cut: Cut) {
        self.cuts.push(cut);
    }

    /// The bytes from here on are not to be given away yet: what they belong to may have to go.
    pub fn hold(&mut self, from: Option<u64>) {
        self.hold = from;
    }
}
