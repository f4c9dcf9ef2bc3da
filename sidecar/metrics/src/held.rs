//! The parts that clients hold of what they share. The law: a number without its bound says nothing, so both are there.

use std::fmt::Result;
use std::sync::Arc;

use crate::family::Family;

/// The amount taken of one thing, and its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounded {
    /// The amount that is taken.
    pub taken: u64,
    /// The bound.
    pub limit: u64,
}

/// The parts that clients hold of what they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldReading {
    /// Connections of clients.
    pub connections: Bounded,
    /// Bytes of request bodies that are gathered.
    pub gathered_bytes: Bounded,
    /// Connections that carry a request, by the upstream's name.
    pub upstream_connections: Vec<(Arc<str>, Bounded)>,
}

/// The label value of `what` for connections to the admin address that gave way to others.
pub const ADMIN_CONNECTION: &str = "admin_connection";

/// One sample, if there is a data plane.
pub(crate) fn one(
    reading: Option<&HeldReading>,
    family: &mut Family,
    pick: impl Fn(&HeldReading) -> u64,
) -> Result {
    reading.map_or(Ok(()), |reading| family.count(&[], pick(reading)))
}

/// A sample for each upstream.
pub(crate) fn upstreams(
    reading: Option<&HeldReading>,
    family: &mut Family,
    pick: impl Fn(Bounded) -> u64,
) -> Result {
    let mut all = reading.into_iter().flat_map(|reading| &reading.upstream_connections);
    all.try_for_each(|(upstream, bounded)| family.count(&[upstream], pick(*bounded)))
}
