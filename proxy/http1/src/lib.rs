//! Parses HTTP/1.1 messages (RFC 9112): the end of a head, the length of its body, and the payload in it. Without I/O, a
//! clock, and allocation, except for trailers.
//!
//! A head is parsed in the buffer that received it ([`request`], [`response`]); its fields decide the [`Body`], which
//! reads slices that are cut anywhere:
//!
//! ```
//! use http1::{Part, Table, response, response_body};
//!
//! let received = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
//! let mut table = Table::default();
//! let head = response(received, &mut table).expect("valid").expect("whole");
//! let (mut body, mut at) = (response_body(&head, false).expect("valid").body, head.len);
//! let mut payload = Vec::new();
//! while let Some(part) = body.next(received, &mut at).expect("valid framing") {
//!     match part {
//!         Part::Data { data, .. } => payload.extend_from_slice(&received[data]),
//!         Part::End { .. } => break,
//!     }
//! }
//! assert_eq!((&payload[..], at), (&b"hi"[..], received.len()));
//! ```
//!
//! Requests are read strictly: one that two parsers could read as different messages is rejected, because another parser
//! reads it next. Responses are read as leniently as is safe, and only canonical chunks are forwarded unchanged. The tables
//! of all rules are at [`request`], [`response`], [`request_body`], [`response_body`] and [`Chunks`].

mod body;
mod chunks;
mod fault;
mod framing;
mod head;
pub mod limits;
mod lines;
mod write;

pub use body::{Body, Part};
pub use chunks::Chunks;
pub use fault::{Fault, Invalid};
pub use framing::{ResponseBody, request_body, response_body};
pub use head::{Head, RequestLine, StatusLine, Table, Version, may_be_whole, request, response, trailers};
pub use lines::{Line, Lines, is_hop_by_hop, names, tokens};
pub use write::{write_chunk, write_field};
