//! The real binary from outside: its output, its responses and its exit codes. Its measurements are tested elsewhere.

#![expect(clippy::unwrap_used, reason = "all of it is a test; the lint spares only functions marked so")]

mod access;
mod admin_token;
mod child;
mod collectors;
mod curve;
mod demo;
mod fake_admin;
mod inject;
mod labels;
mod ledgers;
mod output;
mod progress;
mod proxying;
mod readiness;
mod refusals;
mod screen;
mod signals;
mod tenants;
mod terminal;
mod top;
mod words;
