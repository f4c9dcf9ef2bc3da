//! The bounds of what we take from others' pages, each with its unit and its reason.

use std::time::Duration;

/// Bytes of an answer. A busy vLLM's page is 70 kB, and one for each of fifty models 4 MB.
pub const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of an answer's head; what hyper reads at once.
pub const HEAD_BYTES: usize = 64 * 1024;

/// From connecting to the last byte of an answer. A page takes milliseconds; one that takes longer
/// is of a server too busy to be asked more often than it can answer.
pub const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Samples of a page that are kept. What a name of ours is in comes long before.
pub const SAMPLES: usize = 100_000;
