//! The buffers of one worker, and its connections to upstreams.

use super::up::Http1Up;
use super::upstream_socket::UpstreamSocket;
use crate::connections::Connections;
use crate::request::answer::Answer;
use crate::request::in_flight::InFlight;
use crate::request::reject::unconnected;
use crate::wire::Buffers;

/// The buffers of one worker.
pub(crate) struct Http1 {
    pub(crate) buffers: Buffers,
}

impl Http1 {
    /// The state of a worker without connections.
    pub(crate) fn new() -> Self {
        Self { buffers: Buffers::new() }
    }
}

/// Takes a connection for a request from the pool, or opens one, after a wait for a place at the upstream.
pub(crate) async fn open(connections: &Connections, in_flight: &InFlight) -> Result<Http1Up, Answer> {
    let worker = &in_flight.worker;
    let index = in_flight.upstream;
    let mut slot = worker.capacities.upstreams[index].permit(in_flight.holder.clone());
    if !(slot.grow_in_turn(1) || slot.grow_soon(1, in_flight.retry_pause()).await) {
        return Err(Answer::upstream_full(in_flight.upstream_name()));
    }
    let pool = &connections.pools[index].sockets;
    let socket = match pool.take() {
        Some(socket) => (socket, true),
        // Boxed: most requests find a connection.
        None => (Box::pin(connect(connections, in_flight)).await?, false),
    };
    Ok(Http1Up::new(socket, slot, pool, in_flight))
}

/// Opens a connection for a request.
async fn connect(connections: &Connections, in_flight: &InFlight) -> Result<UpstreamSocket, Answer> {
    let plan = &in_flight.worker.plan;
    let upstream = &plan.upstreams[in_flight.upstream];
    let Some(place) = connections.socket(in_flight).await else { return Err(Answer::overloaded()) };
    let connected = UpstreamSocket::connect(&upstream.target, plan.connect_timeout, place).await;
    connected.map_err(|error| unconnected(&upstream.name, &error))
}
