//! GPUs: what they do, and for whom.
pub mod attribution;
pub mod limits;
