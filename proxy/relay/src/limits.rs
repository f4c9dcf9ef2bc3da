//! Every bound of the relay, with its unit and the reason for its size. What a deployment may want
//! to change is in the [`Plan`](crate::Plan); what is here protects the process from its peers.

use std::time::Duration;

/// Maximum body members that tenant rules may read.
pub use scan::limits::MAX_SELECTED_MEMBERS;

/// Bytes of one message head, and of one connection's read and write buffer each: the longest
/// head seen from real clients is under 8 KiB, and a slow reader must stop its upstream soon.
pub const BUFFER_BYTES: usize = 64 * 1024;

/// Fields in one head. This is hyper's own default; asking for another number would move its
/// table from the stack to the heap, on each request. A test pins it.
pub const HEAD_FIELDS: usize = 100;

/// Bytes of a `tracestate` that are kept for a record: as many as everyone should pass on (W3C Trace
/// Context, "tracestate limits"). The field itself passes whole.
pub const TRACESTATE_BYTES: usize = 512;

/// Bytes taken from a client's socket in one read, in a buffer that all connections of a worker
/// share.
pub const CLIENT_READ_BYTES: usize = 16 * 1024;

/// The longest `Content-Length` we forward: above it, signed readers see a negative number.
pub const CONTENT_LENGTH_MAX: u64 = i64::MAX as u64;

/// The time for which a client's connection may stay without another request: longer than the pools of common
/// clients keep one (Go: 90 s is the longest default; most are at 5 to 60 s), so that they close
/// first and no request meets a closing socket.
pub const CLIENT_IDLE: Duration = Duration::from_secs(95);

/// The period at which a client with unread bytes waiting is checked for having left: while
/// they wait, the kernel has no further event to give.
pub const GONE_RECHECK: Duration = Duration::from_millis(20);

/// The time for which the proxy reads on after an early answer, so that the client gets to see it: closing with
/// unread bytes makes the kernel send a reset, which destroys what was sent.
pub const LINGER: Duration = Duration::from_secs(1);

/// The time for which the rest of an unstreamed answer is awaited after its client left: the server has it whole.
pub const REST_IDLE: Duration = Duration::from_secs(5);

/// The most time for which such a rest is read: 7 GB at 1 Gb/s.
pub const REST_TIME: Duration = Duration::from_secs(60);

/// Bytes read away while lingering.
pub const LINGER_BYTES: usize = 1024 * 1024;

/// The pause in accepting when the process is out of file descriptors or memory: long enough
/// for some connections to end, short enough that no client notices.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The log gets one line about failing accepts in this time.
pub const ACCEPT_WARNING_NS: u64 = 1_000_000_000;

/// Connections the kernel holds for us while accepting is paused.
pub const BACKLOG: i32 = 1024;

/// Interim responses (1xx) taken from an upstream for one request. Early hints come once or
/// twice; more is a flood.
pub const INTERIM_RESPONSES: usize = 16;

/// The period of the sweep.
pub const SWEEP: Duration = Duration::from_secs(1);

/// The time for which a connection rests after a stream before it is used again: servers that close it
/// without saying so do it within a few milliseconds, and this allows for a busy machine.
pub const REST_AFTER_STREAM_NS: u64 = 250_000_000;

/// The time for which it is remembered that a server closes connections after streams.
pub const CLOSING_REMEMBERED_NS: u64 = 600_000_000_000;

/// Threads for name resolution, per worker; they end when unused.
pub const RESOLVER_THREADS: usize = 4;

/// Under HTTP/2 the client's socket is not ours to watch: a body polled again after this long
/// counts as a wait for the client, a shorter time is our own turn.
pub const CLIENT_WAIT_MIN_NS: u64 = 1_000_000;

/// Of so many body slices, one is timed for the overhead figure and stands for all of them: a
/// second clock read on each would be a tenth of what it measures.
pub const SPENT_SAMPLE: u32 = 16;

/// The time for which a server's behaviour is remembered: that it refuses a question, or answers unasked.
pub const REMEMBERED_NS: u64 = 600_000_000_000;

/// After so long a request asks again for what the server refused.
pub const PROBE_AFTER_NS: u64 = 60_000_000_000;

/// Bytes of one request body that is gathered to be edited. Longer prompts pass as they come.
pub const GATHERED_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of a gathered body up to which it is on the heap: above it, memory of the kernel's own costs less than it
/// saves.
pub const HEAP_BODY_BYTES: usize = 128 * 1024;

/// One holder's share is a `1 / SHARES` of what is shared, or a `1 / (n + 1)` among n holders if that is less: there
/// is always a share left for one more, whatever the others do.
pub const SHARES: usize = 4;

/// Time for which shares bind after a holder within its own found no room: an attack that is answered by shares
/// comes again at once.
pub const SHARES_BIND_NS: u64 = 60_000_000_000;

/// Time after room was missing in which uploads make room: two sweeps.
pub const SHORT_NS: u64 = 2 * 1_000_000_000;

/// Time for which a request waits for room that is being made: two sweeps, and what they take.
pub const CAPACITY_WAIT_NS: u64 = 3_000_000_000;

/// Pause between two looks for room.
pub const CAPACITY_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Sweeps for which an upload has to be silent, or slow, before it gives way to another holder's request, though
/// its own holder is within its share.
pub const SILENT_SWEEPS: u64 = 5;

/// Bytes per second below which an upload is slow: a prompt of 1,000 tokens takes a second at this rate, and the
/// slowest mobile links are faster. An upload at this rate may last for as long as it likes.
pub const SLOW_BYTES_PER_S: u64 = 4096;

/// Connections of one worker's listener that wait for a place, beside those that have one.
pub const WAITING_CONNECTIONS: usize = 16;

/// Longest pause between two looks for a place.
pub const PLACE_PAUSE_MAX: Duration = Duration::from_millis(160);

/// Time for which no minimum rate is asked of a body: a slow start is no slow client.
pub const RATE_GRACE_SWEEPS: u64 = 30;

/// Bytes of an answer's text kept for a tokenizer, as they stand in the frames, escapes included. A
/// longer answer is not counted by its text: 64 thousand tokens of English fit.
pub const KEPT_TEXT_BYTES: usize = 256 * 1024;

/// Bytes of all such texts together, those waiting to be counted included. Beyond it a stream's text
/// is not kept.
pub const KEPT_TEXTS_BYTES: usize = 64 * 1024 * 1024;

/// HTTP/2: bytes of one decoded header list, as for HTTP/1.
pub const H2_HEADER_LIST_BYTES: u32 = 64 * 1024;

/// HTTP/2: streams reset by the peer that we have not yet accepted ("rapid reset"). Beyond it the
/// connection is closed.
pub const H2_PENDING_RESETS: usize = 64;

/// HTTP/2: resets we had to send because the peer broke the protocol, before the connection is
/// closed.
pub const H2_LOCAL_RESETS: usize = 256;

/// HTTP/2: bytes of an answer that are handed on at a time: at the least rate of a body its client takes them in half
/// of the time of grace.
pub const H2_PIECE_BYTES: usize = 2048;

/// HTTP/2: bytes a stream may send before we take them. Prompts are a few KiB; large ones get
/// there in a few more round trips.
pub const H2_STREAM_WINDOW: u32 = 64 * 1024;

/// HTTP/2: the same for a whole connection.
pub const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;
