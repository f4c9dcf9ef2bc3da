//! The memory of one frame's shape. The token frames of a stream differ only in a few values: the
//! text, a count, an index. If a frame equals the last one read, byte for byte outside those
//! values, it means the same with other values, and reading it costs a few comparisons instead of
//! a walk through its JSON. Nothing is guessed: the comparison covers every other byte, framing
//! included, and any difference sends the frame down the ordinary path.

use memchr::memchr2;

use crate::event::{Counts, Piece};
use crate::field::Field;
use crate::frame::Kind;
use crate::json::Value;
use crate::limits::{SHAPE_BYTES, SHAPE_HOLES};
use crate::text::chars;

/// Where the varying values of one frame stand in the caller's buffer.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    list: [Hole; SHAPE_HOLES],
    len: usize,
    /// A value was torn, or there were too many: the frame cannot serve as a shape.
    spoilt: bool,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    field: Field,
    from: usize,
    to: usize,
}

/// The last frame read whole, without its varying values.
#[derive(Debug)]
pub(crate) struct Shape {
    bytes: [u8; SHAPE_BYTES],
    /// Its length; zero if there is none.
    len: usize,
    gaps: [Gap; SHAPE_HOLES],
    gaps_len: usize,
    kind: Kind,
    piece: Piece,
    usage: Option<Counts>,
}

/// A hole of the remembered frame.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Where the stretch before it ends, in the shape's bytes.
    after: u16,
    holds: Holds,
}

/// What a hole holds.
#[derive(Clone, Copy, Debug)]
enum Holds {
    /// The inside of the one string.
    Text,
    /// A number, and where it goes.
    Choice,
    Input,
    Cached,
    Output,
    Reasoning,
    /// A number that means nothing.
    Nothing,
}

impl Holds {
    fn of(field: Field) -> Self {
        match field {
            Field::Index => Self::Choice,
            Field::InputTokens => Self::Input,
            Field::CachedTokens => Self::Cached,
            Field::OutputTokens => Self::Output,
            Field::ReasoningTokens => Self::Reasoning,
            field if field.is_measured() => Self::Text,
            _ => Self::Nothing,
        }
    }
}

/// What a frame of the remembered shape says.
#[derive(Debug)]
pub(crate) struct Match {
    /// Its length in bytes.
    pub(crate) len: usize,
    pub(crate) kind: Kind,
    pub(crate) piece: Piece,
    pub(crate) usage: Option<Counts>,
}

impl Holes {
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.spoilt = false;
    }

    pub(crate) fn add(&mut self, field: Field, value: Value<'_>, span: Option<(usize, usize)>) {
        let again = self.list[..self.len].iter().any(|hole| hole.field == field);
        self.spoilt |= again && field != Field::Varying;
        match (value, span) {
            (Value::Text { .. } | Value::Number(_), Some((from, to))) if self.len < SHAPE_HOLES => {
                self.list[self.len] = Hole { field, from, to };
                self.len += 1;
            }
            // A word or `null` in place of a number is part of the shape.
            (Value::Null | Value::Bool(_), _) => {}
            _ => self.spoilt = true,
        }
    }

    /// The frame takes back what it said (a member that stands there twice).
    pub(crate) fn spoil(&mut self) {
        self.spoilt = true;
    }
}

impl Shape {
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; SHAPE_BYTES],
            len: 0,
            gaps: [Gap { after: 0, holds: Holds::Nothing }; SHAPE_HOLES],
            gaps_len: 0,
            kind: Kind::Text,
            piece: Piece::default(),
            usage: None,
        }
    }

    /// Remembers the frame that stands at `from..to` of `buffer` and says `kind`, `piece`, `usage`.
    pub(crate) fn learn(
        &mut self,
        buffer: &[u8],
        (from, to): (usize, usize),
        holes: &Holes,
        (kind, piece, usage): (Kind, Piece, Option<Counts>),
    ) {
        self.len = 0;
        let holes_list = &holes.list[..holes.len];
        let fixed = (to - from) - holes_list.iter().map(|h| h.to - h.from).sum::<usize>();
        let texts = holes_list.iter().filter(|h| h.field.is_measured()).count();
        if holes.spoilt || fixed > SHAPE_BYTES || texts != 1 || usage.is_some_and(|u| u.rejected > 0) {
            return;
        }
        let (mut at, mut len) = (from, 0);
        for (slot, hole) in self.gaps.iter_mut().zip(holes_list) {
            let part = &buffer[at..hole.from];
            self.bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
            *slot = Gap {
                after: u16::try_from(len).expect("SHAPE_BYTES is below 65536"),
                holds: Holds::of(hole.field),
            };
            at = hole.to;
        }
        let rest = &buffer[at..to];
        self.bytes[len..len + rest.len()].copy_from_slice(rest);
        self.gaps_len = holes_list.len();
        self.kind = kind;
        self.piece = piece;
        self.usage = usage;
        self.len = len + rest.len();
    }

    /// Reads the frame at the beginning of `bytes`, if it is all there and has this shape.
    #[inline]
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<Match> {
        if self.len == 0 || bytes.len() < self.len {
            return None;
        }
        let mut found = Match { len: 0, kind: self.kind, piece: self.piece, usage: self.usage };
        let (mut at, mut done) = (0, 0);
        for &Gap { after, holds } in &self.gaps[..self.gaps_len] {
            let part = &self.bytes[done..usize::from(after)];
            done = usize::from(after);
            at = skip(bytes, at, part)?;
            at = match holds {
                Holds::Text => text(bytes, at, &mut found.piece.chars)?,
                _ => number(bytes, at, holds, &mut found)?,
            };
        }
        found.len = skip(bytes, at, &self.bytes[done..self.len])?;
        Some(found)
    }
}

impl Default for Hole {
    fn default() -> Self {
        Self { field: Field::Passage, from: 0, to: 0 }
    }
}

#[inline]
fn skip(bytes: &[u8], at: usize, part: &[u8]) -> Option<usize> {
    let end = at + part.len();
    (bytes.get(at..end)? == part).then_some(end)
}

/// Reads the inside of a string that is not empty and holds no escape but the common two-byte
/// ones; anything rarer takes the ordinary path, and so does a control character: it may be a line
/// end, and then the frame is over.
#[inline]
fn text(bytes: &[u8], from: usize, counted: &mut u32) -> Option<usize> {
    let (mut at, mut total) = (from, 0_u32);
    loop {
        let stop = at + memchr2(b'"', b'\\', &bytes[at..])?;
        let plain = &bytes[at..stop];
        if plain.iter().fold(false, |found, byte| found | byte.is_ascii_control()) {
            return None;
        }
        total = total.saturating_add(chars(plain));
        if bytes[stop] == b'"' {
            *counted = total;
            return (total > 0).then_some(stop);
        }
        let escaped = *bytes.get(stop + 1)?;
        if escaped == b'u' || escaped.is_ascii_control() {
            return None;
        }
        total = total.saturating_add(1);
        at = stop + 2;
    }
}

/// Reads a plain whole number and puts it where it goes. A leading zero is no number: the ordinary path
/// refuses it.
#[inline]
fn number(bytes: &[u8], from: usize, holds: Holds, found: &mut Match) -> Option<usize> {
    let digits = bytes[from..].iter().take(16).take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 15 || digits > 1 && bytes[from] == b'0' {
        return None;
    }
    let value = bytes[from..from + digits].iter().fold(0_u64, |n, &d| n * 10 + u64::from(d - b'0'));
    if let Holds::Choice = holds {
        found.piece.choice = u32::try_from(value).ok()?;
    } else if let Some(usage) = &mut found.usage {
        match holds {
            Holds::Input => usage.input = Some(value),
            Holds::Cached => usage.input_cached = Some(value),
            Holds::Output => usage.output = Some(value),
            Holds::Reasoning => usage.output_reasoning = Some(value),
            Holds::Text | Holds::Choice | Holds::Nothing => {}
        }
    }
    Some(from + digits)
}
