//! Bounds of local counting, each with its unit and its reason.

/// Maximum bytes of one text. 256 KiB are some 60,000 tokens, more than servers generate for one response. While
/// counting, the library takes 400 bytes a token: 25 MB for such a text, or 110 MB and a quarter of a second for a text
/// of one-byte tokens only.
pub const TEXT_MAX_BYTES: usize = 256 * 1024;

/// Maximum jobs in the queue. A usual response of 4 kB takes 1.3 ms, so the last job
/// waits a twelfth of a second.
pub const QUEUE_MAX_JOBS: usize = 64;

/// Maximum bytes of text that are queued or being counted. Full of
/// the worst texts the queue takes 8 s to drain, which a shutdown may have to wait for.
pub const QUEUE_MAX_BYTES: usize = 8 * 1024 * 1024;

/// Maximum bytes of a tokenizer file. The largest in use (256,000 tokens with their merges) has 33 MB.
pub const FILE_MAX_BYTES: u64 = 128 * 1024 * 1024;

/// Maximum bytes of the library's message that an error about a tokenizer file repeats.
pub const MESSAGE_MAX_BYTES: usize = 200;
