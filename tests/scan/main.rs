//! Bytes to events: what the scanner says of recorded bodies, of made-up ones and of hostile ones,
//! whole, in any pieces or compressed, and what it costs.

mod chunkings;
mod compressed;
mod hostile;
mod memory;
mod numbers;
mod properties;
mod request;
mod short;
mod streams;
mod transcripts;
mod vectors;
mod work;
