//! What the inference servers say about themselves. Reads an upstream's own metrics page, says it
//! in one vocabulary whatever the server calls it, and compares its token counters with ours.
//!
//! [`start()`] takes a [`Plan`] and begins to watch: one thread for all upstreams, one request at a
//! time to each. Whoever knows whether an upstream can be reached says so through
//! [`Running::reach`]; then it is recognised once ([`detect`]), and its page is read
//! every so often. What comes of it goes out through [`Hooks`] as plain values.
//!
//! In the order of the path of a page: [`mod@watch`] decides when, `scrape` fetches it and takes
//! the text apart, `vocabulary` finds the quantities by the names in `kinds`, and `reckoning` makes
//! differences of counters.
//!
//! Laws: nothing asked here makes a server generate, and no page is asked for whose reading
//! changes it, unless a person said so. A server without a page costs it one request in ten
//! minutes.

pub mod watch;

pub mod detect;
mod kinds;
mod reckoning;
mod vocabulary;

pub mod limits;

pub use detect::{Detected, FrontEnd};
pub use kinds::hidden_cached_remedy;
pub use reckoning::Ours;
pub use watch::{Hooks, Plan, Reach, Running, Scrape, Target, start};
