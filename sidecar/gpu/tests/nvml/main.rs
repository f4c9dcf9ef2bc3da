//! From NVML to the exchange: the driver's library is a stub under the test's control, and the
//! expected results are calculated by hand.

mod bench;
mod faults;
mod fields;
mod late;
mod shares;
mod stub;
mod thread;
