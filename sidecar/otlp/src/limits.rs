//! The limits of this crate that are not in the plan, each with unit and reason.

use std::time::Duration;

/// Maximum bytes read of a collector's response, which contains the number of rejected items and a sentence.
pub const REPLY_MAX_BYTES: usize = 64 * 1024;

/// Maximum bytes of one request before compression: the default limit of a collector's gRPC receiver.
pub const REQUEST_MAX_BYTES: usize = 4 * 1024 * 1024;

/// The wait before the second attempt; each further one is twice as long.
pub const RETRY_FIRST_DELAY: Duration = Duration::from_millis(500);

/// Maximum of those waits.
pub const RETRY_MAX_DELAY: Duration = Duration::from_secs(8);

/// Maximum wait that a collector can request.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// Maximum bytes of an attribute's text, unless a variable sets less. The texts of a record are shorter.
pub const TEXT_MAX_BYTES: usize = 1024;

/// Maximum bytes of a model name in a span's name and attributes, as in records.
pub const MODEL_MAX_BYTES: usize = 128;

/// Maximum bytes of `tracestate`, by W3C Trace Context.
pub const TRACESTATE_MAX_BYTES: usize = 512;

/// Maximum exponential buckets of one data point; above it the resolution is halved until they fit. The protocol's
/// documentation recommends 160.
pub const EXPONENTIAL_BUCKETS_MAX: usize = 160;

/// Maximum configurable capacity of a queue, in items.
pub const QUEUE_MAX_ITEMS: usize = 1 << 20;

/// Maximum number of the resource's attributes.
pub const RESOURCE_ATTRIBUTES_MAX: usize = 128;

/// Default time of a shutdown.
pub const SHUTDOWN: Duration = Duration::from_secs(5);
