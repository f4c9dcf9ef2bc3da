//! The watcher of a fake server: its requests, their times and its results.

#![expect(clippy::unwrap_used, reason = "all of it is a test; the lint spares only functions marked so")]

mod fake; // a server with configured replies
mod watched; // the watcher of it, and its results

mod detect; // the detected server, and the requests
mod drift; // counters against the proxy's totals, over restarts
mod hostile; // slow, huge, broken, garbage
