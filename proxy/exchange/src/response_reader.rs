//! The reader of a response body for the meter. It decodes a compressed body, detects the framing by the first bytes,
//! and scans. The content type is a hint: servers label streams as JSON, as text or not at all. It reads a copy: the
//! client receives the body unchanged.

use std::sync::Arc;

use decode::{Codings, DecodeError, Decoder};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use meter::{Body, Passthrough, Stated};
use scan::{Dialect, Event, Extent, Framing, Names, Scanner, Sink, Tail};

/// Reads one response body.
pub(crate) struct ResponseReader {
    dialect: Dialect,
    decoder: Option<Box<Decoder>>,
    sight: BodyFraming,
    label: Label,
}

/// The framing of a body, as far as it is known.
enum BodyFraming {
    /// Only white space has arrived.
    Stated(Box<Scanner>),
    /// The first bytes showed it.
    Known(Box<Scanner>),
    /// The body cannot be read.
    Unreadable,
}

/// The content type of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// None.
    Absent,
    /// That of a framing.
    Of(Framing),
    /// Another one.
    Other,
}

impl Label {
    /// The framing that it names.
    pub(crate) fn framing(self) -> Option<Framing> {
        match self {
            Self::Of(framing) => Some(framing),
            Self::Absent | Self::Other => None,
        }
    }

    /// The label, if a body with this framing has another one.
    fn mistaken(self, framing: Framing) -> Option<Stated> {
        match self {
            Self::Absent => None,
            Self::Of(stated) if stated == framing => None,
            Self::Of(Framing::Sse) => Some(Stated::Sse),
            Self::Of(Framing::Ndjson) => Some(Stated::Ndjson),
            Self::Of(Framing::Json | Framing::Messages) => Some(Stated::Json),
            Self::Of(Framing::EventStream) | Self::Other => Some(Stated::Other),
        }
    }
}

/// The facts of a body at its end.
#[derive(Default)]
pub(crate) struct BodySummary {
    /// The end that the scanner found.
    pub(crate) tail: Tail,
    /// The names in the body.
    pub(crate) names: Names,
    /// The id of work whose result is fetched later, in another member than the answer's own id.
    pub(crate) job: Option<Arc<str>>,
    /// The dialect that the body itself names, for an exchange of an unknown one.
    pub(crate) answered: Option<Dialect>,
    /// Frames that could not be read.
    pub(crate) unparsed: u64,
    /// The content type, if it is wrong.
    pub(crate) mislabelled: Option<Stated>,
    /// The body turned out to be unreadable.
    pub(crate) is_unreadable: bool,
    /// The answer's text, if it was kept and is complete.
    pub(crate) text: Option<Vec<u8>>,
}

/// The readability of a body by its response's head.
pub(crate) enum Readable {
    /// Its first bytes decide, with the help of this label.
    As(Label),
    /// It cannot be read.
    Not(Passthrough),
}

impl Readable {
    /// Judges the head of a response in `dialect`. A body in an unknown coding is not read, and neither is one of media.
    pub(crate) fn of(dialect: Dialect, headers: &HeaderMap) -> (Self, Codings) {
        let fields = headers.get_all(CONTENT_ENCODING).iter();
        let codings = Codings::read(fields.map(|value| value.as_bytes()));
        if codings == Codings::Unknown {
            return (Self::Not(Passthrough::Encoding), codings);
        }
        let readable = match headers.get(CONTENT_TYPE).map(|value| value.as_bytes()) {
            None => Self::As(Label::Absent),
            Some(value) => match Framing::from_content_type(value) {
                Some(framing) => Self::As(Label::Of(framing)),
                None if is_content(dialect, value) => Self::Not(Passthrough::ContentType),
                None => Self::As(Label::Other),
            },
        };
        (readable, codings)
    }
}

impl ResponseReader {
    /// Creates the reader of a body in `dialect`. `locates`: the scanner must report the position of counts.
    pub(crate) fn new(dialect: Dialect, label: Label, codings: Codings, locates: bool) -> Self {
        let decoder = match codings {
            Codings::One(coding) => Some(Box::new(Decoder::new(coding))),
            Codings::Identity | Codings::Unknown => None,
        };
        let mut scanner = Box::new(Scanner::new(dialect, label.framing().unwrap_or(Framing::Json)));
        scanner.follow_answer();
        if locates {
            scanner.locate_usage();
        }
        Self { dialect, decoder, sight: BodyFraming::Stated(scanner), label }
    }

    /// Returns true if a body that begins with these bytes is a stream.
    pub(crate) fn shows_stream(&self, beginning: &[u8]) -> bool {
        let start = beginning.trim_ascii_start();
        match sniff(self.dialect, self.label, start).filter(|_| !start.is_empty()) {
            // The first line of several looks like a whole body.
            Some(Framing::Json) => {
                let mut scanner = Scanner::new(self.dialect, Framing::Json);
                scanner.feed(start, &mut Discard);
                scanner.framing() != Framing::Json
            }
            framing => framing.is_some(),
        }
    }

    /// The scanner, unless the body is unreadable.
    #[inline]
    pub(crate) fn scanner(&mut self) -> Option<&mut Scanner> {
        match &mut self.sight {
            BodyFraming::Stated(scanner) | BodyFraming::Known(scanner) => Some(scanner),
            BodyFraming::Unreadable => None,
        }
    }

    /// Returns true if the framing is known, or stated.
    pub(crate) fn is_known(&self) -> bool {
        match self.sight {
            BodyFraming::Known(_) => true,
            BodyFraming::Stated(_) => self.label.framing().is_some(),
            BodyFraming::Unreadable => false,
        }
    }

    /// Returns true if the body cannot be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self.sight, BodyFraming::Unreadable)
    }

    /// Reads the next slice. Returns the framing of the body if this slice shows it, or another one than before. An
    /// error means that the body is not read any further.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Option<Framing>, DecodeError> {
        let Self { dialect, decoder, sight, label } = self;
        let mut found = None;
        let mut read = |bytes: &[u8]| match sight {
            BodyFraming::Known(scanner) => {
                let is_whole = scanner.framing() == Framing::Json;
                scanner.feed(bytes, sink);
                if is_whole && scanner.framing() == Framing::Ndjson {
                    found = Some(Framing::Ndjson);
                }
            }
            BodyFraming::Stated(scanner) => match bytes.trim_ascii_start() {
                [] => scanner.feed(bytes, sink),
                start => {
                    found = sniff(*dialect, *label, start);
                    let sniffed = std::mem::replace(sight, BodyFraming::Unreadable);
                    if let (BodyFraming::Stated(mut scanner), Some(framing)) = (sniffed, &mut found) {
                        if scanner.framing() != *framing {
                            scanner.reframe(*framing);
                        }
                        scanner.feed(bytes, sink);
                        *framing = scanner.framing();
                        *sight = BodyFraming::Known(scanner);
                    }
                }
            },
            BodyFraming::Unreadable => {}
        };
        match decoder {
            Some(decoder) => decoder.feed(bytes, &mut read)?,
            None => read(bytes),
        }
        Ok(found)
    }

    /// Ends the body, and returns its facts.
    pub(crate) fn end(self, sink: &mut impl Sink) -> BodySummary {
        let (mut scanner, mislabelled) = match self.sight {
            BodyFraming::Known(scanner) => {
                let mislabelled = self.label.mistaken(scanner.framing());
                (scanner, mislabelled)
            }
            BodyFraming::Stated(scanner) => (scanner, None),
            BodyFraming::Unreadable => return BodySummary { is_unreadable: true, ..BodySummary::default() },
        };
        BodySummary {
            tail: scanner.end(sink),
            answered: scanner.response_dialect(),
            unparsed: scanner.work().unparsed,
            names: scanner.take_names(),
            job: scanner.take_job(),
            text: scanner.take_text(),
            mislabelled,
            is_unreadable: false,
        }
    }
}

/// Discards events.
struct Discard;

impl Sink for Discard {
    fn event(&mut self, _: Event) {}

    fn frame(&mut self, _: Extent) {}
}

/// The form in which a body with this framing is metered.
pub(crate) fn body(framing: Framing) -> Body {
    match framing {
        Framing::Json => Body::Whole,
        Framing::Sse | Framing::Ndjson | Framing::Messages | Framing::EventStream => Body::Frames,
    }
}

/// Returns true for a content type of media, and for any text in place of a transcript: it is the speaker's words, which
/// may look like JSON.
fn is_content(dialect: Dialect, content_type: &[u8]) -> bool {
    let end = content_type.iter().position(|&b| b == b'/').unwrap_or(content_type.len());
    let is = |name: &&str| content_type[..end].trim_ascii().eq_ignore_ascii_case(name.as_bytes());
    ["image", "audio", "video", "font", "multipart"].iter().any(is)
        || dialect == Dialect::Transcription && is(&"text")
}

/// Detects the framing by the beginning of a body, without white space. A beginning that is neither a value's nor an
/// event's is what the label says; `None` if that names none.
fn sniff(dialect: Dialect, label: Label, start: &[u8]) -> Option<Framing> {
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start);
    match start {
        [b'{' | b'[', ..] => Some(match (label, dialect) {
            (Label::Of(Framing::Ndjson), _) => Framing::Ndjson,
            (Label::Absent | Label::Other, Dialect::OllamaChat | Dialect::OllamaGenerate) => Framing::Ndjson,
            // Another value may follow.
            _ => Framing::Json,
        }),
        [b':', ..] => Some(Framing::Sse),
        _ => {
            let begins = |field: &&[u8]| start.starts_with(field) || field.starts_with(start);
            let is_event = [&b"data:"[..], b"event:", b"id:", b"retry:"].iter().any(begins);
            if is_event { Some(Framing::Sse) } else { label.framing() }
        }
    }
}
