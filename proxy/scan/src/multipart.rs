//! The short fields of a `multipart/form-data` request (RFC 7578, RFC 2046 §5.1) for a transcription, read
//! as the body passes. Files are skipped, never kept; [`FIELD_BYTES`] bounds each field.
//!
//! A part begins after a line of `--` and the boundary. Its header lines end in CRLF (a lone LF is accepted)
//! and an empty line, and its body extends to the next delimiter. The body is compared with the delimiter
//! byte by byte, and one pending match is the only state: a delimiter begins with its only CR, so a mismatch
//! can only begin a new match at the byte where it happened.

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
    /// The index of the part's field.
    part: Option<usize>,
    /// Values of [`FIELDS`], as far as they were present.
    values: [Option<Short<FIELD_BYTES>>; FIELDS.len()],
    /// A value of `response_format` whose transcript has no token count was present.
    plain_transcript: bool,
    /// A part's name is beyond the kept bytes of its header line.
    is_unread: bool,
}

/// The fields that are kept.
const FIELDS: [&[u8]; 4] = [b"model", b"stream", b"stream_include_usage", b"response_format"];

/// The index of `response_format` in [`FIELDS`].
const FORMAT: usize = 3;

/// The position in the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a part's body or the preamble: bytes of a delimiter matched so far.
    Body(usize),
    /// After a delimiter, on its line: a part begins on the next line, unless this is the last.
    Delimited {
        /// Hyphens seen.
        hyphens: u8,
    },
    /// On a header line.
    Header,
    /// After the last part, or in a body that is not a form.
    Over,
}

impl MultipartFields {
    /// A reader of a form with this `boundary`. `None` if it is invalid: empty, longer than 70 bytes
    /// (RFC 2046 §5.1.1), or of two lines.
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
                // The line end before the first delimiter may be missing at the start of the body.
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

    /// A reader for this `Content-Type`. `None` unless that is `multipart/form-data` with a boundary.
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
                        // A longer line is no delimiter line, although parts must not contain one.
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

    /// The requested model, cut to a name's length; empty if absent.
    pub fn model(&self) -> Name {
        self.values[0].as_ref().map(|kept| Name::cut(kept.word())).unwrap_or_default()
    }

    /// True if a stream is requested; `None` if absent.
    pub fn stream(&self) -> Option<bool> {
        self.flag(1)
    }

    /// True if usage is requested; `None` if absent.
    pub fn include_usage(&self) -> Option<bool> {
        self.flag(2)
    }

    /// Returns true if a requested transcript format has no token count. With two fields, some servers read
    /// the first and some the last, so each counts.
    pub fn plain_transcript(&self) -> bool {
        self.plain_transcript
    }

    /// Returns true if the last part ended and every part's name was read.
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

    /// Ends a header line; an empty one ends the header.
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

/// Returns the field that a header line names: `None` for another header, `Some(None)` for an unknown field
/// or a file.
fn field_of(line: &[u8]) -> Option<Option<usize>> {
    let parameters = disposition(line)?;
    let name = parameter(parameters, b"name");
    let is_file = parameter(parameters, b"filename").is_some();
    Some(name.filter(|_| !is_file).and_then(|name| FIELDS.iter().position(|&field| field == name)))
}

/// Returns the value of a `Content-Disposition`; `None` for another header.
fn disposition(line: &[u8]) -> Option<&[u8]> {
    let colon = memchr(b':', line)?;
    line[..colon].trim_ascii().eq_ignore_ascii_case(b"content-disposition").then_some(&line[colon + 1..])
}

/// Returns a parameter of a header value: the text between the quotes, or up to the next semicolon.
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
