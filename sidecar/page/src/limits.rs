//! The limits of the admin listener, each with unit and reason.

use std::time::Duration;

/// Maximum number of concurrent connections, unless the process has few file descriptors; beyond it the connection with
/// the least progress is evicted. It is enough for a hundred scrapers.
pub const CONNECTIONS: usize = 128;

/// Connections of one peer that are never evicted for another peer's: a scraper, a browser and the probes of a node
/// need fewer.
pub(crate) const PEER_CONNECTIONS: usize = 16;

/// Connections that wait for the end of the drain, in `GET /drained`: one for each container of a pod. They have no
/// time limit, so a further one closes the oldest of the peer with the most.
pub(crate) const MAX_WAITERS: usize = 16;

/// Maximum time after a stop in which the waiting connections of a finished drain are answered.
pub(crate) const LAST_ANSWERS_MAX_TIME: Duration = Duration::from_secs(1);

/// Pause between two attempts of a connection that waits for a slot.
pub(crate) const SLOT_PAUSE: Duration = Duration::from_millis(20);

/// Maximum time for the first byte: a probe sends its request as soon as it is connected.
pub(crate) const FIRST_BYTE_MAX_TIME: Duration = Duration::from_secs(1);

/// Maximum bytes of a request head. Browsers send about 1 KiB; hyper's minimum is 8 KiB.
pub(crate) const HEAD_MAX_BYTES: usize = 16 * 1024;

/// Maximum time for a request head, so that an idle peer loses its slot.
pub(crate) const HEAD_MAX_TIME: Duration = Duration::from_secs(5);

/// Maximum time of a connection: three times a scraper's usual 10 s.
pub(crate) const CONNECTION_MAX_TIME: Duration = Duration::from_secs(30);

/// Pause after a failed accept (no file descriptors), so that the thread does not spin.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Interval of the samples, which is that of a stream's events and of a history's points.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of open streams, and at most a quarter of the connections: pages that people watch. Ten of them cost
/// less than 1 % of a core. Beyond it, a peer gets the place of a stream of the peer with the most.
pub(crate) const MAX_STREAMS: usize = 32;

/// Maximum time in which a stream's reader takes an event: ten events.
pub(crate) const STREAM_MAX_STALL: Duration = Duration::from_secs(10);

/// Maximum number of responses rendered at once. More are not faster on two cores, and each holds a page's numbers.
pub(crate) const MAX_CONCURRENT_SCRAPES: usize = 4;

/// Maximum time a request waits for its rendering: half of a scraper's usual 10 s.
pub(crate) const RENDER_MAX_WAIT: Duration = Duration::from_secs(5);

/// Bytes decompressed at once for a scraper that does not accept gzip.
pub(crate) const PIECE_BYTES: usize = 16 * 1024;
