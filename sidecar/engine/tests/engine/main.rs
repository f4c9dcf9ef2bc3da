//! The watcher in front of a made-up server: what it asks, when, and what comes of it.

#![expect(clippy::unwrap_used, reason = "all of it is a test; the lint spares only functions marked so")]

mod fake; // a server that answers as it is told
mod watched; // the watcher in front of it, and what it said

mod drift; // counters against ours, over restarts
mod hostile; // slow, huge, broken, garbage
mod recognise; // which server it is, and what it was asked
