//! Server-Sent Events, by the rules of the WHATWG HTML standard ("Server-sent events"): UTF-8 with
//! one leading byte order mark; lines end in LF, CR or CRLF, mixed freely; `:` begins a comment; one
//! space after the colon belongs to neither name nor value; names are compared exactly; a blank
//! line dispatches if there was a `data` line; several join with LF. The end of the body discards
//! an unfinished block for the client; the meter is told, because the tail may hold the usage.
//! A line that begins with `{` names a field that nobody knows; Gemini writes an error so, over
//! several lines and without `data:`, and its block is marked as one.
//!
//! Lines are never gathered: payload bytes go on as they come, and only a torn field name or event
//! name is kept.

use memchr::memchr2;

use crate::limits::EVENT_NAME_BYTES;
use crate::short::Short;

/// The state between two slices.
#[derive(Debug)]
pub(crate) struct Sse {
    /// Bytes of a byte order mark seen at the very beginning; 3 when that is over.
    mark: u8,
    /// The last byte was a CR: an LF now belongs to it.
    after_cr: bool,
    line: Line,
    name: Short<8>,
    event: Short<EVENT_NAME_BYTES>,
    /// Data lines of the block so far.
    data_lines: u32,
    /// Something of the block was seen.
    open: bool,
    /// A line of the block is bare JSON.
    bare: bool,
}

/// Where in a line we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Start,
    Name,
    /// After the colon: one space may follow.
    Gap(Field),
    Value(Field),
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Comment,
    Other,
}

/// What the slices were found to say, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Payload bytes stand at these offsets of the slice.
    Payload(usize, usize),
    /// Another data line begins: the payload goes on after an LF.
    NextLine,
    /// A comment's line is over.
    Comment,
    /// A block is over; whether it had data.
    Block { data: bool, error: bool },
}

const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

impl Sse {
    pub(crate) fn new() -> Self {
        Self {
            mark: 0,
            after_cr: false,
            line: Line::Start,
            name: Short::default(),
            event: Short::default(),
            data_lines: 0,
            open: false,
            bare: false,
        }
    }

    /// Whether a block begins with the byte at `at`; skips the LF of a CRLF before it.
    #[inline]
    pub(crate) fn at_block_start(&mut self, bytes: &[u8], at: &mut usize) -> bool {
        if self.open || self.line != Line::Start {
            return false;
        }
        if self.after_cr && bytes.get(*at) == Some(&b'\n') {
            self.after_cr = false;
            *at += 1;
        }
        self.mark == 3
    }

    /// A whole block was read elsewhere; `last` is its last byte.
    #[inline]
    pub(crate) fn skipped_block(&mut self, last: u8) {
        self.after_cr = last == b'\r';
    }

    /// A block has begun and is not over.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Reads on from `at`, which moves; returns at each thing found, `None` at the slice's end.
    pub(crate) fn step(&mut self, bytes: &[u8], at: &mut usize) -> Option<Step> {
        while let Some(&byte) = bytes.get(*at) {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                *at += 1;
                continue;
            }
            if self.mark < 3 {
                if byte == MARK[usize::from(self.mark)] {
                    self.mark += 1;
                    *at += 1;
                    continue;
                }
                if self.mark > 0 {
                    // Half a mark is the beginning of a name nobody knows.
                    self.line = Line::Value(Field::Other);
                    self.open = true;
                }
                self.mark = 3;
            }
            match self.line {
                Line::Start => match byte {
                    b'\n' | b'\r' => {
                        *at += 1;
                        self.after_cr = byte == b'\r';
                        if let Some(block) = self.end_block() {
                            return Some(block);
                        }
                    }
                    b':' => {
                        *at += 1;
                        self.line = Line::Value(Field::Comment);
                    }
                    _ => {
                        self.open = true;
                        self.bare |= byte == b'{';
                        self.name.clear();
                        self.line = Line::Name;
                    }
                },
                Line::Name => {
                    let rest = &bytes[*at..];
                    let stop = rest.iter().position(|b| matches!(b, b':' | b'\n' | b'\r'));
                    self.name.push(&rest[..stop.unwrap_or(rest.len())]);
                    *at += stop.unwrap_or(rest.len());
                    stop?;
                    let field = self.field();
                    if bytes[*at] == b':' {
                        *at += 1;
                        self.line = Line::Gap(field);
                    } else {
                        // No colon: the whole line is the name, its value is empty.
                        self.line = Line::Value(field);
                    }
                    if field == Field::Event {
                        self.event.clear();
                    }
                    if field == Field::Data {
                        self.data_lines = self.data_lines.saturating_add(1);
                        if self.data_lines > 1 {
                            return Some(Step::NextLine);
                        }
                    }
                }
                Line::Gap(field) => {
                    if byte == b' ' {
                        *at += 1;
                    }
                    self.line = Line::Value(field);
                }
                Line::Value(field) => {
                    let rest = &bytes[*at..];
                    let stop = memchr2(b'\n', b'\r', rest);
                    let (from, to) = (*at, *at + stop.unwrap_or(rest.len()));
                    *at = to;
                    if stop.is_some() {
                        self.line = Line::Start;
                        self.after_cr = bytes[to] == b'\r';
                        *at += 1;
                    }
                    match field {
                        Field::Data if to > from => return Some(Step::Payload(from, to)),
                        Field::Event => self.event.push(&bytes[from..to]),
                        Field::Comment if stop.is_some() => return Some(Step::Comment),
                        _ => {}
                    }
                }
            }
        }
        None
    }

    /// The body is over: whether it left a block with data unfinished.
    pub(crate) fn end(&mut self) -> Option<Step> {
        self.end_block()
    }

    fn end_block(&mut self) -> Option<Step> {
        let bare = std::mem::take(&mut self.bare);
        let (data, error) = (self.data_lines > 0, bare || self.event.is(b"error"));
        self.data_lines = 0;
        self.event.clear();
        self.line = Line::Start;
        // A block without data dispatches nothing, except that Dynamo reports errors in one.
        let said = std::mem::take(&mut self.open) && (data || error);
        said.then_some(Step::Block { data, error })
    }

    fn field(&self) -> Field {
        if self.name.is(b"data") {
            Field::Data
        } else if self.name.is(b"event") {
            Field::Event
        } else {
            Field::Other
        }
    }
}
