//! The reader of a response body for the meter: it sniffs where the type is missing, decodes where the body is
//! compressed, and scans. What it reads is a side copy; the client gets the body as it came.

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
    /// Frames shall say where their usage stands.
    locates: bool,
}

/// The framing of a body, as far as it is known.
enum BodyFraming {
    /// Not yet: nothing but white space came.
    Unknown,
    /// It is.
    Known(Box<Scanner>),
    /// The body is of no kind that can be read.
    Unreadable,
}

/// The facts of a body at its end.
#[derive(Default)]
pub(crate) struct BodySummary {
    /// The end that the scanner found.
    pub(crate) tail: Tail,
    /// The names in the body.
    pub(crate) names: Names,
    /// Of an answer of no known dialect: the one that it says it is of.
    pub(crate) answered: Option<Dialect>,
    /// Frames that could not be read.
    pub(crate) unparsed: u64,
    /// The answer's text, if it was kept and is all there.
    pub(crate) text: Option<Vec<u8>>,
}

/// The readability of a body by its response's head.
pub(crate) enum Readable {
    /// It can be read, in this way.
    As(Framing),
    /// Its type is missing, or as good as missing: the first byte will tell.
    Sniffed,
    /// It cannot.
    Not(Passthrough),
}

impl Readable {
    /// Judges the head of a response in `dialect`. A body in a coding we do not know is not guessed at, and the
    /// plain text of a transcription is the speaker's words, whatever they look like.
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
    /// A reader of a body in `dialect`. `framing` is found out if it is not given.
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

    /// Returns true if the body is of no kind that can be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self.sight, BodyFraming::Unreadable)
    }

    /// Reads the next slice. Says how the body can be read if that was found out only now, and
    /// fails if it has to be given up.
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

    /// The body is over.
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

/// Tells the framing by the first byte that is no white space. Anything else stays unread.
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
