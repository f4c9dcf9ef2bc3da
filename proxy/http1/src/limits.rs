//! The bounds of a message. Beyond them a request gets an error, and a response is an error of its server.

/// Bytes of a head, with its empty line.
pub const HEAD_BYTES: usize = 64 * 1024;

/// Fields of a head, and of a trailer section.
pub const FIELDS: usize = 100;

/// Bytes of a request line: almost a whole head, because queries have no usual length.
pub const REQUEST_LINE_BYTES: usize = 65_500;

/// Empty lines before a request line; RFC 9112 §2.2 asks for one at least.
pub const EMPTY_LINES: usize = 2;

/// Hexadecimal digits of a chunk's size: less than 2^52 bytes.
pub const SIZE_DIGITS: u8 = 13;

/// Bytes of the extensions of one chunk.
pub const EXTENSION_BYTES: u16 = 256;

/// Bytes of the extensions of all chunks of a body.
pub const EXTENSIONS_BYTES: u16 = 4 * 1024;

/// Bytes of a trailer section, with its empty line.
pub const TRAILER_BYTES: usize = 16 * 1024;
