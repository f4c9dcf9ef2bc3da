//! The relay over real sockets: a scripted upstream, a client that sends raw bytes, and the proxy between them.
//!
//! A test waits for a state, with a deadline. It sleeps only if a time is its subject.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod support;

mod authority;
mod conformance;
mod conformance_http1;
mod conformance_http2;
mod detached;
mod gate;
mod labels;
mod last_records;
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
mod truncated;
mod uncounted;
mod unversioned;
mod usage;
