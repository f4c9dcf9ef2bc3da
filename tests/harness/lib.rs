//! Parts shared by the end-to-end tests and the fuzzers; with few dependencies, because the fuzzers build it, too. In
//! the order of the bytes: recorded exchanges are read ([`transcript`], [`message`], [`truth`]) and passed on in slices
//! ([`cuts`]), and the scanner's events ([`seen`]) are compared with those of the oracle ([`naive`]). [`maker`]
//! generates bodies that no server would send. [`edited`] passes a body through scanner, filter and editor; [`counted`]
//! generates streams for it. [`replay`] passes a recording through scanner and meter, and [`golden`] formats the
//! record.

pub mod counted;
pub mod cuts;
pub mod dice;
pub mod edited;
pub mod event_stream;
pub mod golden;
pub mod maker;
pub mod message;
pub mod naive;
pub mod replay;
pub mod seen;
pub mod transcript;
pub mod truth;

pub use seen::{Seen, SinkCall};
pub use transcript::Transcript;
pub use truth::Truth;
