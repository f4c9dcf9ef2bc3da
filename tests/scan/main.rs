//! Bytes to events: what the scanner says of recorded bodies, of made-up ones and of hostile ones,
//! whole or in any pieces, and what it costs.

mod chunkings;
mod hostile;
mod memory;
mod properties;
mod request;
mod short;
mod streams;
mod transcripts;
mod vectors;
mod work;
