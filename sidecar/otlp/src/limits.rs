//! Every bound of this crate that is not in the plan, with its unit and its reason.

use std::time::Duration;

/// Most bytes of a collector's reply that are read. A reply says whether something was rejected and
/// one sentence why.
pub const REPLY_BYTES: usize = 64 * 1024;

/// Most bytes of one request, before compression: what a collector's gRPC receiver takes by default.
pub const REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// The wait before the second attempt; each further one is twice as long.
pub const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest of those waits.
pub const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// The longest wait that a collector may ask for.
pub const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(30);

/// Longest text of an attribute in bytes, where nothing shorter is asked for. A record's own texts
/// are shorter.
pub const TEXT_BYTES: usize = 1024;

/// Longest model name in bytes, in a span's name and its attributes, as in the records.
pub const MODEL_BYTES: usize = 128;

/// Most bytes of `tracestate`, as the W3C has it.
pub const STATE_BYTES: usize = 512;

/// Most exponential buckets of one data point; above it the resolution is halved until they fit.
/// 160 is what the protocol's own documents recommend.
pub const EXPONENTIAL_BUCKETS: usize = 160;

/// Most items that a queue may be told to hold.
pub const QUEUE_ITEMS: usize = 1 << 20;

/// Most attributes of the resource.
pub const RESOURCE_ATTRIBUTES: usize = 128;

/// How long leaving may take where nothing else is said.
pub const SHUTDOWN: Duration = Duration::from_secs(5);
