//! The relay over real sockets: a scripted upstream, a raw client, the proxy between them.
//!
//! Everything waits for the expected state with a deadline; nothing relies on a sleep.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod support;

mod authority;
mod conformance;
mod conformance_http1;
mod conformance_http2;
mod detached;
mod gate;
mod labels;
mod metering;
mod pair;
mod paying;
mod placeholders;
mod priced;
mod proxy_protocol;
mod rate_limits;
mod reading;
mod realtime;
mod rejections;
mod reported;
mod roles;
mod running;
mod spelling;
mod start;
mod tenants;
mod terms;
mod tls;
mod trace;
mod uncounted;
mod unversioned;
mod usage;
