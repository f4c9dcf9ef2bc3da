//! What the watch tells the editor about the bytes at hand. Offsets count the body's bytes from its
//! beginning, as in [`scan::Extent`].

/// Something to be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where the frame stands.
    pub frame: (u64, u64),
    /// The member that goes, from its key's quote to its value's brace; `None` if the whole event
    /// goes.
    pub member: Option<(u64, u64)>,
}

/// What to cut, in the order of the bytes, and from where to hold. At most one cut for each frame
/// of one slice.
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
