//! Decodes compressed bodies for the meter. The client receives the server's bytes unchanged; a [`Decoder`]
//! reads a copy of the same slices and passes on the decoded bytes:
//!
//! ```
//! use decode::{Codings, Decoder};
//!
//! let Codings::One(coding) = Codings::read([&b"gzip"[..]].into_iter()) else { panic!() };
//! let mut decoder = Decoder::new(coding);
//! let body: &[u8] = &[
//!     0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, // gzip's header,
//!     1, 2, 0, 253, 255, b'h', b'i', // one stored block,
//!     0xac, 0x2a, 0x93, 0xd8, 2, 0, 0, 0, // its checksum and size
//! ];
//! let mut plain = Vec::new();
//! for slice in body.chunks(7) {
//!     decoder.feed(slice, &mut |piece| plain.extend_from_slice(piece)).unwrap();
//! }
//! decoder.end().unwrap();
//! assert_eq!(plain, b"hi");
//! ```
//!
//! Laws: no HTTP, no I/O, no clock. The bytes that a slice completes come out with that slice, so a stream
//! that is flushed per frame keeps its timing. [`limits`] bounds the memory and the work per slice: a bomb
//! costs no more than its detection.
//!
//! Modules stand in the order of the bytes; the four codings have the same methods.

mod coding;
mod decoder;
mod step;

mod brotli;
mod deflate;
mod gzip;
mod zstd;

mod budget;
pub mod limits;

pub use budget::DecodeError;
pub use coding::{Coding, Codings};
pub use decoder::Decoder;
