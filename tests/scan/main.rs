//! Bytes to events: the scanner's events for recorded, constructed and hostile bodies, whole, in any slices or
//! compressed, and its costs.

mod chunkings;
mod compressed;
mod event_streams;
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
