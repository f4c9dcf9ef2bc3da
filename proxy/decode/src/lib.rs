//! Compressed bytes to plain ones, for the meter. The client is sent what the server sent; a
//! [`Decoder`] is shown a copy of the same slices and hands on what they decode to:
//!
//! ```
//! use decode::{Codings, Decoder};
//!
//! let Codings::One(coding) = Codings::read([&b"gzip"[..]].into_iter()) else { panic!() };
//! let mut decoder = Decoder::new(coding);
//! let body: &[u8] = &[
//!     0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, // gzip's header,
//!     1, 2, 0, 253, 255, b'h', b'i', // one stored block,
//!     0xac, 0x2a, 0x93, 0xd8, 2, 0, 0, 0, // its check sum and size
//! ];
//! let mut plain = Vec::new();
//! for slice in body.chunks(7) {
//!     decoder.feed(slice, &mut |piece| plain.extend_from_slice(piece)).unwrap();
//! }
//! decoder.end().unwrap();
//! assert_eq!(plain, b"hi");
//! ```
//!
//! Laws: knows no HTTP; no I/O, no clock; what a slice completes comes out with that slice, so that
//! a stream flushed per frame keeps its timing; memory is bounded by [`limits`], and so is the work
//! a slice can make (a bomb costs what it costs to see that it is one).
//!
//! Modules in the order of the bytes; the four codings have the same methods.

mod coding;
mod decoder;
mod step;

mod brotli;
mod deflate;
mod gzip;
mod zstd;

mod budget;
pub mod limits;

pub use budget::GaveUp;
pub use coding::{Coding, Codings};
pub use decoder::Decoder;
