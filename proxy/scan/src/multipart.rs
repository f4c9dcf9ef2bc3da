//! The few short fields of a `multipart/form-data` request (RFC 7578, RFC 2046 §5.1) that say what
//! a transcription is asked for, read as the body passes. Files are walked over, never kept; what
//! is kept is bounded by [`FIELD_BYTES`] a field, whatever arrives.
//!
//! A part begins after a line that is `--` and the boundary; its header lines end in CRLF (a lone
//! LF is read, too) and a blank one, and its body goes on to the next such line. The body is
//! compared with the delimiter byte by byte, and one pending match is all there is to remember:
//! a delimiter begins with a CR, and has none inside, so a mismatch can only begin a new match at
//! the byte it happened on.

use memchr::memchr;

use crate::dialect::transcription;
use crate::flag;
use crate::limits::{BOUNDARY_BYTES, FIELD_BYTES, PART_HEADER_BYTES};
use crate::name::Name;
use crate::short::Short;

/// Reads a form slice by slice.
#[derive(Debug)]
pub struct MultipartFields {
    /// CR, LF, two hyphens and the boundary.
    delimiter: [u8; BOUNDARY_BYTES + 4],
    delimiter_len: usize,
    state: State,
    line: Short<PART_HEADER_BYTES>,
    value: Short<FIELD_BYTES>,
    /// Which field the part is.
    part: Option<usize>,
    /// Values of [`FIELDS`], as far as they were said.
    values: [Option<Short<FIELD_BYTES>>; FIELDS.len()],
    /// One of its values of `response_format` is one whose transcript counts no tokens.
    plain_transcript: bool,
    /// A part's name stands beyond the bytes that are kept of its header line.
    is_unread: bool,
}

/// The fields that are kept.
const FIELDS: [&[u8]; 4] = [b"model", b"stream", b"stream_include_usage", b"response_format"];

/// The place of `response_format` in [`FIELDS`].
const FORMAT: usize = 3;

/// Where in the form we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a part's body or the preamble; so many bytes of a delimiter have been seen.
    Body(usize),
    /// After a delimiter, on its line: a part begins on the next one, unless this is the last.
    Delimited {
        /// Hyphens seen.
        hyphens: u8,
    },
    /// On a header line.
    Header,
    /// After the last part, or not a form at all.
    Over,
}

impl MultipartFields {
    /// A reader of a form whose parts are parted by `boundary`, as the content type says. `None` if
    /// that is no boundary: empty, or longer than 70 bytes (RFC 2046 §5.1.1), or of two lines.
    pub fn new(boundary: &[u8]) -> Option<Self> {
        let is_sound = (1..=BOUNDARY_BYTES).contains(&boundary.len())
            && !boundary.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
        is_sound.then(|| {
            let mut delimiter = [0; BOUNDARY_BYTES + 4];
            delimiter[..4].copy_from_slice(b"\r\n--");
            delimiter[4..4 + boundary.len()].copy_from_slice(boundary);
            Self {
                delimiter,
                delimiter_len: boundary.len() + 4,
                // The line end before the first delimiter may be the beginning of the body.
                state: State::Body(2),
                line: Short::default(),
                value: Short::default(),
                part: None,
                values: [None; FIELDS.len()],
                plain_transcript: false,
                is_unread: false,
            }
        })
    }

    /// The same, out of a `Content-Type`. `None` if that is no `multipart/form-data` with a
    /// boundary.
    pub fn from_content_type(value: &[u8]) -> Option<Self> {
        let end = value.iter().position(|&b| b == b';').unwrap_or(value.len());
        if !value[..end].trim_ascii().eq_ignore_ascii_case(b"multipart/form-data") {
            return None;
        }
        Self::new(parameter(&value[end..], b"boundary")?)
    }

    /// Reads the next slice.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                State::Body(0) => {
                    let stop = memchr(b'\r', &bytes[at..]).map_or(bytes.len(), |n| at + n);
                    self.keep(&bytes[at..stop]);
                    at = stop;
                    if at < bytes.len() {
                        self.state = State::Body(1);
                        at += 1;
                    }
                }
                State::Body(seen) if seen == self.delimiter_len => {
                    self.end_part();
                    self.state = State::Delimited { hyphens: 0 };
                }
                State::Body(seen) if bytes[at] == self.delimiter[seen] => {
                    self.state = State::Body(seen + 1);
                    at += 1;
                }
                State::Body(seen) => {
                    if self.part.is_some() {
                        self.value.push(&self.delimiter[..seen]);
                    }
                    self.state = State::Body(0);
                }
                State::Delimited { hyphens } => {
                    self.state = match bytes[at] {
                        b'-' if hyphens == 1 => State::Over,
                        b'-' => State::Delimited { hyphens: 1 },
                        b'\n' => State::Header,
                        b'\r' | b' ' | b'\t' => State::Delimited { hyphens: 0 },
                        // Whose line goes on broke the rule that no part has the delimiter in it.
                        _ => State::Body(0),
                    };
                    at += 1;
                }
                State::Header => {
                    let stop = memchr(b'\n', &bytes[at..]).map(|n| at + n);
                    self.line.push(&bytes[at..stop.unwrap_or(bytes.len())]);
                    at = bytes.len();
                    if let Some(stop) = stop {
                        at = stop + 1;
                        self.end_header();
                    }
                }
                State::Over => return,
            }
        }
    }

    /// The model asked for, cut to a name's length; empty if it was not said.
    pub fn model(&self) -> Name {
        self.values[0].as_ref().map(|kept| Name::cut(kept.word())).unwrap_or_default()
    }

    /// Whether frames are asked for, if that was said.
    pub fn stream(&self) -> Option<bool> {
        self.flag(1)
    }

    /// Whether usage is asked for, if that was said.
    pub fn include_usage(&self) -> Option<bool> {
        self.flag(2)
    }

    /// Returns whether a transcript is asked for in a form that has no place for a count of tokens. Of two fields some
    /// servers read the first and some the last, so each counts.
    pub fn plain_transcript(&self) -> bool {
        self.plain_transcript
    }

    /// Returns whether the last part was over, and every part's name was read.
    pub fn is_whole(&self) -> bool {
        self.state == State::Over && !self.is_unread
    }

    fn flag(&self, field: usize) -> Option<bool> {
        flag::word(self.values[field].as_ref().filter(|kept| !kept.cut)?.word().trim_ascii())
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.part.is_some() {
            self.value.push(bytes);
        }
    }

    fn end_part(&mut self) {
        if let Some(part) = self.part.take() {
            self.plain_transcript |= part == FORMAT && !transcription::may_count_tokens(self.value.word());
            self.values[part] = Some(self.value);
        }
        self.value.clear();
        self.line.clear();
    }

    /// A header line is over; a blank one ends the header.
    fn end_header(&mut self) {
        let line = self.line.word();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() && !self.line.cut {
            self.state = State::Body(0);
        } else if !self.line.cut {
            self.part = field_of(line).unwrap_or(self.part);
        } else {
            self.is_unread |= disposition(line).is_some_and(|fields| parameter(fields, b"name").is_none());
        }
        self.line.clear();
    }
}

/// Which field a header line names: `None` if it is not the line that names one, `Some(None)` if it
/// is and the field is none of ours, or a file.
fn field_of(line: &[u8]) -> Option<Option<usize>> {
    let parameters = disposition(line)?;
    let name = parameter(parameters, b"name");
    let is_file = parameter(parameters, b"filename").is_some();
    Some(name.filter(|_| !is_file).and_then(|name| FIELDS.iter().position(|&field| field == name)))
}

/// Returns the value of a `Content-Disposition`; `None` of another header line.
fn disposition(line: &[u8]) -> Option<&[u8]> {
    let colon = memchr(b':', line)?;
    line[..colon].trim_ascii().eq_ignore_ascii_case(b"content-disposition").then_some(&line[colon + 1..])
}

/// A parameter of a header's value: what stands between the quotes, or up to the next semicolon.
fn parameter<'a>(mut value: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    loop {
        let semicolon = memchr(b';', value)?;
        value = value[semicolon + 1..].trim_ascii_start();
        let equals = value.iter().position(|b| matches!(b, b'=' | b';'))?;
        if value[equals] == b';' {
            value = &value[equals..];
            continue;
        }
        let is_it = value[..equals].trim_ascii().eq_ignore_ascii_case(name);
        value = value[equals + 1..].trim_ascii_start();
        let (word, rest) = match value.strip_prefix(b"\"") {
            Some(quoted) => {
                let end = memchr(b'"', quoted)?;
                (&quoted[..end], &quoted[end + 1..])
            }
            None => {
                let end = memchr(b';', value).unwrap_or(value.len());
                (value[..end].trim_ascii_end(), &value[end..])
            }
        };
        if is_it {
            return Some(word);
        }
        value = rest;
    }
}
