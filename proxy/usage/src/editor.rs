//! The editor: takes what is marked out of a body that passes, and holds the bytes that may still
//! have to go. It owns held bytes and nothing else; whether they have waited long enough is for the
//! relay to say.
//!
//! Marks are not trusted. One that does not lie within the bytes at hand, or does not stand around
//! what it should, cuts nothing and is counted.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::block;
use crate::mark::{Cut, Marks, Part};

/// Bytes held at most. The longest usage events recorded have under 1 KiB; what is longer is an
/// answer's content, whose usage member (`continuous`) then stays in.
pub const HOLD_BYTES: usize = 64 * 1024;

/// How long bytes may be held. The relay keeps the time and calls [`Editor::release`]; a server
/// that writes an event in two pieces does so within a few milliseconds.
pub const HOLD_TIME: Duration = Duration::from_millis(50);

const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Edits one body.
#[derive(Default)]
pub struct Editor {
    held: Vec<u8>,
    /// Where the first byte that was not given away yet stands in the body.
    position: u64,
    /// What was cut ended in CR: an LF that comes next belongs to it.
    after_cr: bool,
    missed: u64,
}

/// Says how much is held, and not what: it is an answer's text.
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

    /// Takes the next slice and gives away what may go: the slice itself if there is nothing to do,
    /// or something new, which may be empty. `marks` are emptied.
    #[inline]
    pub fn edit(&mut self, slice: Bytes, marks: &mut Marks) -> Bytes {
        if marks.cuts.is_empty() && marks.hold.is_none() && self.held.is_empty() && !self.after_cr {
            self.position += slice.len() as u64;
            return slice;
        }
        self.edit_marked(slice, marks)
    }

    /// Gives back what is held: its time is over, or the body is, or something went wrong. What
    /// comes of the same event later passes untouched.
    pub fn release(&mut self) -> Bytes {
        self.position += self.held.len() as u64;
        Bytes::from(std::mem::take(&mut self.held))
    }

    /// The bytes that are held.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// Where the bytes that are held begin in the body.
    pub fn held_from(&self) -> Option<u64> {
        self.is_holding().then_some(self.position)
    }

    /// Whether bytes are held.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Edits that could not be made, because their bytes had gone or the hold was full.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn edit_marked(&mut self, slice: Bytes, marks: &mut Marks) -> Bytes {
        let hold = marks.hold.take();
        let bytes = if self.held.is_empty() {
            slice
        } else {
            self.held.extend_from_slice(&slice);
            let goes_on = marks.cuts.is_empty() && hold.is_some_and(|from| from <= self.position);
            if goes_on && self.held.len() <= HOLD_BYTES {
                return Bytes::new();
            }
            Bytes::from(std::mem::take(&mut self.held))
        };
        let mut draft = Draft { bytes: &bytes, kept: Vec::new(), from: 0, cut: false };
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            if bytes[0] == b'\n' {
                draft.remove(0, 1);
            }
        }
        for cut in marks.cuts.drain(..) {
            if draft.make(cut, self.position).is_none() {
                self.missed += 1;
            }
        }
        let Draft { mut kept, from, cut, .. } = draft;
        self.after_cr |= cut && from == bytes.len() && bytes.last() == Some(&b'\r');

        let hold = hold.and_then(|at| usize::try_from(at.checked_sub(self.position)?).ok());
        let to = match hold {
            // What is held must be whole in hand, and not too much.
            Some(at) if at >= from && at < bytes.len() && bytes.len() - at <= HOLD_BYTES => at,
            _ => bytes.len(),
        };
        self.held.extend_from_slice(&bytes[to..]);
        self.position += to as u64;
        if !cut {
            return bytes.slice(..to);
        }
        kept.extend_from_slice(&bytes[from..to]);
        Bytes::from(kept)
    }
}

/// An edit under way.
struct Draft<'a> {
    bytes: &'a [u8],
    /// What stays of `bytes[..from]`.
    kept: Vec<u8>,
    from: usize,
    /// Something was taken out.
    cut: bool,
}

impl Draft<'_> {
    /// Makes one cut; `position` is where the bytes stand in the body. `None` if it cannot be made.
    fn make(&mut self, cut: Cut, position: u64) -> Option<()> {
        let at = |offset: u64| usize::try_from(offset.checked_sub(position)?).ok();
        let (mut from, to) = (at(cut.frame.0)?, at(cut.frame.1)?);
        if cut.frame.0 == 0 && self.bytes.starts_with(BYTE_ORDER_MARK) {
            from = BYTE_ORDER_MARK.len();
        }
        from += block::last_event(self.bytes.get(from..to)?)?;
        let event = &self.bytes[from..to];
        let inside = |offset: u64| at(offset)?.checked_sub(from);
        match cut.part {
            Part::Event if from < self.from => return None,
            Part::Event => {
                block::lines(event)
                    .filter(|line| !line.is_comment(event))
                    .for_each(|line| self.remove(from + line.from, from + line.to));
                if event.ends_with(b"\r") && self.bytes.get(to) == Some(&b'\n') {
                    self.remove(to, to + 1);
                }
            }
            Part::Member(first, last) => {
                let member = block::with_comma(event, inside(first)?, inside(last)?)?;
                if from + member.start < self.from {
                    return None;
                }
                // Only payload goes: line ends, field names and comments between stay.
                for part in block::payloads(event) {
                    let (start, end) = (part.start.max(member.start), part.end.min(member.end));
                    if start < end {
                        self.remove(from + start, from + end);
                    }
                }
            }
            Part::Flag(first, last) => {
                let (first, last) = (inside(first)?, inside(last)?);
                if from + first < self.from || event.get(first..last)? != b"true" {
                    return None;
                }
                self.remove(from + first, from + last);
                self.kept.extend_from_slice(b"false");
            }
        }
        Some(())
    }

    fn remove(&mut self, from: usize, to: usize) {
        if !self.cut {
            self.cut = true;
            self.kept.reserve(self.bytes.len() - (to - from));
        }
        self.kept.extend_from_slice(&self.bytes[self.from..from]);
        self.from = to;
    }
}
