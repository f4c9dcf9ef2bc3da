//! Every bound of local counting, with its unit and its reason.

/// Bytes of one text. 256 KiB are some 60,000 tokens, more than servers generate for one answer. While
/// it is counted the library takes 400 bytes a token: 25 MB for such a text, 110 MB for one of nothing
/// but one-byte tokens, which takes it a quarter of a second.
pub const TEXT_BYTES: usize = 256 * 1024;

/// Jobs that wait for the one counting thread. A usual answer of 4 kB takes it 1.3 ms, so the last of
/// them waits a twelfth of a second.
pub const QUEUE_JOBS: usize = 64;

/// Bytes of text that wait or are being counted, together: what the queue may hold in memory. Full of
/// the worst texts it takes 8 s to run dry, which is what a drain may have to wait for it.
pub const QUEUE_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of a tokenizer file. The largest in use (256,000 tokens with their merges) has 33 MB.
pub const FILE_BYTES: u64 = 128 * 1024 * 1024;

/// Bytes of the library's complaint about a tokenizer file that an error repeats.
pub const COMPLAINT_BYTES: usize = 200;
