//! The relay over real sockets: a scripted upstream, a raw client, the proxy between them.
//!
//! The contents page. Everything waits for what it expects, with a deadline; nothing sleeps and
//! hopes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

mod bodies;
mod cancel;
mod detached;
mod drain;
mod dripping;
mod gate;
mod gather;
mod http2;
mod interim;
mod left;
mod metering;
mod panic;
mod paying;
mod priced;
mod reading;
mod refusals;
mod reported;
mod reuse;
mod roles;
mod running;
mod shares;
mod slow;
mod spelling;
mod start;
mod tenants;
mod terms;
mod trace;
mod turned;
mod uncounted;
mod upgrade;
mod usage;
