//! The usage editor. A server reports what a stream cost only if it is asked to; a client that did
//! not ask must not see the answer. This crate merges the question into the request, and takes out
//! of the response what the question added: bytes become keep, cut and insert. It knows no HTTP
//! and no clock.
//!
//! Of a request: [`ask`] says what to insert where ([`Splices`]) and what is then [`Added`]. Of the
//! response, for each slice:
//!
//! ```
//! use bytes::Bytes;
//! use scan::{Dialect, Event, Extent, Framing, Scanner, Sink};
//! use usage::{Added, Editor, Watch};
//!
//! struct Meter;
//! impl Sink for Meter {
//!     fn event(&mut self, _event: Event) {}
//!     fn frame(&mut self, _extent: Extent) {}
//! }
//!
//! let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
//! let mut watch = Watch::new(Some(Added { include: true, continuous: false, timings: false }), false);
//! watch.arm(&mut scanner);
//! let mut editor = Editor::new();
//!
//! let slice = Bytes::from("data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\ndata: [DONE]\n\n");
//! scanner.feed(&slice, &mut watch.listen(&mut Meter));
//! let seen = editor.edit(slice, watch.marks(&scanner));
//! assert_eq!(seen, "data: [DONE]\n\n");
//! ```
//!
//! Laws: no byte is lost, doubled or moved but those that were marked; nothing is held but while an
//! edit is armed, and then at most [`HOLD_BYTES`] for at most [`HOLD_TIME`]; nonsense cuts nothing.
//!
//! Modules in the order of the bytes:

mod ask;
mod block;
mod editor;
mod mark;
mod policy;
mod python;
mod splice;
mod watch;

pub use ask::{Added, Ask, Asking, Why, ask};
pub use editor::{Editor, HOLD_BYTES, HOLD_TIME};
pub use mark::{Cut, Marks, Part};
pub use policy::Policy;
pub use splice::Splices;
pub use watch::{Listen, Watch};

#[cfg(test)]
mod tests;
