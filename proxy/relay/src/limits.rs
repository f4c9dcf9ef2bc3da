//! Every bound of the relay, with its unit and the reason for its size. Values that a deployment may change are in the
//! [`Plan`](crate::Plan); the bounds here protect the process from its peers.

use std::time::Duration;

// The scanner selects every body member that tenant rules may read.
const _: () = assert!(tenant::MAX_BODY_KEYS <= scan::limits::MAX_SELECTED_MEMBERS);

/// Bytes of one message head, and of what a connection buffers in each direction: real clients send heads below 8 KiB, and
/// a slow reader must stop its upstream soon.
pub const BUFFER_BYTES: usize = 64 * 1024;

/// Fields in one head, in HTTP/2 as in HTTP/1.1.
pub const HEAD_FIELDS: usize = http1::limits::FIELDS;

/// Bytes of a `tracestate` kept for a record: the size that everyone should propagate (W3C Trace Context, "tracestate
/// limits"). The field itself is forwarded whole.
pub const TRACESTATE_BYTES: usize = 512;

/// Bytes that one connection reads in a turn of its task. A frame of another stream waits until these are forwarded,
/// and not until the whole backlog is.
pub const TURN_READ_BYTES: usize = 16 * 1024;

/// Bytes of TLS records after which a read of plaintext ends its turn. The longest record is shorter, but records may be
/// empty.
pub const TLS_TURN_BYTES: usize = 2 * TURN_READ_BYTES;

/// Bytes taken from a client's socket in one read during the handshake of TLS. A client's whole part is below 2 KiB,
/// but for large certificates.
pub const HANDSHAKE_READ_BYTES: usize = 4 * 1024;

/// Bytes of plaintext that a TLS session keeps while it is not read, so that the end of the connection behind
/// them is seen. It is the library's own bound: one record at most is read beyond it.
pub const TLS_READ_AHEAD_BYTES: usize = 16 * 1024;

/// The largest `Content-Length` that is forwarded: servers with signed integers read a greater one as negative.
pub const CONTENT_LENGTH_MAX: u64 = i64::MAX as u64;

/// The time for which a client connection may be idle: longer than the pools of common clients keep one (Go: 90 s is
/// the longest default; most are at 5 to 60 s), so that clients close first and no request meets a closing socket.
pub const CLIENT_IDLE: Duration = Duration::from_secs(95);

/// The time for which an HTTP/1 connection may be idle at the end of the drain's delay, and later: a client in a dialog
/// sends its next request within it, and learns from the response that the connection ends.
pub const LAST_IDLE: Duration = Duration::from_secs(1);

/// The period at which the drain looks for connections that have been idle for [`LAST_IDLE`]: it waits for them.
pub const LAST_IDLE_CHECK: Duration = Duration::from_millis(50);

/// The period at which a session that has read ahead as much as it keeps is checked for the client's announcement of its
/// end. The end of the connection is seen without it.
pub const TLS_RECHECK: Duration = Duration::from_secs(1);

/// The time for which the proxy reads on after an early answer, so that the client receives it: closing with unread
/// bytes makes the kernel send a reset, which destroys the answer. A session that the proxy closes waits as long for the
/// other sides.
pub const LINGER: Duration = Duration::from_secs(1);

/// The time in which the client of a metered WebSocket closes the connection after the upstream has closed its half: a
/// client answers a close frame at once.
pub const CLIENT_CLOSE: Duration = Duration::from_secs(5);

/// The idle time after which the rest of an unstreamed answer is given up once its client left: the server has all of
/// it.
pub const REST_IDLE: Duration = Duration::from_secs(5);

/// The maximum time for which such a rest is read: 7 GB at 1 Gb/s. A session whose client was refused waits as long for
/// the answer in progress.
pub const REST_TIME: Duration = Duration::from_secs(60);

/// Bytes discarded by one read while lingering.
pub const LINGER_READ_BYTES: usize = 4 * 1024;

/// Bytes read and discarded while lingering.
pub const LINGER_BYTES: usize = 1024 * 1024;

/// The pause in accepting when the process is out of file descriptors or memory: long enough for some connections to
/// end, too short for a client to notice.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The minimum time between two log lines about failing accepts.
pub const ACCEPT_WARNING_NS: u64 = 1_000_000_000;

/// The kernel's backlog of connections while accepting is paused.
pub const BACKLOG: i32 = 1024;

/// Interim responses (1xx) accepted from an upstream for one request. Early hints come once or twice; more is a flood.
pub const INTERIM_RESPONSES: usize = 16;

/// The age of a request, and the silence of its client's connection, after which the kernel asks if the peer is still
/// there: one that vanished with its machine ends nothing. A peer that has forgotten the connection resets it.
pub const PROBE_AFTER: Duration = Duration::from_secs(15);

/// The time between two such probes.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// Probes without an answer after which the kernel ends the connection: at 30 s of silence.
pub const PROBES: u32 = 3;

/// The period of the sweep.
pub const SWEEP: Duration = Duration::from_secs(1);

/// The time for which a connection rests after a stream before it is used again: servers that close it unannounced do
/// so within a few milliseconds; the rest allows for a busy machine.
pub const REST_AFTER_STREAM_NS: u64 = 250_000_000;

/// The same for a server that has kept [`KEPT_CONNECTIONS`] of them open: a few milliseconds, in case another server
/// behind the same address closes its connections.
pub const SHORT_REST_NS: u64 = 10_000_000;

/// Connections that a server must keep open after streams before the next ones rest for [`SHORT_REST_NS`] only.
pub const KEPT_CONNECTIONS: u32 = 3;

/// The idle time after which the kernel is asked if a connection is still open. Before, the runtime's last poll of the
/// sockets suffices, which saves a system call per request: servers keep idle connections open for longer.
pub const CHECK_AFTER_NS: u64 = 500_000_000;

/// The time for which the proxy remembers that a server closes connections after streams.
pub const CLOSING_REMEMBERED_NS: u64 = 600_000_000_000;

/// Threads for name resolution, per worker; they end when unused.
pub const RESOLVER_THREADS: usize = 4;

/// Under HTTP/2 the proxy does not see the client's socket: if the library polls a body again after this time, the body
/// counts as waiting for the client; a shorter time is the proxy's own turn.
pub const CLIENT_WAIT_MIN_NS: u64 = 1_000_000;

/// The number of body slices of which one is timed, as a sample for all, for the overhead metric: a second clock
/// reading on each would cost a tenth of what it measures.
pub const SPENT_SAMPLE: u32 = 16;

/// The time for which a server's behaviour is remembered: that it rejects an option, or reports usage by itself.
pub const REMEMBERED_NS: u64 = 600_000_000_000;

/// The time after which a request tries again an option that the server rejected.
pub const REJECTION_RETRY_NS: u64 = 60_000_000_000;

/// Bytes of one request body that is buffered to be edited. Longer bodies are forwarded as they arrive.
pub const GATHERED_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of a buffered body up to which it is on the heap: above it, a mapping of its own costs less than it saves.
pub const HEAP_BODY_BYTES: usize = 128 * 1024;

/// Divides a shared capacity: one holder's share is `1 / SHARES` of it, or `1 / (n + 1)` among n holders if that is
/// less, so one share always remains for a further holder. A holder may exceed it while that leaves `1 / (SHARES - 1)`
/// of its amount free.
pub const SHARES: usize = 4;

/// Time for which shares limit the connections of holders after one within its share found no place: an attack that is
/// repelled by shares returns at once.
pub const SHARES_BIND_NS: u64 = 60_000_000_000;

/// Time after a capacity was full in which it is freed for holders within their shares: two sweeps.
pub const SHORT_NS: u64 = 2 * 1_000_000_000;

/// Time for which a request waits for capacity to be released: one sweep in which a client begins to be slow,
/// [`SLOW_SWEEPS`] until it counts as slow, and one until its exchange has ended.
pub const CAPACITY_WAIT_NS: u64 = 5_000_000_000;

/// Pause between two attempts to reserve, for each request of a connection.
pub const CAPACITY_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Sweeps for which a client must be slow before its exchange is ended for another request although its holder is within
/// its share, or is the holder of both.
pub const SLOW_SWEEPS: u64 = 3;

/// Bytes per second below which a client is slow: a prompt of 1,000 tokens takes a second at this rate, and the slowest
/// mobile links are faster. An upload at this rate has no time limit.
pub const SLOW_BYTES_PER_S: u64 = 4096;

/// Connections of one worker's listener that may wait for a place.
pub const WAITING_CONNECTIONS: usize = 16;

/// The time for which a new connection without a request is not closed for another one: most clients send the request
/// at once. It is also the longest wait for the place of a silent client.
pub const NEW_CONNECTION_GRACE_NS: u64 = 1_000_000_000;

/// Longest pause between two attempts to get a place.
pub const PLACE_PAUSE_MAX: Duration = Duration::from_millis(160);

/// Time in which no minimum rate applies to a body: a slow start does not make a slow client.
pub const RATE_GRACE_SWEEPS: u64 = 30;

/// Bytes of an answer's text kept for a tokenizer, as they are in the frames, with escapes. The text of a longer answer
/// is not counted: 64 thousand tokens of English fit.
pub const KEPT_TEXT_BYTES: usize = 256 * 1024;

/// Bytes of all such texts together, including those waiting to be counted. Beyond it, the text of a further stream is
/// not kept.
pub const KEPT_TEXTS_BYTES: usize = 64 * 1024 * 1024;

/// HTTP/2: bytes of one decoded header list, as for HTTP/1.
pub const H2_HEADER_LIST_BYTES: u32 = 64 * 1024;

/// HTTP/2: streams reset by the peer before the proxy accepted them ("rapid reset"). Beyond it the connection is
/// closed.
pub const H2_PENDING_RESETS: usize = 64;

/// HTTP/2: resets sent because the peer violated the protocol, before the connection is closed.
pub const H2_LOCAL_RESETS: usize = 256;

/// HTTP/2: bytes of an answer handed over at a time: at the minimum rate its client reads them in half of the grace
/// time.
pub const H2_PIECE_BYTES: usize = 2048;

/// HTTP/2: the time after the end of a request in which its connection writes the answer, and is not closed for another one:
/// some turns on a busy machine, and less than a client waits for a place.
pub const H2_ANSWER_WRITTEN_NS: u64 = 100_000_000;

/// HTTP/2: the period at which a truncated answer is checked for bytes that its client's socket did not take.
pub const H2_WRITE_CHECK: Duration = Duration::from_millis(10);

/// HTTP/2: bytes that a stream may send before the proxy reads them. Prompts are a few KiB; large ones take a few more
/// round trips.
pub const H2_STREAM_WINDOW: u32 = 64 * 1024;

/// HTTP/2: the same for a whole connection.
pub const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;

/// HTTP/2 to an upstream: streams on one connection, if the server allows more; the recommended minimum of servers
/// (RFC 9113 §6.5.2). Further requests get a further connection.
pub const H2_UPSTREAM_STREAMS: usize = 100;

/// HTTP/2 to an upstream: bytes of a header list on a shared connection. Some servers close the connection for a longer
/// one (RFC 9113 §10.5.1), with the streams of all its clients; common servers accept this much. Real clients send
/// less.
pub const H2_SHARED_LIST_BYTES: usize = 8 * 1024;

/// HTTP/2 to an upstream: bytes of a stream that a server may send before they are read: the protocol's default. A
/// response transfers at most this many bytes in a round trip, and a slow client's stream holds them in memory. A stream
/// of 200 tokens a second, each in a frame of 300 bytes, needs 6 KB for a round trip of 100 ms.
pub const H2_UPSTREAM_STREAM_WINDOW: u32 = 64 * 1024;

/// HTTP/2 to an upstream: the same for a connection: a full window for each stream, so that the streams of slow clients
/// never stop the others. It bounds the memory of a connection, 6.25 MiB.
pub const H2_UPSTREAM_CONNECTION_WINDOW: u32 = H2_UPSTREAM_STREAMS as u32 * H2_UPSTREAM_STREAM_WINDOW;

/// HTTP/2 to an upstream: bytes of a decoded header list. Twice the limit of a head, so that an error response can
/// name the limit; a longer list ends its stream.
pub const H2_RESPONSE_LIST_BYTES: u32 = 2 * BUFFER_BYTES as u32;

/// HTTP/2 to an upstream: the sum, over the unread DATA frames of a connection that are shorter than 256 bytes, of the
/// bytes that they lack: their bookkeeping takes memory that no window counts. Enough for all streams of a connection
/// to stall with frames of 100 bytes. Beyond it the connection is closed.
pub const H2_SMALL_FRAMES_BYTES: usize = 12 * 1024 * 1024;

/// HTTP/2 to an upstream: reset streams that are remembered, so that frames in transit are ignored, and for how long:
/// a server has seen the reset by then.
pub const H2_RESETS_KEPT: usize = 1024;

/// See [`H2_RESETS_KEPT`].
pub const H2_RESET_KEPT: Duration = Duration::from_secs(5);

/// HTTP/2 to an upstream: streams that the server made invalid, in the life of a connection. Beyond it the connection
/// is closed.
pub const H2_UPSTREAM_ERRORS: usize = 1024;

/// HTTP/2 to an upstream: bytes of a request body that claim a part of the connection's window at a time: one frame.
pub const H2_UPLOAD_PIECE_BYTES: usize = 16 * 1024;

/// HTTP/2 to an upstream: bytes of a request body that are kept until the response, to send the request again if the
/// server refuses it. The initial window of a stream: more is sent only after the server has taken some.
pub const H2_REPLAY_BYTES: usize = 64 * 1024;

/// HTTP/2 to an upstream: further attempts for a request that the server refuses unprocessed.
pub const H2_REFUSALS: usize = 3;

/// HTTP/2 to an upstream: bytes read from a connection in one turn, then the tasks of its streams run.
pub const H2_TURN_BYTES: usize = 64 * 1024;

/// HTTP/2 to an upstream: the silence of a server with open requests after which it is sent a PING. While a model
/// computes, the server sends no data, but it answers a PING at once.
pub const H2_PING_AFTER: Duration = Duration::from_secs(15);

/// HTTP/2 to an upstream: the time in which it must answer; then the connection is closed and its requests fail.
pub const H2_PONG_WITHIN: Duration = Duration::from_secs(15);

/// HTTP/2 to an upstream: the time for which a connection that nothing uses may take to close.
pub const H2_CLOSE: Duration = Duration::from_secs(1);

/// HTTP/2 to an upstream: a connection may be idle for this multiple of the plan's `pool_idle`, by default 48 s. That is
/// short for servers that close without notice; here the close is announced, requests that meet it are sent again, and
/// load balancers keep connections for 60 s and more.
pub const H2_IDLE_FACTOR: u64 = 12;

/// Bytes of a rejection in which the name of an added option is sought; validation errors have some hundred.
pub const REJECTION_BYTES: usize = 16 * 1024;

/// The time to wait for the beginning of a rejection's body, which most servers send with its head.
pub const REJECTION_TIME: Duration = Duration::from_secs(1);
