//! The limit of requests to a server; the limits of a page are in the crate `scrape`.

use std::time::Duration;

/// Pause after a server answered that it has no page or denied access. A restart with another flag makes it unreachable
/// for a moment, after which it gets a request at once.
pub const REFUSED_PAUSE: Duration = Duration::from_secs(600);
