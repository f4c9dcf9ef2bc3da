//! A client that reads late: its socket takes few bytes, and it shares its thread with the proxy.

use std::path::Path;
use std::sync::Arc;

use connect::{Address, Target};
use relay::outbox;
use relay::testing::LoneWorker;
use rustls::ServerConfig;
use tokio::net::UnixStream;
use tokio::task::{spawn_local, yield_now};

use super::{observer, plan};

/// Turns in which the proxy does all that it can without its client.
const TURNS: usize = 300;

/// Connects a client to a new proxy, whose server listens at `server`.
pub(crate) fn connect(server: &Path, tls: Option<Arc<ServerConfig>>) -> UnixStream {
    let mut plan = plan(([127, 0, 0, 1], 1).into());
    plan.upstreams[0].target = Target::new(Address::Unix(server.into()), None);
    let (sender, inbox) = outbox(16);
    let worker = LoneWorker::new(plan.relay, plan.control, observer(), sender);
    let (client, proxys) = UnixStream::pair().unwrap();
    // The least that the kernel allows.
    socket2::SockRef::from(&proxys).set_send_buffer_size(1).unwrap();
    spawn_local(async move {
        let _inbox = inbox;
        worker.serve(proxys, tls).await;
    });
    client
}

/// Waits until the proxy can do nothing without its client.
pub(crate) async fn wait() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}
