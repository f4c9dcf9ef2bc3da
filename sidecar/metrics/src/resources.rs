//! Use of the resources that clients share. Invariant: each number comes with its limit.

use std::fmt::Result;
use std::sync::Arc;

use crate::family::Family;

/// The use of one resource, and its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounded {
    /// The amount in use.
    pub used: u64,
    /// The limit.
    pub limit: u64,
}

/// Use of the resources that clients share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceReading {
    /// Open client connections.
    pub connections: Bounded,
    /// Bytes of buffered request bodies.
    pub gathered_bytes: Bounded,
    /// Upstream connections that carry a request, by the upstream's name.
    pub upstream_connections: Vec<(Arc<str>, Bounded)>,
}

/// Label value of `what` of `tokenmeter_dropped_total` for an evicted connection to the admin address.
pub const ADMIN_CONNECTION: &str = "admin_connection";

/// Writes one sample, if the process has a data plane.
pub(crate) fn one(
    reading: Option<&ResourceReading>,
    family: &mut Family,
    pick: impl Fn(&ResourceReading) -> u64,
) -> Result {
    reading.map_or(Ok(()), |reading| family.count(&[], pick(reading)))
}

/// Writes one sample for each upstream.
pub(crate) fn upstreams(
    reading: Option<&ResourceReading>,
    family: &mut Family,
    pick: impl Fn(Bounded) -> u64,
) -> Result {
    let mut all = reading.into_iter().flat_map(|reading| &reading.upstream_connections);
    all.try_for_each(|(upstream, bounded)| family.count(&[upstream], pick(*bounded)))
}
