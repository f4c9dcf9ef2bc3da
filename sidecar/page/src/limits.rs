//! Every bound of the admin listener, with its unit and its reason.

use std::time::Duration;

/// Connections served at once, unless the process has few descriptors; beyond it the one that has come least far gives way. A hundred scrapers fit.
pub const CONNECTIONS: usize = 128;

/// Connections of one peer that never give way to another peer's: a scraper, a browser and the probes of a
/// node need less.
pub(crate) const PEER_CONNECTIONS: usize = 16;

/// Pause before a connection that found every slot busy asks again.
pub(crate) const SLOT_PAUSE: Duration = Duration::from_millis(20);

/// Time a peer may take to send its first byte: a probe sends its request as soon as it is connected.
pub(crate) const FIRST_BYTE_TIME: Duration = Duration::from_secs(1);

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
