//! What the end-to-end tests and the fuzzers share. Light on purpose: the fuzzers build it too.
//!
//! In the order of the bytes: recorded exchanges are read ([`transcript`], [`message`], [`truth`]),
//! handed over in pieces ([`cuts`]), and what the scanner says ([`seen`]) is compared with what an
//! obvious implementation says ([`naive`]). [`maker`] makes bodies no server would send.
//! [`edited`] takes a body through scanner, watch and editor; [`counted`] makes streams for it.
//! [`replay`] takes a recording through scanner and meter, and [`golden`] writes the record down.

pub mod counted;
pub mod cuts;
pub mod dice;
pub mod edited;
pub mod golden;
pub mod maker;
pub mod message;
pub mod naive;
pub mod replay;
pub mod seen;
pub mod transcript;
pub mod truth;

pub use seen::{Said, Seen};
pub use transcript::Transcript;
pub use truth::Truth;
