//! libtokenmeter: the meter as a C library. `include/tokenmeter.h` is generated from this crate and from
//! `include/preamble.txt`, which has the conventions: handles, buffers, times, threads, errors, versions.
//!
//! Laws: no thread but those of exporters; the host supplies every time of a record; no panic leaves the library; a handle is never
//! dereferenced; a misused function returns a status.
//!
//! Modules from the caller's memory to the record:

mod entry;
mod handle;
pub mod slice;
pub mod status;
pub mod version;

pub mod handles;
pub mod numbers;
pub mod values;

pub mod prices;
pub mod tenants;

mod host;
pub mod meter;

pub mod exporters;

mod embedded;
pub mod exchange;

pub mod engine;

mod finished;
pub mod record;

/// Returns the values of a record without a charge as one JSON object, as `tm_record_json` writes them.
pub fn record_json(record: &::meter::Record) -> String {
    let charge = price::Charge::Unpriced(price::Unpriced::NoBook);
    finished::Finished { record: std::sync::Arc::new(record.clone()), charge }.json().to_string()
}
