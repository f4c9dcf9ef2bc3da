//! Plans the limits on shared resources.

use relay::Shares;

use super::values::Reader;
use crate::plan::machine::Machine;

impl Reader<'_> {
    /// Returns the limits of a data plane with that many upstreams, workers, and client connections per worker.
    pub(super) fn shares(
        &mut self,
        machine: &dyn Machine,
        upstreams: usize,
        workers: usize,
        connections: usize,
    ) -> Shares {
        let upstream_connections = match self.written.values.contains_key("upstream_connections") {
            true => self.count("upstream_connections"),
            false => workers.saturating_mul(connections),
        };
        let reserve = self.descriptor_reserve(machine);
        let sockets = machine.descriptors().map(|limit| {
            // Each worker has a listener per upstream, and the runtime's descriptors.
            let workers = workers * (upstreams + WORKER_DESCRIPTORS);
            limit.saturating_sub(reserve).saturating_sub(PROCESS_DESCRIPTORS + workers)
        });
        Shares {
            body_idle: self.milliseconds("body_idle_ms"),
            body_min_rate_bytes: self.number("body_min_rate"),
            body_time: self.milliseconds("body_time_ms"),
            client_stall: self.milliseconds("client_stall_ms"),
            gather_room_bytes: self.count("gather_memory_mib").saturating_mul(1024 * 1024),
            upstream_connections,
            h2_streams: u32::try_from(self.number("streams_per_connection")).unwrap_or(u32::MAX),
            sockets: sockets.map_or(usize::MAX, |sockets| sockets.max(1)),
        }
    }

    /// Returns the number of connections to the admin address: half of the descriptor reserve; the ledger and the
    /// export have the rest.
    pub(super) fn admin_connections(&mut self, machine: &dyn Machine) -> usize {
        (self.descriptor_reserve(machine) / 2).clamp(4, page::CONNECTIONS)
    }

    fn descriptor_reserve(&mut self, machine: &dyn Machine) -> usize {
        let limit = machine.descriptors().unwrap_or(usize::MAX);
        self.count("descriptor_reserve").min(limit / 4)
    }
}

/// Descriptors of a worker's runtime.
const WORKER_DESCRIPTORS: usize = 4;

/// Descriptors that the process has open before its first connection.
const PROCESS_DESCRIPTORS: usize = 32;

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
