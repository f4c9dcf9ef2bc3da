//! Carries one request: its body to the upstream, as far as the decisions about it allow, and the response back.

pub(crate) mod handed;
mod held_timer;
mod open;
pub(crate) mod pump;
pub(crate) mod rest;
mod slices;
