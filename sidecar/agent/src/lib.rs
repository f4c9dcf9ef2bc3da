//! HTTP requests that block the caller, for threads without traffic: published keys, the drain, and posts of budget
//! alerts and usage events.
//!
//! Laws: a request reads a bounded response, and ends within its time limit; no text holds the path or the query of an
//! address, in which some servers have keys. A post follows no redirect.

mod agent;
mod endpoint;
mod failure;
mod pause;
mod post;

pub use agent::{Agent, Error, Options, Response};
pub use endpoint::{Endpoint, EndpointError};
pub use failure::{Failure, Kind};
pub use pause::jittered;
pub use post::Post;
pub use ureq::http::Request;
