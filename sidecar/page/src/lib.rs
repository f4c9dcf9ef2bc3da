//! Admin HTTP: the metrics page, the probes and the live page, on a thread of their own.
//!
//! The control plane's only listener. It reads through one trait, [`Source`], so it depends on
//! nobody's types; it changes nothing (GET and HEAD only) and shares no thread with the data plane,
//! so a scrape that hangs costs a scrape and never a token (law 3). Everything a stranger can do to
//! it has a bound in [`limits`], and names shown on the page are escaped: they are untrusted text
//! (law 12).
//!
//! Reading order: [`Source`] and [`View`] (what is shown), `route` (which path answers what),
//! `host` (who may ask), `server` (the thread), `slots` (its connections), `press` (scrape pages), `html` and `speed` (the live
//! page).

mod host;
mod html;
mod limits;
mod press;
mod route;
mod server;
mod slots;
mod source;
mod speed;

pub use host::AllowedHosts;
pub use limits::CONNECTIONS;
pub use server::{Error, Running, start};
pub use source::{Model, Print, Readiness, Scrape, Source, Spend, Tenant, Upstream, View};
