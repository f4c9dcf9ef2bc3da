//! What carries the bytes. Policy, fields, routes, answers, the meter and the record stand above
//! this line and are the same for every engine; below it is one room per engine, and nothing
//! outside that room names the library the engine is made of.
//!
//! # The contract
//!
//! For each client connection the worker calls the engine's `serve` once, on its own thread, and
//! drops the future to cut the connection. For each request an engine promises, in this order:
//!
//! 1. [`policy::check`](crate::request::policy::check) before anything is sent; a violation is answered and
//!    counted with [`Observer::refuse`](crate::Observer::refuse), and no byte goes upstream. Then the
//!    tenant rules' word on the head: fields that its peer may not send, how much of its path the
//!    upstream is spared, and, of what may be metered, whose it is.
//! 2. For a path that may be metered, `Exchange::begin` when the head is known, then each slice of
//!    the request body once, in order, as the client sent it; then `request_complete`, also when
//!    there was no body. Where the plan has a gate, the tenant is asked for before anything goes
//!    upstream: of a request whose body decides it, after it was gathered; `refused` ends the exchange
//!    without a record. A request in which usage may be asked for (`asking`) is gathered, edited by
//!    the crate `usage`, and sent as it came if the server refuses the edit; `asked_more` says what
//!    is in the request that counts.
//! 3. `response_head` once, of the answer the client will see. It may say that there is no exchange
//!    here after all, or that the body is edited. Then each slice of the response body once, in
//!    order, with the tick at which it was read, in the turn in which it is handed on (law 2). The
//!    slice is handed on whatever the exchange makes of it, but for what it marks in an edited body;
//!    what waits there goes after `usage::HOLD_TIME`, at the end, or when the meter fails.
//! 4. Exactly one end: `response_end` after a complete body, `upstream_cut` when it broke off,
//!    `answered_locally` when no upstream could; or the exchange is dropped without any of them,
//!    which means that the client left. By then the upstream's socket is closed (law 4), unless `client_left` asked
//!    for the rest of the body, which is shown to the exchange for at most
//!    [`limits::REST_TIME`](crate::limits::REST_TIME) before it is dropped.
//! 5. A body that broke off reaches the client broken off: no last chunk, a reset stream.
//! 6. Nothing is buffered beyond [`limits::BUFFER_BYTES`](crate::limits::BUFFER_BYTES) each way: a
//!    slow client stops its upstream, and `client_waited` says for how long.

pub(crate) mod hyper;
