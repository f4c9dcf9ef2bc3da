//! The bound of what we ask of a server for its own pages; those of a page are `scrape`'s.

use std::time::Duration;

/// How long a server is left alone that said that it has no page, or none for us: it would need to
/// be restarted with another flag, and then it is unreachable for a moment and asked at once.
pub const REFUSED_WAIT: Duration = Duration::from_secs(600);
