//! The limits of the decoder, with units and reasons.
//!
//! A decoder holds between two slices, besides [`PIECE_MAX_BYTES`]: for gzip and deflate a window of 32 KiB
//! and tables, 43 KiB together for any input; for brotli a window as large as the body needs, at most the 16
//! MiB of RFC 7932 (large-window brotli is not HTTP's `br` and is refused), and half as much again while it
//! grows; for zstd the frame's window of at most [`ZSTD_MAX_WINDOW_LOG`], and less than 1 MiB of tables and
//! blocks. The two large windows are reserved address space: decoded bytes touch their pages one by one, so
//! [`MAX_RATIO`] and [`RATIO_FREE_BYTES`] bound them too.

/// Bytes of one output piece. Recorded frames have 120 to 500 bytes, so a flushed frame is one piece; 16 KiB
/// keeps the number of pieces of an unstreamed body low.
pub const PIECE_MAX_BYTES: usize = 16 * 1024;

/// Decoded bytes per encoded byte above which a body counts as a bomb. The longest recorded stream reaches
/// 58 when it is compressed as a whole and 14 when it is flushed per frame; the others reach 12 and 7. The
/// format limit of deflate is 1032.
pub const MAX_RATIO: u64 = 100;

/// Decoded bytes before the ratio is checked: an answer that repeats a word is not a bomb, and a client can ask for one.
/// The million tokens that fit cost a worker some 5 ms.
pub const RATIO_FREE_BYTES: u64 = 4 * 1024 * 1024;

/// Decoded bytes that one slice may yield: the work of a worker on one slice before its other streams
/// continue. 8 MiB take about 10 ms. The total of a stream has no limit, since the ratio ties it to the
/// bytes received.
pub const SLICE_MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Base-2 logarithm of the largest zstd window in bytes: 8 MiB, the limit of RFC 9659 for HTTP.
pub const ZSTD_MAX_WINDOW_LOG: u32 = 23;
