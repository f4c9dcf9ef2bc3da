//! Every bound of the decoder, with its unit and its reason.
//!
//! What a decoder holds between two slices, besides [`PIECE_BYTES`]: for gzip and deflate a window of
//! 32 KiB and its tables, 43 KiB together whatever arrives; for brotli a window as large as the body
//! needs, at most 16 MiB, which is RFC 7932's largest (large-window brotli is not HTTP's `br` and is
//! refused), and half as much again while it grows; for zstd the frame's window, at most
//! [`ZSTD_WINDOW_LOG`], and less than 1 MiB of tables and blocks. The two large ones are address space
//! that a server asks for; its pages are touched as decoded bytes fill them, so [`RATIO`] bounds them too.

/// Bytes of one piece handed on. Recorded frames have 120 to 500 bytes, so a flushed frame is one
/// piece; 16 KiB keeps the count of pieces of an unstreamed body low.
pub const PIECE_BYTES: usize = 16 * 1024;

/// Decoded bytes per encoded byte, above which a body is taken for a bomb. The longest recorded stream
/// reaches 58 when it is compressed as a whole and 14 when it is flushed per frame, the others 12 and 7;
/// deflate's own limit is 1032.
pub const RATIO: u64 = 100;

/// Decoded bytes before the ratio counts: a short body of spaces is no bomb.
pub const RATIO_FREE_BYTES: u64 = 64 * 1024;

/// Decoded bytes that one fed slice may yield: what a worker spends on one slice before it turns to
/// its other streams. 8 MiB are some 10 ms. A stream's total has no limit, since the ratio keeps it
/// to what was paid for.
pub const SLICE_BYTES: u64 = 8 * 1024 * 1024;

/// Base-2 logarithm of the largest zstd window, in bytes: 8 MiB, RFC 9659's limit for HTTP.
pub const ZSTD_WINDOW_LOG: u32 = 23;
