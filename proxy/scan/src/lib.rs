//! Bytes to events. A [`Scanner`] reads a response body slice by slice, as it passes, and reports the
//! meaning of its frames as a closed set of events:
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
//! Laws: no clock, no I/O, no allocation per frame, no recursion. Each byte is read once for any slicing of
//! the body; [`limits`] bounds the memory for any input.
//!
//! Modules in the order of the bytes:

mod carry;
mod counts;
pub mod dialect;
mod encoding;
mod envelope;
pub mod event;
mod event_stream;
pub mod extent;
mod field;
pub mod flag;
mod frame;
mod json;
pub mod limits;
mod listed_enum;
mod multipart;
mod name;
mod request;
mod scanner;
mod scratch;
mod shape;
mod short;
mod sse;
mod text;
mod text_buffer;

pub use counts::{Count, Counts, Side};
pub use dialect::{Dialect, EndMark, ErrorShape};
pub use envelope::{Envelope, MessageKind};
pub use event::{Delta, Event, Finish, Scope, ServerReport, Sink, Usage};
pub use extent::{Extent, Timings, UsageMember, UsageValue};
pub use multipart::MultipartFields;
pub use name::{BoundedText, MemberName, Name, Names, PriceWords, Tier, is_standard_tier};
pub use request::{
    Casing, ENCODING_FORMATS, KvTransfer, Links, Member, OtherModels, OutputLimits, OutputType,
    ReasoningLevel, Request, RequestScanner, RequestedCounts, Sampling, SelectedMembers, Shape,
};
pub use scanner::{Framing, Scanner, Tail, Work};

#[cfg(test)]
mod tests;
