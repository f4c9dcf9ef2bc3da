//! Server-Sent Events, by the WHATWG HTML standard ("Server-sent events"): UTF-8 with one leading byte order
//! mark; lines end in LF, CR or CRLF, mixed freely; `:` begins a comment; one space after the colon belongs
//! to neither name nor value; names are compared exactly; an empty line dispatches if there was a `data`
//! line; several are joined with LF. The end of the body discards an unfinished block for the client; the
//! meter reads it, because the tail may hold the usage. A line that begins with `{` has an unknown field
//! name; Gemini writes an error so, over several lines and without `data:`, and its block is marked as an
//! error. Some servers write the line `[DONE]` without `data:`; a block without data that has it is the end mark.
//!
//! Lines are never buffered: payload bytes pass on as they arrive, and only a split field name or event name
//! is kept.

use memchr::memchr2;

use crate::limits::EVENT_NAME_BYTES;
use crate::scanner::DONE;
use crate::short::Short;

/// The state between two slices.
#[derive(Debug)]
pub(crate) struct Sse {
    /// Bytes of a leading byte order mark seen; 3 once it ended.
    mark: u8,
    /// The last byte was a CR: a following LF belongs to it.
    after_cr: bool,
    line: Line,
    name: Short<8>,
    event: Short<EVENT_NAME_BYTES>,
    /// Data lines of the block so far.
    data_lines: u32,
    /// The block has bytes.
    open: bool,
    /// A line of the block is JSON without a field name.
    bare: bool,
    /// A line of the block is the end mark without a field name.
    done: bool,
}

/// The position in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Start,
    Name,
    /// After the colon: one space may follow.
    Gap(Field),
    Value(Field),
}

/// The field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Comment,
    Other,
}

/// A result of reading a slice, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Payload bytes at these offsets of the slice.
    Payload(usize, usize),
    /// Another data line begins: the payload continues after an LF.
    NextLine,
    /// The end of a comment line.
    Comment,
    /// The end of a block.
    Block { data: bool, error: bool, done: bool },
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
            done: false,
        }
    }

    /// Returns true if a block begins with the byte at `at`; skips the LF of a CRLF before it.
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

    /// Records that a complete block ending in `last` was read elsewhere.
    #[inline]
    pub(crate) fn skipped_block(&mut self, last: u8) {
        self.after_cr = last == b'\r';
    }

    /// Returns true inside an unfinished block.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Reads on from `at`, which advances. Returns each result, `None` at the slice's end.
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
                    // Part of a mark is the beginning of an unknown name.
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
                        // No colon: the whole line is the name, with an empty value.
                        self.line = Line::Value(field);
                        self.done |= self.name.is(DONE);
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

    /// Ends the body. Returns its unfinished block, if that has data.
    pub(crate) fn end(&mut self) -> Option<Step> {
        self.done |= self.line == Line::Name && self.name.is(DONE);
        self.end_block()
    }

    fn end_block(&mut self) -> Option<Step> {
        let bare = std::mem::take(&mut self.bare);
        let (data, error) = (self.data_lines > 0, bare || self.event.is(b"error"));
        let done = std::mem::take(&mut self.done) && !data && !error;
        self.data_lines = 0;
        self.event.clear();
        self.line = Line::Start;
        // A block without data dispatches nothing, but Dynamo reports errors in one.
        let dispatches = std::mem::take(&mut self.open) && (data || error || done);
        dispatches.then_some(Step::Block { data, error, done })
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
