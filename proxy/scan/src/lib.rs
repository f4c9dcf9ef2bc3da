//! Bytes to events. A [`Scanner`] is handed a response body slice by slice, as it passes, and says
//! what the frames mean in one closed vocabulary:
//!
//! ```
//! use scan::{Dialect, Event, Framing, Scanner, Sink};
//!
//! struct Print;
//! impl Sink for Print {
//!     fn event(&mut self, event: Event) { println!("{event:?}"); }
//!     fn frame(&mut self, _extent: scan::Extent) {}
//! }
//!
//! let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
//! scanner.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"cont", &mut Print);
//! scanner.feed(b"ent\":\"Hello\"}}]}\n\n", &mut Print);
//! scanner.end(&mut Print);
//! ```
//!
//! Laws: no clock, no I/O, no allocation per frame, no recursion; each byte is read once however
//! the body is cut; memory is bounded by [`limits`] whatever arrives.
//!
//! Modules in the order of the bytes:

mod carry;
pub mod dialect;
mod encoding;
pub mod event;
pub mod extent;
mod field;
pub mod flag;
mod frame;
mod json;
mod kept;
pub mod limits;
mod multipart;
mod name;
mod request;
mod scanner;
mod shape;
mod short;
mod sse;
mod text;

pub use dialect::{Dialect, EndMark};
pub use event::{Counts, Event, Finish, Piece, Scope, ServerReport, Sink, Usage};
pub use extent::{Extent, Timings};
pub use multipart::MultipartFields;
pub use name::{Brief, Name, Tier};
pub use request::{
    Casing, ENCODING_FORMATS, KvTransfer, Links, Member, OutputLimits, OutputType, Places, ReasoningLevel,
    Request, RequestScanner, Sampling, Shape, Wanted,
};
pub use scanner::{Framing, Scanner, Tail, Work};

#[cfg(test)]
mod tests;
