//! The reader of a response body for the meter. It detects the framing if the head does not state it, decodes a
//! compressed body, and scans. It reads a copy: the client receives the body unchanged.

use decode::{Codings, DecodeError, Decoder};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use meter::Body;
use scan::{Dialect, Framing, Names, Scanner, Sink, Tail};

use meter::Passthrough;

/// Reads one response body.
pub(crate) struct ResponseReader {
    dialect: Dialect,
    decoder: Option<Box<Decoder>>,
    sight: BodyFraming,
    /// True if the scanner must report the position of counts.
    locates: bool,
}

/// The framing of a body, as far as it is known.
enum BodyFraming {
    /// Unknown: only white space has arrived.
    Unknown,
    /// Known.
    Known(Box<Scanner>),
    /// The body cannot be read.
    Unreadable,
}

/// The facts of a body at its end.
#[derive(Default)]
pub(crate) struct BodySummary {
    /// The end that the scanner found.
    pub(crate) tail: Tail,
    /// The names in the body.
    pub(crate) names: Names,
    /// The dialect that the body itself names, for an exchange of an unknown one.
    pub(crate) answered: Option<Dialect>,
    /// Frames that could not be read.
    pub(crate) unparsed: u64,
    /// The answer's text, if it was kept and is complete.
    pub(crate) text: Option<Vec<u8>>,
}

/// The readability of a body by its response's head.
pub(crate) enum Readable {
    /// It can be read, with this framing.
    As(Framing),
    /// Its first byte decides: the head states no type, or one that servers send for any content.
    Sniffed,
    /// It cannot be read.
    Not(Passthrough),
}

impl Readable {
    /// Judges the head of a response in `dialect`. A body in an unknown coding is not read. Neither is the plain text of
    /// a transcription: it is the speaker's words, which may look like JSON.
    pub(crate) fn of(dialect: Dialect, headers: &HeaderMap) -> (Self, Codings) {
        let fields = headers.get_all(CONTENT_ENCODING).iter();
        let codings = Codings::read(fields.map(|value| value.as_bytes()));
        if codings == Codings::Unknown {
            return (Self::Not(Passthrough::Encoding), codings);
        }
        let content_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
        let readable = match content_type {
            None => Self::Sniffed,
            Some(value) => match Framing::from_content_type(value) {
                Some(framing) => Self::As(framing),
                None if is_plain(value) && dialect != Dialect::Transcription => Self::Sniffed,
                None => Self::Not(Passthrough::ContentType),
            },
        };
        (readable, codings)
    }
}

impl ResponseReader {
    /// Creates the reader of a body in `dialect`. Without `framing`, the body's first byte decides.
    pub(crate) fn new(dialect: Dialect, framing: Option<Framing>, codings: Codings, locates: bool) -> Self {
        let decoder = match codings {
            Codings::One(coding) => Some(Box::new(Decoder::new(coding))),
            Codings::Identity | Codings::Unknown => None,
        };
        let sight = match framing {
            Some(framing) => BodyFraming::Known(scanner(dialect, framing, locates)),
            None => BodyFraming::Unknown,
        };
        Self { dialect, decoder, sight, locates }
    }

    /// The scanner, once the framing is known.
    #[inline]
    pub(crate) fn scanner(&mut self) -> Option<&mut Scanner> {
        match &mut self.sight {
            BodyFraming::Known(scanner) => Some(scanner),
            BodyFraming::Unknown | BodyFraming::Unreadable => None,
        }
    }

    /// Returns true once the framing is known.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self.sight, BodyFraming::Known(_))
    }

    /// Returns true if the body cannot be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self.sight, BodyFraming::Unreadable)
    }

    /// Reads the next slice. Returns the form of the body if this slice shows it. An error means that the body is not
    /// read any further.
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<Option<Body>, DecodeError> {
        let Self { dialect, decoder, sight, locates } = self;
        if let BodyFraming::Unreadable = sight {
            return Ok(None);
        }
        let mut found = None;
        let mut read = |bytes: &[u8]| {
            if let BodyFraming::Unknown = sight {
                let start = bytes.trim_ascii_start();
                if start.is_empty() {
                    return;
                }
                match sniff(*dialect, start) {
                    Some(framing) => {
                        *sight = BodyFraming::Known(scanner(*dialect, framing, *locates));
                        found = Some(body(framing));
                    }
                    None => *sight = BodyFraming::Unreadable,
                }
            }
            if let BodyFraming::Known(scanner) = sight {
                scanner.feed(bytes, sink);
            }
        };
        match decoder {
            Some(decoder) => decoder.feed(bytes, &mut read)?,
            None => read(bytes),
        }
        Ok(found)
    }

    /// Ends the body, and returns its facts.
    pub(crate) fn end(self, sink: &mut impl Sink) -> BodySummary {
        let BodyFraming::Known(mut scanner) = self.sight else { return BodySummary::default() };
        let tail = scanner.end(sink);
        let (answered, unparsed) = (scanner.response_dialect(), scanner.work().unparsed);
        BodySummary { tail, names: scanner.take_names(), answered, unparsed, text: scanner.take_text() }
    }
}

fn scanner(dialect: Dialect, framing: Framing, locates: bool) -> Box<Scanner> {
    let mut scanner = Box::new(Scanner::new(dialect, framing));
    if locates {
        scanner.locate_usage();
    }
    scanner
}

/// The form in which a body with this framing is metered.
pub(crate) fn body(framing: Framing) -> Body {
    match framing {
        Framing::Json => Body::Whole,
        Framing::Sse | Framing::Ndjson | Framing::Messages => Body::Frames,
    }
}

/// Returns true for `text/plain`, which some servers send for any content.
fn is_plain(content_type: &[u8]) -> bool {
    let end = content_type.iter().position(|&b| b == b';').unwrap_or(content_type.len());
    content_type[..end].trim_ascii().eq_ignore_ascii_case(b"text/plain")
}

/// Detects the framing by the beginning of a body, without white space; `None` if the body cannot be read.
fn sniff(dialect: Dialect, start: &[u8]) -> Option<Framing> {
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start);
    match start {
        [b'{' | b'[', ..] => Some(match dialect {
            Dialect::OllamaChat | Dialect::OllamaGenerate => Framing::Ndjson,
            _ => Framing::Json,
        }),
        [b':', ..] => Some(Framing::Sse),
        _ => {
            let begins = |field: &&[u8]| start.starts_with(field) || field.starts_with(start);
            [&b"data:"[..], b"event:", b"id:", b"retry:"].iter().any(begins).then_some(Framing::Sse)
        }
    }
}
