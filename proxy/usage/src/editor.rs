//! Removes marked ranges from a passing body, and holds back bytes that may have to be removed. The relay
//! decides when they were held long enough.
//!
//! Marks are not trusted. A mark outside the available bytes, or around other content than it claims, cuts
//! nothing and is counted.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::block;
use crate::cut::{Cut, Cuts};

/// The limit of held bytes. The longest recorded usage events have less than 1 KiB; a longer event has an
/// answer's content, whose usage member (`continuous`) then stays.
pub const HOLD_MAX_BYTES: usize = 64 * 1024;

/// The limit of the time that bytes are held. The relay measures it and calls [`Editor::release`]; a server
/// that writes an event in two parts does so within a few milliseconds.
pub const HOLD_TIME: Duration = Duration::from_millis(50);

const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Edits one body.
#[derive(Default)]
pub struct Editor {
    held: Vec<u8>,
    /// The position in the body of the first byte that was not passed on.
    position: u64,
    /// The removed range ended in CR: a following LF belongs to it.
    after_cr: bool,
    missed: u64,
}

/// Prints the number of held bytes but not the bytes: they are an answer's text.
impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Editor")
            .field("held", &self.held.len())
            .field("position", &self.position)
            .field("missed", &self.missed)
            .finish_non_exhaustive()
    }
}

impl Editor {
    /// An editor for one body.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next slice and returns the bytes to pass on: the slice itself if nothing changes, or new
    /// bytes, possibly none. Empties `cuts`.
    #[inline]
    pub fn edit(&mut self, slice: Bytes, cuts: &mut Cuts) -> Bytes {
        if self.pass(slice.len(), cuts) { slice } else { self.edit_marked(slice, cuts) }
    }

    /// Returns true if the next slice, of `len` bytes, passes unchanged: then it counts as passed on.
    #[inline]
    pub fn pass(&mut self, len: usize, cuts: &Cuts) -> bool {
        let passes = cuts.cuts.is_empty() && cuts.hold.is_none() && self.held.is_empty() && !self.after_cr;
        if passes {
            self.position += len as u64;
        }
        passes
    }

    /// Returns the held bytes: their time is over, the body ended, or an error occurred. The rest of their
    /// event passes unchanged.
    pub fn release(&mut self) -> Bytes {
        self.position += self.held.len() as u64;
        Bytes::from(std::mem::take(&mut self.held))
    }

    /// The held bytes.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// The position of the held bytes in the body.
    pub fn held_from(&self) -> Option<u64> {
        self.is_holding().then_some(self.position)
    }

    /// Returns true if bytes are held.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Edits that were not made, because their bytes had passed or the hold was full.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Removes the one member that is to be removed from most marked slices; `None` for any other slice.
    fn without_member(&mut self, slice: &Bytes, cuts: &mut Cuts) -> Option<Bytes> {
        let ([Cut::Member(from, to)], None, true, false) =
            (&cuts.cuts[..], cuts.hold, self.held.is_empty(), self.after_cr)
        else {
            return None;
        };
        let at = |offset: u64| usize::try_from(offset.checked_sub(self.position)?).ok();
        let (from, to) = (at(*from)?, at(*to)?);
        let member = slice.get(from..to)?;
        if !block::is_member(member) || memchr::memchr2(b'\n', b'\r', member).is_some() {
            return None;
        }
        let mut out = Vec::with_capacity(slice.len() - member.len());
        out.extend_from_slice(&slice[..from]);
        out.extend_from_slice(&slice[to..]);
        cuts.cuts.clear();
        self.position += slice.len() as u64;
        Some(Bytes::from(out))
    }

    fn edit_marked(&mut self, slice: Bytes, cuts: &mut Cuts) -> Bytes {
        if let Some(edited) = self.without_member(&slice, cuts) {
            return edited;
        }
        let hold = cuts.hold.take();
        let bytes = if self.held.is_empty() {
            slice
        } else {
            self.held.extend_from_slice(&slice);
            // Without a cut, a held event that continues stays held up to the limit.
            let goes_on = cuts.cuts.is_empty() && hold.is_some_and(|from| from <= self.position);
            if goes_on && self.held.len() <= HOLD_MAX_BYTES {
                return Bytes::new();
            }
            Bytes::from(std::mem::take(&mut self.held))
        };
        let mut draft = Draft { bytes: &bytes, out: Vec::new(), from: 0, cut: false };
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            if bytes[0] == b'\n' {
                draft.remove(0, 1);
            }
        }
        for cut in cuts.cuts.drain(..) {
            if draft.make(cut, self.position).is_none() {
                self.missed += 1;
            }
        }
        let Draft { mut out, from, cut, .. } = draft;
        self.after_cr |= cut && from == bytes.len() && bytes.last() == Some(&b'\r');

        let hold = hold.and_then(|at| usize::try_from(at.checked_sub(self.position)?).ok());
        let to = match hold {
            // Bytes are held from `at` to the end, if they are all available and not too many.
            Some(at) if at >= from && at < bytes.len() && bytes.len() - at <= HOLD_MAX_BYTES => at,
            _ => bytes.len(),
        };
        self.held.extend_from_slice(&bytes[to..]);
        self.position += to as u64;
        if !cut {
            return bytes.slice(..to);
        }
        out.extend_from_slice(&bytes[from..to]);
        Bytes::from(out)
    }
}

/// An edit in progress.
struct Draft<'a> {
    bytes: &'a [u8],
    /// The remaining bytes of `bytes[..from]`.
    out: Vec<u8>,
    from: usize,
    /// A range was removed.
    cut: bool,
}

impl Draft<'_> {
    /// Makes one cut; `position` is that of the bytes in the body. `None` if it cannot be made.
    fn make(&mut self, cut: Cut, position: u64) -> Option<()> {
        let at = |offset: u64| usize::try_from(offset.checked_sub(position)?).ok();
        let (Cut::Event(from, to) | Cut::Member(from, to) | Cut::Flag(from, to)) = cut;
        let (mut from, to) = (at(from)?, at(to)?);
        match cut {
            Cut::Event(start, _) => {
                if start == 0 && self.bytes.starts_with(BYTE_ORDER_MARK) {
                    from = BYTE_ORDER_MARK.len();
                }
                from += block::last_event(self.bytes.get(from..to)?)?;
                if from < self.from {
                    return None;
                }
                let event = &self.bytes[from..to];
                block::lines(event)
                    .filter(|line| !line.is_comment(event))
                    .for_each(|line| self.remove(from + line.from, from + line.to));
                if event.ends_with(b"\r") && self.bytes.get(to) == Some(&b'\n') {
                    self.remove(to, to + 1);
                }
            }
            _ if from < self.from => return None,
            Cut::Member(..) => {
                let member = self.bytes.get(from..to)?;
                if !block::is_member(member) {
                    return None;
                }
                // Only payload is removed: line ends, field names and comments between stay.
                block::payloads(member).for_each(|part| self.remove(from + part.start, from + part.end));
            }
            Cut::Flag(..) => {
                if self.bytes.get(from..to)? != b"true" {
                    return None;
                }
                self.remove(from, to);
                self.out.extend_from_slice(b"false");
            }
        }
        Some(())
    }

    fn remove(&mut self, from: usize, to: usize) {
        if !self.cut {
            self.cut = true;
            self.out.reserve(self.bytes.len() - (to - from));
        }
        self.out.extend_from_slice(&self.bytes[self.from..from]);
        self.from = to;
    }
}
