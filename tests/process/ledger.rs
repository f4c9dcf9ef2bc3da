//! The binary with a ledger, prices and tenants, from outside. The law of all tests: no request fails because of the
//! ledger, and every exchange is in it once or counted as missing.

mod audit;
mod bill;
mod budgets;
mod canaries;
mod central;
mod central_close;
mod client;
mod disk;
mod fleet;
mod hook;
mod kills;
mod legs;
mod others;
pub(crate) mod place;
mod reload;
mod statement;
mod strict;
mod time_zone;
mod usage_events;

#[path = "../../sidecar/ship/src/tests/server.rs"]
#[expect(
    clippy::unwrap_used,
    dead_code,
    reason = "the test server of another crate, of which not everything is used here"
)]
mod postgresql;
