//! The rules of a request, whichever engine carries it.

pub(crate) mod answer;
pub(crate) mod error_shape;
pub(crate) mod headers;
mod path;
pub(crate) mod policy;
pub(crate) mod route;
pub(crate) mod tenant;
pub(crate) mod usage_policy;
