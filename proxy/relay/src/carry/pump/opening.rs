//! The connection for one attempt: from the pool, or a new one, by the protocol that both agree on.

use connect::Protocol;

use crate::carry::open::{Attempts, open};
use crate::connections::Connections;
use crate::engine::hyper::Http2Connection;
use crate::engine::net::pool::{Need, Pool, Transport};
use crate::request::answer::Answer;
use crate::request::in_flight::InFlight;
use crate::wire::h1::Http1Up;
use crate::wire::h1::upstream_socket::UpstreamSocket;
use crate::wire::h2::up::Http2Up;
use crate::wire::upstream::Upstream;

/// Takes a connection for a request from the pool, or opens one, after a wait for a place at the upstream.
pub(super) async fn upstream(
    connections: &Connections,
    in_flight: &InFlight,
    attempts: Attempts,
) -> Result<Upstream, Answer> {
    let (worker, index) = (&in_flight.worker, in_flight.upstream);
    let pool = &connections.pools[index];
    let need = attempts.need(pool);
    let mut slot = worker.capacities.upstreams[index].permit(in_flight.holder.clone());
    if !(slot.grow_in_turn(1) || slot.grow_soon(1, in_flight.retry_pause()).await) {
        return Err(Answer::upstream_full(in_flight.upstream_name()));
    }
    if need == Need::Any && pool.shared.is_idle() {
        // The server may have ended an idle connection: the runtime reads that first.
        tokio::task::yield_now().await;
    }
    let take = |pool: &Pool| pool.take_transport(need).map(|transport| (transport, true));
    let (transport, is_reused) = match take(pool) {
        Some(taken) => taken,
        None => {
            let start = async |pool: &Pool, stream: connect::Stream, place| match stream.protocol() {
                Protocol::Http1 => {
                    pool.shared.forget();
                    Ok((Transport::Socket(UpstreamSocket::new(stream, place)), false))
                }
                Protocol::Http2 => {
                    let connection = Http2Connection::start(worker, stream, place).await?;
                    Ok((Transport::Stream(pool.add_shared(connection, need)), false))
                }
            };
            // Boxed: most requests find a connection.
            Box::pin(open(connections, in_flight, need, take, start)).await?
        }
    };
    Ok(match transport {
        Transport::Socket(socket) => {
            Upstream::Http1(Http1Up::new((socket, is_reused), slot, &pool.sockets, in_flight))
        }
        Transport::Stream(place) => {
            Upstream::Http2(Box::new(Http2Up::new(place, is_reused, slot, in_flight)))
        }
    })
}
