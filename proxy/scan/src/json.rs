//! A structural JSON scanner that reads slices as they arrive and reports the fields of one table. It reads
//! each byte once, keeps no text, and buffers only a split key, number or captured string (at most
//! [`CARRY_BYTES`]). It is not a validator: input beyond the grammar (`NaN`, raw control characters) is
//! skipped, and input that it cannot parse makes the value [`End::Broken`]. Below [`MAX_DEPTH`] it only counts
//! brackets. Nothing in it recurses.

mod bare;
mod member;
mod number;
mod string;

use crate::carry::Carry;
use crate::extent::Timings;
use crate::field::{Field, Fields, NOWHERE, UNKNOWN, UNKNOWN_TOKENS};
use crate::limits::{CARRY_BYTES, MAX_DEPTH, PATH_LEVELS};
use crate::text::Text;
use crate::text_buffer::TextBuffer;
use bare::{NULL, bare_len, is_bare, is_whole_null};
use member::Members;
use string::Role;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(&'a [u8]),
    /// A word that begins like a number and is none (`05`, `1.`).
    Malformed,
    /// A captured string, unescaped; cut if it is longer than the buffer.
    Word(&'a [u8]),
    /// A measured string.
    Text {
        /// Unicode characters.
        chars: u32,
    },
    /// An object begins; [`Visit::close`] will follow.
    Object,
    /// An array begins; [`Visit::close`] will follow.
    List,
}

/// The receiver of fields, in the order of the bytes.
pub(crate) trait Visit {
    /// Receives the value of `field`. `span` is the range of its variable bytes (a number, the inside of a
    /// string) in the caller's buffer, if they were not split.
    fn value(&mut self, field: Field, value: Value<'_>, span: Option<(usize, usize)>);
    /// Receives the end of the object or array at `field`; `items` counts an array's elements.
    fn close(&mut self, field: Field, items: u32);
    /// Receives the name of a member that no path names in a usage object, before its value. `is_nested`: it is in another
    /// such member. `is_tokens`: the name of a known object that contains it says that it holds numbers of tokens.
    fn unknown(&mut self, _name: &[u8], _is_nested: bool, _is_tokens: bool) {}
}

/// The completeness of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing but white space.
    Empty,
    /// One whole value.
    Whole,
    /// One whole value, and it is `null`.
    Null,
    /// The bytes ended inside the value.
    Torn,
    /// Not JSON.
    Broken,
}

/// The scanner's state between two slices.
#[derive(Debug)]
pub(crate) struct Json {
    expects: Expects,
    /// The use of the current string.
    role: Role,
    depth: u32,
    /// Open brackets below [`MAX_DEPTH`], of either kind.
    deeper: u32,
    /// Bit d: the container at depth d is an object.
    objects: u128,
    /// True if the innermost container is an object.
    in_object: bool,
    /// Nodes of the open containers, to the depth of the paths.
    path: [u8; PATH_LEVELS],
    /// Elements seen in them.
    items: [u32; PATH_LEVELS],
    /// Node of the current value.
    node: u8,
    text: Text,
    carry: Carry,
    root_is_null: bool,
    scanned: u64,
    /// The position of the caller's buffer in the body.
    pub(crate) origin: u64,
    /// The end of the last torn bare word in the body, as far as it was read.
    bare_to: u64,
    /// The members that an editor may change.
    members: Members,
    /// The buffer of measured strings, if they are kept.
    pub(crate) text_buffer: Option<Box<TextBuffer>>,
}

/// The next token that may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    Key,
    /// Like `Key` and `CommaOrEnd`, after an object's first member that an editor may remove.
    KeyAfterFirst,
    CommaAfterFirst,
    Colon,
    CommaOrEnd,
    /// Inside a string of [`Json::role`].
    String,
    /// Inside a number or a bare word.
    Bare,
    /// Below [`MAX_DEPTH`]: the bracket that returns above it.
    Deeper,
    Nothing,
    Broken,
}

impl Json {
    pub(crate) fn new() -> Self {
        Self {
            expects: Expects::Value,
            role: Role::Skip,
            depth: 0,
            deeper: 0,
            objects: 0,
            in_object: false,
            path: [NOWHERE; PATH_LEVELS],
            items: [0; PATH_LEVELS],
            node: 0,
            text: Text::default(),
            carry: Carry::new(),
            root_is_null: false,
            scanned: 0,
            origin: 0,
            bare_to: 0,
            members: Members::default(),
            text_buffer: None,
        }
    }

    /// Discards the current value; the next slice begins another.
    pub(crate) fn restart(&mut self) {
        self.expects = Expects::Value;
        self.depth = 0;
        self.in_object = false;
        self.node = 0;
        self.root_is_null = false;
        self.members.clear();
        self.carry.clear();
    }

    /// Returns true if the current value, an object or an array, is complete and nothing follows it.
    pub(crate) fn is_whole(&self) -> bool {
        self.expects == Expects::Nothing
    }

    /// The range of the usage member in the body, an object or `null`, if there is one. Without it, the object around it
    /// is the same with one member less: a comma belongs to it.
    pub(crate) fn usage_member(&self) -> Option<(u64, u64)> {
        self.members.span(USAGE)
    }

    /// The position in the body from which the unfinished value may have a usage member.
    pub(crate) fn usage_from(&self, fields: &Fields) -> Option<u64> {
        if let Some(from) = self.members.start(USAGE) {
            return Some(from);
        }
        let may_be_usage = match self.expects {
            Expects::Key | Expects::KeyAfterFirst => true,
            Expects::String => self.role == Role::Key,
            Expects::Colon | Expects::Value | Expects::Bare => fields.field(self.node) == Field::Usage,
            _ => false,
        };
        (self.depth == 1 && self.in_object && may_be_usage).then_some(self.members.from)
    }

    /// The ranges of the timings and of their repetitions, if there are any.
    pub(crate) fn timings(&self) -> Option<Timings> {
        let span = |field| self.members.span(member_index(field)?);
        let timings = Timings {
            member: span(Field::Timings),
            verbose: span(Field::VerboseTimings),
            setting: span(Field::VerboseSetting),
        };
        (timings != Timings::default()).then_some(timings)
    }

    /// Returns the number of bytes read since the last call.
    pub(crate) fn take_scanned(&mut self) -> u64 {
        std::mem::take(&mut self.scanned)
    }

    /// Reads a slice at offset `base` of the caller's buffer. Returns the position there of the byte that follows a
    /// whole value and makes it broken.
    pub(crate) fn feed(
        &mut self,
        fields: &Fields,
        bytes: &[u8],
        base: usize,
        visit: &mut impl Visit,
    ) -> Option<usize> {
        let mut at = 0;
        // The start of the current token in this slice; an earlier part of it is in the carry buffer.
        let mut began = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            match self.expects {
                Expects::String => {
                    let Some(end) = self.read_string(bytes, at, began) else {
                        at = bytes.len();
                        continue;
                    };
                    self.end_string(fields, &bytes[began..end], base + began, visit);
                    at = end + 1;
                    continue;
                }
                Expects::Bare => {
                    let end = at + bare_len(&bytes[at..]);
                    if end == bytes.len() {
                        self.carry_bare(&bytes[began..], base + end);
                        at = end;
                    } else {
                        self.end_bare(fields, &bytes[began..end], base + began, visit);
                        at = end;
                    }
                    continue;
                }
                Expects::Deeper => {
                    at = self.read_deeper(bytes, at);
                    began = at;
                    continue;
                }
                Expects::Broken => {
                    at = bytes.len();
                    continue;
                }
                _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => {}
                Expects::Value | Expects::ValueOrEnd => match byte {
                    b']' if self.expects == Expects::ValueOrEnd => self.close(fields, base + at, visit),
                    _ => {
                        self.begin_value(fields);
                        match byte {
                            b'{' | b'[' => self.open(fields, byte == b'{', visit),
                            b'"' => {
                                let field = fields.field(self.node);
                                if let Some(buffer) = &mut self.text_buffer {
                                    buffer.begin(field);
                                }
                                began = at + 1;
                                // Most strings are whole in their slice, and have no escape.
                                let stop = string::stop(&bytes[began..]);
                                if let Some(len) = stop
                                    && bytes[began + len] == b'"'
                                {
                                    at = began + len + 1;
                                    self.whole_string(field, &bytes[began..began + len], base + began, visit);
                                } else {
                                    at = self.begin_searched(Role::of(field), bytes, began, stop);
                                }
                                continue;
                            }
                            // Most members that a server adds are null.
                            b'n' if is_whole_null(&bytes[at..]) => {
                                at += NULL.len();
                                self.null(fields.field(self.node), base + at, visit);
                                continue;
                            }
                            b if is_bare(b) => {
                                self.carry.clear();
                                began = at;
                                at += bare_len(&bytes[at..]);
                                if at < bytes.len() {
                                    self.end_bare(fields, &bytes[began..at], base + began, visit);
                                } else {
                                    self.carry_bare(&bytes[began..], base + at);
                                    self.expects = Expects::Bare;
                                }
                                continue;
                            }
                            _ => self.expects = Expects::Broken,
                        }
                    }
                },
                Expects::KeyOrEnd | Expects::Key => match byte {
                    b'"' => {
                        began = at + 1;
                        if self.expects == Expects::KeyOrEnd {
                            self.members.begin_first(self.origin + (base + at) as u64);
                        }
                        at = self.read_key(fields, bytes, began, visit);
                        continue;
                    }
                    b'}' if self.expects == Expects::KeyOrEnd => self.close(fields, base + at, visit),
                    _ => self.expects = Expects::Broken,
                },
                Expects::Colon => {
                    self.expects = if byte == b':' { Expects::Value } else { Expects::Broken };
                }
                Expects::CommaOrEnd => match (byte, self.in_object) {
                    (b',', true) => {
                        self.members.from = self.origin + (base + at) as u64;
                        if bytes.get(at + 1) == Some(&b'"') {
                            began = at + 2;
                            at = self.read_key(fields, bytes, began, visit);
                            continue;
                        }
                        self.expects = Expects::Key;
                    }
                    (b',', false) => self.expects = Expects::Value,
                    (b'}', true) | (b']', false) => self.close(fields, base + at, visit),
                    _ => self.expects = Expects::Broken,
                },
                Expects::CommaAfterFirst => match byte {
                    b',' => {
                        self.members.from = self.origin + (base + at) as u64;
                        self.expects = Expects::KeyAfterFirst;
                    }
                    b'}' => self.close(fields, base + at, visit),
                    _ => self.expects = Expects::Broken,
                },
                Expects::KeyAfterFirst if byte == b'"' => {
                    self.members.end_first(self.origin + (base + at) as u64);
                    began = at + 1;
                    at = self.read_key(fields, bytes, began, visit);
                    continue;
                }
                Expects::KeyAfterFirst => self.expects = Expects::Broken,
                Expects::Nothing => {
                    self.expects = Expects::Broken;
                    self.scanned += at as u64;
                    return Some(base + at);
                }
            }
            at += 1;
        }
        self.scanned += at as u64;
        None
    }

    /// Forgets what follows the value that is whole.
    pub(crate) fn forget_rest(&mut self) {
        self.expects = Expects::Nothing;
    }

    /// Ends the value, and with it a bare word at the top level. Returns its completeness.
    pub(crate) fn end(&mut self, fields: &Fields, visit: &mut impl Visit) -> End {
        if self.expects == Expects::Bare && self.depth == 0 {
            self.end_bare(fields, &[], 0, visit);
        }
        match self.expects {
            Expects::Value if self.depth == 0 => End::Empty,
            Expects::Nothing if self.root_is_null => End::Null,
            Expects::Nothing => End::Whole,
            Expects::Broken => End::Broken,
            _ => End::Torn,
        }
    }

    /// Reads a key that begins at the offset `from`, behind its quote. Returns the offset at which reading continues.
    #[inline]
    fn read_key(&mut self, fields: &Fields, bytes: &[u8], from: usize, visit: &mut impl Visit) -> usize {
        // Most keys are whole in their slice, and a colon follows at once.
        match string::stop(&bytes[from..]) {
            Some(len) if bytes[from + len] == b'"' => {
                let key = &bytes[from..from + len.min(CARRY_BYTES)];
                self.node = self.member(fields, key);
                if is_unknown(self.node) {
                    visit.unknown(key, self.is_in_unknown(), self.node == UNKNOWN_TOKENS);
                }
                let end = from + len + 1;
                let has_colon = bytes.get(end) == Some(&b':');
                self.expects = if has_colon { Expects::Value } else { Expects::Colon };
                end + usize::from(has_colon)
            }
            stop => self.begin_searched(Role::Key, bytes, from, stop),
        }
    }

    /// Starts a value: finds its node. In an object the key has set it.
    fn begin_value(&mut self, fields: &Fields) {
        if self.depth > 0 && !self.in_object {
            let level = self.depth as usize - 1;
            self.node = NOWHERE;
            if level < PATH_LEVELS {
                self.items[level] = self.items[level].saturating_add(1);
                self.node = fields.element(self.path[level]);
            }
        }
    }

    fn open(&mut self, fields: &Fields, object: bool, visit: &mut impl Visit) {
        if self.depth == MAX_DEPTH {
            // No path is this deep, so no field is inside; fields may follow after it.
            self.deeper = 1;
            self.expects = Expects::Deeper;
            return;
        }
        let level = self.depth as usize;
        if level < PATH_LEVELS {
            self.path[level] = self.node;
            self.items[level] = 0;
        }
        // `level` is below `MAX_DEPTH`, the number of bits.
        let bit = 1_u128 << level;
        self.objects = if object { self.objects | bit } else { self.objects & !bit };
        self.depth += 1;
        self.in_object = object;
        self.expects = if object { Expects::KeyOrEnd } else { Expects::ValueOrEnd };
        let field = fields.field(self.node);
        if let Some(index) = member_index(field) {
            self.members.begin(index);
        }
        if field != Field::Intermediate {
            visit.value(field, if object { Value::Object } else { Value::List }, None);
        }
    }

    /// Reads on below [`MAX_DEPTH`]. Returns the offset after the last bracket, after a quote, or the slice's
    /// end.
    fn read_deeper(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'"' => {
                    self.begin_string(Role::Deeper);
                    break;
                }
                b'[' | b'{' => match self.deeper.checked_add(1) {
                    Some(deeper) => self.deeper = deeper,
                    None => {
                        self.expects = Expects::Broken;
                        break;
                    }
                },
                b']' | b'}' => {
                    self.deeper -= 1;
                    if self.deeper == 0 {
                        self.after_value();
                        break;
                    }
                }
                _ => {}
            }
        }
        at
    }

    /// Ends a member that an editor may change, behind its value, whose end is at `to` in the body.
    fn end_member(&mut self, index: usize, to: u64) {
        if self.members.end(index, to) {
            self.expects = Expects::CommaAfterFirst;
        }
    }

    fn close(&mut self, fields: &Fields, at: usize, visit: &mut impl Visit) {
        self.depth -= 1;
        self.in_object = self.depth > 0 && self.objects & (1 << (self.depth - 1)) != 0;
        self.after_value();
        let level = self.depth as usize;
        if level < PATH_LEVELS {
            let field = fields.field(self.path[level]);
            if let Some(index) = member_index(field) {
                self.end_member(index, self.origin + at as u64 + 1);
            }
            if field != Field::Intermediate {
                visit.close(field, self.items[level]);
            }
        }
    }

    fn after_value(&mut self) {
        self.expects = if self.depth == 0 { Expects::Nothing } else { Expects::CommaOrEnd };
    }

    /// Ends a `null` whose end is at `to` of the caller's buffer.
    fn null(&mut self, field: Field, to: usize, visit: &mut impl Visit) {
        self.root_is_null = self.depth == 0;
        self.after_value();
        if field != Field::Intermediate {
            if field == Field::Usage {
                self.bare_member(field, self.origin + to as u64);
            }
            visit.value(field, Value::Null, None);
        }
    }

    /// Ends a usage member that is `null`, or the flag that is `true`: its end is at `to` in the body.
    fn bare_member(&mut self, field: Field, to: u64) {
        if field == Field::Usage {
            self.members.begin(USAGE);
            self.end_member(USAGE, to);
        } else {
            self.members.set(SETTING, to - b"true".len() as u64, to);
        }
    }

    /// Keeps the part of a bare word that ends at `to` of the caller's buffer, its end so far.
    fn carry_bare(&mut self, part: &[u8], to: usize) {
        self.carry.push(part);
        self.bare_to = self.origin + to as u64;
    }

    fn end_bare(&mut self, fields: &Fields, tail: &[u8], tail_at: usize, visit: &mut impl Visit) {
        let torn = self.carry.len > 0;
        let word = if torn {
            self.carry.push(tail);
            self.carry.word()
        } else {
            // The same limit as for a split one.
            &tail[..tail.len().min(CARRY_BYTES)]
        };
        let field = fields.field(self.node);
        let value = match word {
            b"null" => Some(Value::Null),
            b"true" => Some(Value::Bool(true)),
            b"false" => Some(Value::Bool(false)),
            b"NaN" | b"Infinity" | b"-Infinity" => Some(Value::Number(word)),
            [b'-' | b'0'..=b'9', ..] if field == Field::Intermediate || number::is_number(word) => {
                Some(Value::Number(word))
            }
            [b'-' | b'0'..=b'9', ..] => Some(Value::Malformed),
            _ => None,
        };
        let Some(value) = value else {
            self.expects = Expects::Broken;
            return;
        };
        self.root_is_null = self.depth == 0 && value == Value::Null;
        let is_member = matches!(
            (field, value),
            (Field::Usage, Value::Null) | (Field::VerboseSetting, Value::Bool(true))
        );
        if field != Field::Intermediate {
            let span =
                (!torn && matches!(value, Value::Number(_))).then_some((tail_at, tail_at + tail.len()));
            visit.value(field, value, span);
        }
        self.after_value();
        if is_member {
            // The line end after a torn word may be no byte of the caller's buffer.
            let end = self.origin + (tail_at + tail.len()) as u64;
            self.bare_member(field, if tail.is_empty() { self.bare_to } else { end });
        }
    }

    /// Returns true if the innermost object is in a member of a usage object that no path names.
    fn is_in_unknown(&self) -> bool {
        let parent = self.depth.checked_sub(1).and_then(|level| self.path.get(level as usize));
        parent.is_some_and(|&node| is_unknown(node))
    }

    /// The node of the innermost object's member.
    fn member(&self, fields: &Fields, key: &[u8]) -> u8 {
        match self.path.get(self.depth as usize - 1) {
            Some(&node) => fields.member(node, key),
            None => NOWHERE,
        }
    }
}

#[inline]
fn is_unknown(node: u8) -> bool {
    matches!(node, UNKNOWN | UNKNOWN_TOKENS)
}

/// The kinds of members that an editor may change: the usage, the timings, their repetition and a flag.
const USAGE: usize = 0;
const SETTING: usize = 3;

#[inline]
fn member_index(field: Field) -> Option<usize> {
    match field {
        Field::Usage => Some(USAGE),
        Field::Timings => Some(1),
        Field::VerboseTimings => Some(2),
        Field::VerboseSetting => Some(SETTING),
        _ => None,
    }
}
