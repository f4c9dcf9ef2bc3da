//! Every bound of the admin listener, with its unit and its reason.

use std::time::Duration;

/// Connections served at once; beyond it accepting pauses. A hundred scrapers fit.
pub(crate) const CONNECTIONS: usize = 128;

/// Bytes of a request head. Browsers send about 1 KiB; hyper's own floor is 8 KiB.
pub(crate) const HEAD_BYTES: usize = 16 * 1024;

/// Time a peer may take to send a request head, so that an idle one gives its slot back.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(5);

/// Time one connection may take in all: three times a scraper's usual 10 s.
pub(crate) const CONNECTION_TIME: Duration = Duration::from_secs(30);

/// Pause after a failed accept (no file descriptors), so that the thread does not spin.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often the running totals are sampled for the page's tokens per second.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Samples kept: the page shows the speed over the last five seconds, or since it started.
pub(crate) const SAMPLES: usize = 6;

/// Scrape pages printed at once. Two cores print four no faster, and each holds a page's numbers.
pub(crate) const PRINTINGS: usize = 4;

/// Time a scrape may wait for its turn: half of a scraper's usual 10 s.
pub(crate) const PRINTING_WAIT: Duration = Duration::from_secs(5);

/// Bytes of a page that are unpacked at once for a scraper that wants it plain.
pub(crate) const PIECE_BYTES: usize = 16 * 1024;
