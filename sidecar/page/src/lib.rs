//! Admin HTTP: the metrics page, the probes, the live page and the drain, on a thread of their own.
//!
//! This is the control plane's only listener. It reads through one trait, [`Source`], and of other crates it knows only
//! the types of the live page's JSON. It is read-only (GET and HEAD), except for the drain (POST with a token), and
//! shares no thread with the data plane, so that a blocked scrape never affects traffic (law 3). Every resource of a
//! peer is bounded in [`limits`]. Names are untrusted (law 12): they are values of JSON, which the page shows as text.
//!
//! Reading order: [`Source`] (the content), `route` (responses by path), `host` (allowed hosts), `server` (the thread),
//! `slots` (its connections), `render` (content rendered on other threads), `state` and `stream` (the live page's
//! numbers), `assets` (its files, which `web/` builds).

mod assets;
mod body;
mod cached;
mod history;
mod host;
mod limits;
mod render;
mod route;
mod server;
mod slots;
mod source;
mod state;
mod stream;

pub use cached::Cached;
pub use host::AllowedHosts;
pub use limits::CONNECTIONS;
pub use server::{Error, Listeners, Running, TlsListener, start};
pub use source::{Content, Drained, JSON, NoAccess, NoDrain, Render, Source};
