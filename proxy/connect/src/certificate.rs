//! The certificate of a TLS listener: a chain, its private key and, where clients need certificates of their own, the
//! authorities that sign those. The files are read again when their contents change. Invariants: a set that cannot be
//! used changes nothing; no error contains a byte of a file, which may be of a key.

mod files;
mod validity;

pub use files::{Files, Loaded, Paths};
pub use validity::Validity;

#[cfg(test)]
mod tests;
