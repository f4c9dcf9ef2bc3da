//! The short fields of a `multipart/form-data` request (RFC 7578, RFC 2046 §5.1) for a transcription, read
//! as the body passes. Files are skipped, never kept; [`FIELD_BYTES`] bounds each field.
//!
//! A part begins after a line of `--` and the boundary. Its header lines end in CRLF (a lone LF is accepted)
//! and an empty line, and its body extends to the next delimiter. The body is compared with the delimiter
//! byte by byte, and one pending match is the only state: a delimiter begins with its only CR, so a mismatch
//! can only begin a new match at the byte where it happened.

use memchr::memchr;

use crate::dialect::may_count_tokens;
use crate::flag;
use crate::limits::{BOUNDARY_BYTES, FIELD_BYTES, PART_HEADER_BYTES};
use crate::name::Name;
use crate::request::OtherModels;
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
    /// The first of several models.
    first_model: Option<Short<FIELD_BYTES>>,
    /// A value of `response_format` whose transcript has no token count was present.
    plain_transcript: bool,
    /// The part has a disposition.
    is_named: bool,
    /// The name of some part is not certain: beyond the kept bytes of its header line, or given twice. Parsers differ in
    /// which of two names they use.
    is_unread: bool,
}

/// The fields that are kept.
const FIELDS: [&[u8]; 4] = [b"model", b"stream", b"stream_include_usage", b"response_format"];

/// The index of `model` in [`FIELDS`].
const MODEL: usize = 0;

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
                first_model: None,
                plain_transcript: false,
                is_named: false,
                is_unread: false,
            }
        })
    }

    /// A reader for this `Content-Type`. `None` unless that is `multipart/form-data` with one boundary.
    pub fn from_content_type(value: &[u8]) -> Option<Self> {
        let end = value.iter().position(|&b| b == b';').unwrap_or(value.len());
        if !value[..end].trim_ascii().eq_ignore_ascii_case(b"multipart/form-data") {
            return None;
        }
        Self::new(parameter(&value[end..], b"boundary").ok()??)
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
                    let part = &bytes[at..stop.unwrap_or(bytes.len())];
                    let kept = self.line.word().len();
                    self.line.push(part);
                    // A parameter beyond the kept bytes may be a second name.
                    let line = self.line.word();
                    self.is_unread |=
                        part[line.len() - kept..].contains(&b'=') && disposition(line).is_some();
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

    /// The requested model, cut to a name's length; empty if absent. Of several, the last.
    pub fn model(&self) -> Name {
        self.values[MODEL].as_ref().map(|kept| Name::cut(kept.word())).unwrap_or_default()
    }

    /// The first of several models, and the names of which a model is a list. Some servers read the first model, and some
    /// the last.
    pub fn other_models(&self) -> Option<Box<OtherModels>> {
        let kept = |kept: &Option<Short<FIELD_BYTES>>| kept.map(|kept| kept.word().to_vec());
        let mut others = Box::<OtherModels>::default();
        kept(&self.first_model).iter().for_each(|first| others.add(first));
        kept(&self.values[MODEL]).iter().for_each(|model| others.add_parts(model));
        Some(others).filter(|others| !others.names().is_empty())
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

    /// Returns true if the last part ended and the name of every part is certain.
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
            self.plain_transcript |= part == FORMAT && !may_count_tokens(self.value.word());
            let earlier = self.values[part].replace(self.value);
            if part == MODEL {
                self.first_model = self.first_model.or(earlier);
            }
        }
        self.is_named = false;
        self.value.clear();
        self.line.clear();
    }

    /// Ends a header line; an empty one ends the header.
    fn end_header(&mut self) {
        let line = self.line.word();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() && !self.line.cut {
            self.state = State::Body(0);
        } else if let Some(parameters) = disposition(line) {
            let name = parameter(parameters, b"name");
            self.is_unread |= self.is_named || name.is_err() || self.line.cut && name == Ok(None);
            self.is_named = true;
            let is_file = self.line.cut || has_parameter(parameters, b"filename");
            let name = name.ok().flatten().filter(|_| !is_file);
            // `model[]` is an element of a list: some servers take the last.
            let name = name.and_then(|name| name.split(|&byte| byte == b'[').next());
            self.part = name.and_then(|name| FIELDS.iter().position(|&field| field == name));
        }
        self.line.clear();
    }
}

/// Returns the value of a `Content-Disposition`; `None` for another header.
fn disposition(line: &[u8]) -> Option<&[u8]> {
    let colon = memchr(b':', line)?;
    line[..colon].trim_ascii().eq_ignore_ascii_case(b"content-disposition").then_some(&line[colon + 1..])
}

/// A parameter that is given twice, or in a form of which some parsers know nothing (`name*`, RFC 8187).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ambiguous;

/// Returns a parameter of a header value.
fn parameter<'a>(value: &'a [u8], name: &[u8]) -> Result<Option<&'a [u8]>, Ambiguous> {
    let mut found = parameters(value).filter(|(key, _)| base(key).eq_ignore_ascii_case(name));
    match (found.next(), found.next()) {
        (None, _) => Ok(None),
        (Some((key, word)), None) if key.len() == name.len() => Ok(Some(word)),
        _ => Err(Ambiguous),
    }
}

/// Returns true if a header value has a parameter, in any form.
fn has_parameter(value: &[u8], name: &[u8]) -> bool {
    parameters(value).any(|(key, _)| base(key).eq_ignore_ascii_case(name))
}

/// The name of a parameter without the marks of RFC 2231 and RFC 8187: `*`, and the number of a piece.
fn base(key: &[u8]) -> &[u8] {
    key.split(|&byte| byte == b'*').next().unwrap_or(key)
}

/// The parameters of a header value: the name, and the text between the quotes, or up to the next semicolon.
fn parameters(mut value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        loop {
            let semicolon = memchr(b';', value)?;
            value = value[semicolon + 1..].trim_ascii_start();
            let equals = value.iter().position(|b| matches!(b, b'=' | b';'))?;
            if value[equals] == b';' {
                value = &value[equals..];
                continue;
            }
            let key = value[..equals].trim_ascii();
            value = value[equals + 1..].trim_ascii_start();
            let word;
            (word, value) = match value.strip_prefix(b"\"") {
                Some(quoted) => {
                    let end = memchr(b'"', quoted)?;
                    (&quoted[..end], &quoted[end + 1..])
                }
                None => {
                    let end = memchr(b';', value).unwrap_or(value.len());
                    (value[..end].trim_ascii_end(), &value[end..])
                }
            };
            return Some((key, word));
        }
    })
}
