//! Admin HTTP: the metrics page, the probes, the live page and the drain, on a thread of their own.
//!
//! This is the control plane's only listener. It reads through one trait, [`Source`], and depends on no type of
//! another crate. It is read-only (GET and HEAD), except for the drain (POST with a token), and shares no thread with the
//! data plane, so that a blocked scrape never affects traffic (law 3). Every resource of a peer is bounded in [`limits`], and names on the page are
//! escaped, because they are untrusted (law 12).
//!
//! Reading order: [`Source`] and [`View`] (the content), `route` (responses by path), `host` (allowed hosts),
//! `server` (the thread), `slots` (its connections), `scrape` (scrape pages), `html` and `speed` (the live page).

mod host;
mod html;
mod limits;
mod route;
mod scrape;
mod server;
mod slots;
mod source;
mod speed;

pub use host::AllowedHosts;
pub use limits::CONNECTIONS;
pub use server::{Error, Running, start};
pub use source::{Drained, Model, NoDrain, Readiness, Render, Scrape, Source, Spend, Tenant, Upstream, View};
