//! A worker without a thread and listeners, for tests of one pair of connections: its caller polls it.

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustls::ServerConfig;
use tokio::net::UnixStream;

use crate::conn::socket::Socket;
use crate::conn::tls::Tls;
use crate::connections::Connections;
use crate::contained::Contained;
use crate::outbox::Outbox;
use crate::state::{Capacities, Shared, WorkerState};
use crate::wire::serve::serve;
use crate::{Control, Observer, Plan};

/// A worker that serves the connections that its caller gives it.
pub struct LoneWorker(Rc<Connections>);

impl LoneWorker {
    /// A worker of this plan, whose listeners it does not open.
    pub fn new(plan: Plan, control: Control, observer: Box<dyn Observer>, outbox: Outbox) -> Self {
        let shared = Shared::new(plan, control, outbox);
        Self(Connections::new(&WorkerState::new(shared, observer, Arc::default())))
    }

    /// Serves a client of the first upstream, within a session if the listener has TLS, until its connection ends.
    pub async fn serve(&self, client: UnixStream, tls: Option<Arc<ServerConfig>>) {
        let peer = (Ipv4Addr::LOCALHOST.into(), false);
        let tls = tls.map(|config| Box::new(Tls::new(config).expect("it starts sessions")));
        let client = self.0.client(Socket::Unix(client), tls, peer);
        let serving = serve(Rc::clone(&self.0), 0, client);
        Contained::new(&self.0.worker, serving).await;
    }

    /// The bytes of the memory for messages that no connection has taken.
    pub fn free_output_bytes(&self) -> usize {
        self.0.buffers.out.borrow().capacity()
    }

    /// The amounts of shared capacities that are in use, and the requests in flight.
    pub fn in_use(&self) -> [usize; 4] {
        let Capacities { connections, gathered_bytes, upstreams, .. } = &self.0.worker.capacities;
        let requests = self.0.worker.in_flight.load(Ordering::Relaxed);
        [connections.taken(), gathered_bytes.taken(), upstreams[0].taken(), requests]
    }
}
