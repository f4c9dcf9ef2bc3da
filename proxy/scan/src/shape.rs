//! The shape of the last frame. The token frames of a stream differ only in a few values: the text, a count,
//! an index. If a frame equals the last one, byte for byte outside those values, it has the same meaning
//! with other values, and reading it costs a few comparisons in place of a walk through its JSON. The match
//! is exact: it covers every other byte, framing included, and any difference selects the ordinary path.

use memchr::memchr2;

use crate::counts::{Count, Counts};
use crate::event::Delta;
use crate::extent::{UsageMember, UsageValue};
use crate::field::Field;
use crate::frame::Kind;
use crate::json::Value;
use crate::limits::{SHAPE_BYTES, SHAPE_MAX_SPANS};
use crate::text::chars;

/// The variable values of one frame in the caller's buffer.
#[derive(Debug, Default)]
pub(crate) struct VariableSpans {
    list: [VariableSpan; SHAPE_MAX_SPANS],
    len: usize,
    /// A value was split, or there were too many: the frame cannot serve as a shape.
    unusable: bool,
}

#[derive(Clone, Copy, Debug)]
struct VariableSpan {
    field: Field,
    from: usize,
    to: usize,
}

/// The last complete frame, without its variable values.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The fixed bytes; empty without a shape. Allocated with the first shape, so that an unstreamed body needs none.
    bytes: Vec<u8>,
    slots: [Slot; SHAPE_MAX_SPANS],
    slots_len: u8,
    kind: Kind,
    delta: Delta,
    has_usage: bool,
    /// The usage of the frame if `has_usage`, else of an earlier frame. Boxed, because few streams have a usage in each
    /// frame.
    usage: Option<Box<Counts>>,
    /// The usage member, if it is `null` or has zeros only.
    placeholder: Option<Placeholder>,
}

/// A usage member without counts in the stored frame.
#[derive(Clone, Copy, Debug)]
struct Placeholder {
    from: Edge,
    to: Edge,
    value: UsageValue,
}

/// A position in the stored frame.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The fixed bytes before it.
    fixed: u16,
    /// The variable values before it.
    slots: u8,
}

/// A variable value of the stored frame.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The end of the fixed bytes before it, in the shape's bytes.
    after: u16,
    target: Target,
}

/// The target of a variable value.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// The inside of the one string.
    Text,
    /// A number, by its target.
    Choice,
    Count(Count),
    /// A number without meaning.
    Nothing,
}

impl Target {
    fn of(field: Field) -> Self {
        match field {
            Field::Index => Self::Choice,
            Field::Count(count) => Self::Count(count),
            field if field.is_measured() => Self::Text,
            _ => Self::Nothing,
        }
    }
}

/// The content of a frame that has the stored shape.
#[derive(Debug)]
pub(crate) struct Match {
    /// Its length in bytes.
    pub(crate) len: usize,
    pub(crate) kind: Kind,
    pub(crate) delta: Delta,
    pub(crate) usage: Option<Counts>,
    /// The usage member, by its position in the body, if that of the stored frame has no counts.
    pub(crate) placeholder: Option<UsageMember>,
}

impl VariableSpans {
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.unusable = false;
    }

    pub(crate) fn add(&mut self, field: Field, value: Value<'_>, range: Option<(usize, usize)>) {
        // A match has one place for the value of each field, so a second one (the index of a second answer) has none.
        // Values without meaning need no place.
        let again = self.list[..self.len].iter().any(|span| span.field == field);
        self.unusable |= again && field != Field::Varying;
        match (value, range) {
            (Value::Text { .. } | Value::Number(_), Some((from, to))) if self.len < SHAPE_MAX_SPANS => {
                self.list[self.len] = VariableSpan { field, from, to };
                self.len += 1;
            }
            // A word or `null` in place of a number is part of the shape.
            (Value::Null | Value::Bool(_), _) => {}
            _ => self.unusable = true,
        }
    }

    /// Excludes the frame: a member that occurs twice replaces earlier values.
    pub(crate) fn exclude(&mut self) {
        self.unusable = true;
    }
}

impl Shape {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            slots: [Slot { after: 0, target: Target::Nothing }; SHAPE_MAX_SPANS],
            slots_len: 0,
            kind: Kind::Text,
            delta: Delta::default(),
            has_usage: false,
            usage: None,
            placeholder: None,
        }
    }

    /// Stores the frame at `from..to` of `buffer`, which means `kind`, `delta` and `usage`. The frame begins at `begun`
    /// in the body, and its usage `member` is placed in the body, too.
    pub(crate) fn store(
        &mut self,
        buffer: &[u8],
        (from, to): (usize, usize),
        variable_spans: &VariableSpans,
        (kind, delta, usage): (Kind, Delta, Option<Counts>),
        (begun, member): (u64, Option<UsageMember>),
    ) {
        // A frame that cannot be stored removes the earlier shape: the stream has moved on to other frames.
        self.bytes.clear();
        // The walk adds spans in the order of the bytes, and no span contains another one: only strings and numbers vary.
        let spans = &variable_spans.list[..variable_spans.len];
        let fixed = (to - from) - spans.iter().map(|h| h.to - h.from).sum::<usize>();
        let texts = spans.iter().filter(|h| h.field.is_measured()).count();
        // One text, since a match yields one delta. No rejected count, since a match would repeat the rejection
        // for a valid number.
        if variable_spans.unusable
            || fixed > SHAPE_BYTES
            || texts != 1
            || usage.is_some_and(|u| u.rejected > 0)
        {
            return;
        }
        self.bytes.reserve(fixed);
        let mut at = from;
        for (slot, span) in self.slots.iter_mut().zip(spans) {
            self.bytes.extend_from_slice(&buffer[at..span.from]);
            *slot = Slot {
                after: u16::try_from(self.bytes.len()).expect("SHAPE_BYTES is below 65536"),
                target: Target::of(span.field),
            };
            at = span.to;
        }
        self.bytes.extend_from_slice(&buffer[at..to]);
        self.slots_len = u8::try_from(spans.len()).expect("SHAPE_MAX_SPANS is below 256");
        self.kind = kind;
        self.delta = delta;
        self.has_usage = usage.is_some();
        let edge = |at: u64| {
            let at = usize::try_from(at - begun).ok()?;
            let before = spans.iter().take_while(|span| span.to - from <= at);
            let (slots, variable) =
                before.fold((0_u8, 0), |(n, sum), span| (n + 1, sum + span.to - span.from));
            Some(Edge { fixed: u16::try_from(at - variable).ok()?, slots })
        };
        self.placeholder = member.filter(|member| member.value != UsageValue::Counts).and_then(|member| {
            let UsageMember { from, to, value } = member;
            Some(Placeholder { from: edge(from)?, to: edge(to)?, value })
        });
        // The box stays for later shapes: a stream may alternate between frames with and without usage.
        if let Some(usage) = usage {
            **self.usage.get_or_insert_default() = usage;
        }
    }

    /// Reads the frame at the start of `bytes`, if it is complete and has this shape; it begins at `begun` in the body.
    #[inline]
    pub(crate) fn read(&self, bytes: &[u8], begun: u64) -> Option<Match> {
        // A complete frame has at least the fixed bytes; a split one takes the ordinary path.
        if self.bytes.is_empty() || bytes.len() < self.bytes.len() {
            return None;
        }
        match &self.placeholder {
            None => self.matched(bytes, |_, _| ()),
            Some(placeholder) => self.matched_around(bytes, placeholder, begun),
        }
    }

    /// Reads a frame with a usage member without counts, and places that.
    #[inline(never)]
    fn matched_around(&self, bytes: &[u8], placeholder: &Placeholder, begun: u64) -> Option<Match> {
        // The bytes of the variable values before each position.
        let mut variable = [0; SHAPE_MAX_SPANS + 1];
        let mut found = self.matched(bytes, |slot, bytes| variable[slot + 1] = bytes)?;
        let at = |edge: Edge| begun + u64::from(edge.fixed) + variable[usize::from(edge.slots)] as u64;
        let Placeholder { from, to, value } = *placeholder;
        let has_grown = value == UsageValue::Zeros && found.usage.is_some_and(|counts| !counts.are_zeros());
        let value = if has_grown { UsageValue::Counts } else { value };
        found.placeholder = Some(UsageMember { from: at(from), to: at(to), value });
        Some(found)
    }

    /// Reads the frame; `variable` receives the number of each variable value and the bytes of all up to it.
    #[inline(always)]
    fn matched(&self, bytes: &[u8], mut variable: impl FnMut(usize, usize)) -> Option<Match> {
        // Counts that are fixed in the shape keep their values; the others are replaced below.
        let usage = self.usage.as_deref().copied().filter(|_| self.has_usage);
        let mut found = Match { len: 0, kind: self.kind, delta: self.delta, usage, placeholder: None };
        let (mut at, mut done) = (0, 0);
        for (slot, &Slot { after, target }) in self.slots[..usize::from(self.slots_len)].iter().enumerate() {
            let part = &self.bytes[done..usize::from(after)];
            done = usize::from(after);
            at = skip(bytes, at, part)?;
            // The value is read as far as its form goes. The fixed byte after it proves that this is all of it: a number
            // is followed by a delimiter, so that `1.5` and `1e3` do not match.
            at = match target {
                Target::Text => text(bytes, at, &mut found.delta.chars)?,
                _ => number(bytes, at, target, &mut found)?,
            };
            variable(slot, at - done);
        }
        // The blank line that ends the frame is among the fixed bytes: a match is a complete frame.
        found.len = skip(bytes, at, &self.bytes[done..])?;
        Some(found)
    }
}

impl Default for VariableSpan {
    fn default() -> Self {
        Self { field: Field::Intermediate, from: 0, to: 0 }
    }
}

#[inline]
fn skip(bytes: &[u8], at: usize, part: &[u8]) -> Option<usize> {
    let end = at + part.len();
    (bytes.get(at..end)? == part).then_some(end)
}

/// Reads the inside of a string that is not empty and has only two-byte escapes. Other escapes take the
/// ordinary path, and so does a control character: it may be a line end that ends the frame.
#[inline]
fn text(bytes: &[u8], from: usize, counted: &mut u32) -> Option<usize> {
    let (mut at, mut total) = (from, 0_u32);
    loop {
        let stop = at + memchr2(b'"', b'\\', &bytes[at..])?;
        let plain = &bytes[at..stop];
        // `fold` in place of `any`: without an early exit the loop has vector instructions.
        if plain.iter().fold(false, |found, byte| found | byte.is_ascii_control()) {
            return None;
        }
        total = total.saturating_add(chars(plain));
        if bytes[stop] == b'"' {
            *counted = total;
            // An empty text is another event, which the shape does not mean.
            return (total > 0).then_some(stop);
        }
        // `\u` may be half a surrogate pair, which only the walk counts.
        let escaped = *bytes.get(stop + 1)?;
        if escaped == b'u' || escaped.is_ascii_control() {
            return None;
        }
        total = total.saturating_add(1);
        at = stop + 2;
    }
}

/// Reads a plain whole number into its target. A leading zero is not a number: the ordinary path rejects it.
#[inline]
fn number(bytes: &[u8], from: usize, target: Target, found: &mut Match) -> Option<usize> {
    // 15 digits are below the ordinary path's bound of a count, 2^53, and the sum cannot overflow.
    let digits = bytes[from..].iter().take(16).take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 15 || digits > 1 && bytes[from] == b'0' {
        return None;
    }
    let value = bytes[from..from + digits].iter().fold(0_u64, |n, &d| n * 10 + u64::from(d - b'0'));
    match (target, &mut found.usage) {
        (Target::Choice, _) => found.delta.choice = u32::try_from(value).ok()?,
        (Target::Count(count), Some(usage)) => usage.set(count, value),
        _ => {}
    }
    Some(from + digits)
}
