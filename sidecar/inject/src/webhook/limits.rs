//! The limits of the webhook, each with unit and reason.

use std::time::Duration;

/// Maximum number of connections. API servers keep a few each; beyond it a new one evicts the one whose
/// last request is the oldest.
pub(super) const CONNECTIONS: usize = 256;

/// Maximum time of a TLS handshake, so that a silent peer loses its slot.
pub(super) const HANDSHAKE_MAX_TIME: Duration = Duration::from_secs(5);

/// Maximum time for a request head, and thereby of an idle connection. The API server opens a new one without a loss.
pub(super) const HEAD_MAX_TIME: Duration = Duration::from_secs(30);

/// Maximum bytes of a request head.
pub(super) const HEAD_MAX_BYTES: usize = 16 * 1024;

/// Maximum bytes of a review. The API server accepts objects of at most 3 MiB.
pub(super) const BODY_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of a body up to which reviews are read side by side. Of larger ones one is read at a time, and others wait
/// within [`BODY_MAX_TIME`].
pub(super) const SMALL_BODY_MAX_BYTES: usize = 32 * 1024;

/// Maximum time for a request body: the API server itself waits at most 30 s for the answer.
pub(super) const BODY_MAX_TIME: Duration = Duration::from_secs(10);

/// Maximum time for the part of a large body above [`SMALL_BODY_MAX_BYTES`], during which no other is read: the API server
/// sends 3 MiB in some 30 ms.
pub(super) const LARGE_BODY_MAX_TIME: Duration = Duration::from_secs(1);

/// Pause after a failed accept (no file descriptors), so that the thread does not spin.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Interval at which files are compared. The kubelet replaces them about once a minute.
pub(super) const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum bytes of each file.
pub(super) const FILE_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Time after the stop signal in which connections are still accepted: a Service removes its endpoint meanwhile.
pub(super) const STOP_DELAY: Duration = Duration::from_secs(5);

/// Maximum time for requests in flight after that.
pub(super) const STOP_MAX_TIME: Duration = Duration::from_secs(10);
