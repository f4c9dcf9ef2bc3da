//! Reads the metrics pages of the inference servers into common quantities, and compares their token counters with
//! those of the proxy.
//!
//! [`start()`] takes a [`Plan`] and starts one thread for all upstreams, with one request at a time to each. The caller
//! reports reachability through [`Running::reach`]; then the server is detected once ([`detect`]), and its page is read
//! periodically. Results are passed to [`Hooks`] as plain values.
//!
//! In the order of a page's path: [`mod@watch`] schedules, the crate `scrape` fetches and parses the page, `vocabulary`
//! finds the quantities by the names in `kinds`, and `tracker` computes differences of counters.
//!
//! Invariants: no request makes a server generate, and no page is read that a read changes, unless configured. A server
//! without a page gets one request in ten minutes.

pub mod watch;

pub mod detect;
mod kinds;
mod tracker;
mod vocabulary;

pub mod limits;

pub use detect::{Detected, FrontEnd};
pub use kinds::hidden_cached_remedy;
pub use tracker::ProxyTotals;
pub use watch::{Hooks, Plan, Reach, Running, Scrape, Target, start};
