//! A client's connection from its beginning to its end, by the protocol that the client speaks.

use std::rc::Rc;

use super::h1::{Outcome, serve as serve_http1};
use super::h2::serve as serve_http2;
use crate::Dropped;
use crate::conn::client::Client;
use crate::conn::client_stream::ClientStream;
use crate::conn::tunnel::{self, UpstreamIo};
use crate::connections::Connections;
use crate::metering::metered::Metered;
use crate::request::in_flight::InFlight;

/// Serves one client connection of an upstream's listener until it ends; dropping the future cuts the connection. Futures
/// of rare events are boxed: the connection has memory for requests of HTTP/1.1 only.
pub(crate) async fn serve(connections: Rc<Connections>, upstream: usize, client: Rc<Client>) {
    // Most connections begin with a request.
    let is_before = client.is_tls() || client.awaits_header();
    let is_http2 = match !is_before || Box::pin(client.establish(&connections.worker)).await {
        true => client.speaks_http2(&connections.buffers.read).await.ok().flatten(),
        false => None,
    };
    let outcome = match is_http2 {
        Some(false) => serve_http1(&connections, &client, upstream).await,
        Some(true) => {
            Box::pin(serve_http2(&connections, &client, upstream)).await;
            Outcome::Cut
        }
        None => Outcome::Ended,
    };
    match outcome {
        Outcome::Switched(to) => Box::pin(serve_tunnel(&connections, (&client, upstream), *to)).await,
        Outcome::Ended => {
            client.end();
            Box::pin(client.linger()).await;
        }
        Outcome::Cut => {}
    }
    if client.has_timed_out() {
        connections.worker.dropped(Dropped::SlowClient);
    }
}

/// Serves a connection that switched protocols until it ends.
async fn serve_tunnel(
    connections: &Rc<Connections>,
    (client, upstream): (&Rc<Client>, usize),
    upstream_io: UpstreamIo,
) {
    client.begin_tunnel(upstream, upstream_io.places.0.holder());
    let metered = Metered::not(&connections.worker);
    // The request lasts as long as its tunnel.
    let worker = (&connections.worker, &connections.watched);
    let _in_flight = InFlight::new(worker, upstream, client, metered, (true, true));
    let left = client.left_tunnel(upstream_io.session.is_some());
    tunnel::run((ClientStream::new(client), left), upstream_io).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the future that a function returns, in bytes.
    const fn future_bytes<A, B, C, F>(_: &impl Fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn connection_has_a_small_future() {
        let bytes = future_bytes(&serve);
        assert!(bytes <= 800, "{bytes}");
    }
}
