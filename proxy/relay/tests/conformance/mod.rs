//! The tests that must pass on all wires: the bytes on either side, cancellation, limits and the drain.

mod bodies;
mod cancel;
mod drain;
mod dripping;
mod duplex;
mod gather;
mod http2;
mod interim;
mod left;
mod panic;
mod readers;
mod refusals;
mod shares;
mod slow;
mod stalled_readers;
mod upgrade;

use crate::support::Proxy;
