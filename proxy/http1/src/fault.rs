//! Faults of a message.

/// A fault of a head or of its framing fields. The proxy answers such a request with [`Fault::status`]; such a response is
/// the fault of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// More empty lines before a request than [`crate::limits::EMPTY_LINES`], or any before a response.
    EmptyLines,
    /// A line of a request ends with LF alone.
    BareLf,
    /// A byte or a line that the grammar of HTTP excludes.
    Syntax,
    /// A request target with bytes that no URL has.
    Target,
    /// Another version than HTTP/1.0 and HTTP/1.1.
    Version,
    /// A request line longer than [`crate::limits::REQUEST_LINE_BYTES`].
    LongRequestLine,
    /// A head of more bytes than [`crate::limits::HEAD_BYTES`].
    LongHead,
    /// More fields than [`crate::limits::FIELDS`].
    ManyFields,
    /// A `Content-Length` that is not one number below 2^63.
    Length,
    /// `Content-Length` beside `Transfer-Encoding`.
    LengthAndCoding,
    /// A `Transfer-Encoding` that is not `chunked` once, or in HTTP/1.0.
    Coding,
    /// One unknown coding in `Transfer-Encoding`.
    UnknownCoding,
}

impl Fault {
    /// The status code of the answer to such a request.
    pub const fn status(self) -> u16 {
        match self {
            Self::LongRequestLine => 414,
            Self::LongHead | Self::ManyFields => 431,
            Self::UnknownCoding => 501,
            Self::Version => 505,
            _ => 400,
        }
    }

    /// The fault, for people.
    pub const fn message(self) -> &'static str {
        match self {
            Self::EmptyLines => "empty lines stand before the message",
            Self::BareLf => "a line of the head ends with LF alone",
            Self::Syntax => "the head is not valid HTTP",
            Self::Target => "the request target has bytes that no URL has",
            Self::Version => "the version is neither HTTP/1.0 nor HTTP/1.1",
            Self::LongRequestLine => "the request line is longer than 65,500 bytes",
            Self::LongHead => "the head is longer than 64 KiB",
            Self::ManyFields => "the head has more than 100 fields",
            Self::Length => "Content-Length is not one number",
            Self::LengthAndCoding => "Content-Length stands beside Transfer-Encoding",
            Self::Coding => "Transfer-Encoding is not \"chunked\" in one field of HTTP/1.1",
            Self::UnknownCoding => "the coding in Transfer-Encoding is unknown",
        }
    }
}

/// The fault of a body's framing or of its trailer section. The bytes behind it cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;
