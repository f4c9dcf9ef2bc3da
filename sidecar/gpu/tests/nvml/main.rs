//! From NVML to the exchange: the driver's library is a stub that says what a test wants, and what
//! comes out is worked out by hand beside it.

mod bench;
mod faults;
mod fields;
mod late;
mod shares;
mod stub;
mod thread;
