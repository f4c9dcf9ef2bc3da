//! The usage editor. A server reports the counts of a stream only on request, and a client that did not
//! request them must not receive them. This crate adds the request for usage and removes its effects from
//! the response. It knows no HTTP and no clock.
//!
//! For a request, [`inject_usage`] returns the insertions ([`Splices`]) and the [`AddedOptions`]. For the response, for
//! each slice:
//!
//! ```
//! use bytes::Bytes;
//! use scan::{Dialect, Event, Extent, Framing, Scanner, Sink};
//! use usage::{AddedOptions, Editor, UsageFilter};
//!
//! struct Meter;
//! impl Sink for Meter {
//!     fn event(&mut self, _event: Event) {}
//!     fn frame(&mut self, _extent: Extent) {}
//! }
//!
//! let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
//! let mut filter = UsageFilter::new(Some(AddedOptions { include: true, continuous: false, timings: false }), false);
//! filter.arm(&mut scanner);
//! let mut editor = Editor::new();
//!
//! let slice = Bytes::from("data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\ndata: [DONE]\n\n");
//! scanner.feed(&slice, &mut filter.listen(&mut Meter));
//! let seen = editor.edit(slice, filter.cuts(&scanner));
//! assert_eq!(seen, "data: [DONE]\n\n");
//! ```
//!
//! Laws: no byte is lost, doubled or moved except marked ones. Bytes are held only while an edit is armed,
//! at most [`HOLD_MAX_BYTES`] for at most [`HOLD_TIME`]. Invalid marks cut nothing.
//!
//! Modules in the order of the bytes:

mod block;
mod cut;
mod editor;
mod inject_usage;
mod policy;
mod python;
mod splice;
mod usage_filter;

pub use cut::{Cut, Cuts};
pub use editor::{Editor, HOLD_MAX_BYTES, HOLD_TIME};
pub use inject_usage::{AddedOptions, Injection, NotInjected, UsageOptions, inject_usage};
pub use policy::Policy;
pub use splice::Splices;
pub use usage_filter::{FilterSink, UsageFilter};

#[cfg(test)]
mod tests;
