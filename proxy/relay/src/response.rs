//! The parts of a response to the client that are the same for every engine.

pub(crate) mod edit;
pub(crate) mod interim;
