//! HTTP posts to a receiver: budget alerts and usage events.
//!
//! Laws: an attempt ends in time and reads a bounded response; a redirect is never followed; no text holds the path or
//! the query of the address, in which receivers put keys.

mod endpoint;
mod failure;
mod pause;
mod post;

pub use endpoint::{Endpoint, EndpointError};
pub use failure::{Failure, Kind};
pub use pause::jittered;
pub use post::Post;
