//! WebSocket frames (RFC 6455) of one direction, read in place as they pass. [`FrameReader`] gets slices that are cut
//! anywhere and yields the messages in them:
//!
//! ```
//! use websocket::{FrameReader, Step};
//!
//! let mut reader = FrameReader::new();
//! let (mut at, mut text) = (0, Vec::new());
//! let slice = b"\x81\x02hi\x89\x00";
//! while let Some(step) = reader.step(slice, &mut at).expect("valid framing") {
//!     match step {
//!         Step::Payload(bytes) => text.extend_from_slice(bytes),
//!         Step::End => assert_eq!(text, b"hi"),
//!         Step::Begin | Step::Control(_) => {}
//!     }
//! }
//! assert_eq!(at, slice.len());
//! ```
//!
//! Laws: no clock, no I/O, no allocation after [`FrameReader::new`], and no copy but one: masked payload is unmasked
//! into a buffer of [`UNMASKED_BYTES`], so that the slice itself stays unchanged. Frames are read as leniently as by
//! any server or client, because the encoding of a frame must not decide whether its message is metered: frames of
//! either direction may be masked or not, and a length may take more bytes than it needs.

mod close;
mod frame;

pub use close::CloseFrame;
pub use frame::{Control, FrameReader, Step, UNMASKED_BYTES, Violation};
