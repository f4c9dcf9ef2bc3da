//! The simulated server: a listener, its connections and a handle to observe and stop it.
//!
//! It runs on a current-thread runtime or on a thread pool. Dropping the
//! handle stops it with all connections, so a failed test leaves nothing running.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! use simulator::server::{Options, Server};
//! use simulator::shape::Vllm;
//!
//! let server = Server::bind("127.0.0.1:0".parse().unwrap(), Options::instant(Vllm)).await?;
//! println!("curl {}/v1/models", server.url());
//! assert_eq!(server.counts().requests, 0);
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod connection;
mod route;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::batch::Batch;
use crate::counters::Counters;
use crate::shape::Shape;
use crate::speed::Model;

pub use crate::counters::Counts;
pub use route::{Answer, Body};

/// The configuration of a simulated server.
#[derive(Clone, Debug)]
pub struct Options<S> {
    /// The server it imitates.
    pub shape: S,
    /// Its speed.
    pub speed: Model,
    /// The models it serves; requests for others get 404. Empty: any model.
    pub models: Vec<String>,
    /// Determines the content of responses, together with the request.
    pub seed: u64,
    /// Output tokens of a response without a length in its request.
    pub output_tokens: u64,
}

impl<S: Default> Default for Options<S> {
    fn default() -> Self {
        Self { shape: S::default(), speed: Model::default(), models: Vec::new(), seed: 0, output_tokens: 128 }
    }
}

impl<S: Default> Options<S> {
    /// Returns a server of this shape without delays.
    pub fn instant(shape: S) -> Self {
        Self { shape, speed: Model::instant(), ..Self::default() }
    }
}

/// The simulated server.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Listens on `addr` (port 0 for any free one) and serves until the handle is dropped.
    pub async fn bind<S: Shape>(addr: SocketAddr, options: Options<S>) -> io::Result<Handle> {
        Self::bind_with(addr, options, connection::serve).await
    }

    /// Like [`Self::bind`], with another way to serve a connection.
    pub async fn bind_with<S, F>(
        addr: SocketAddr,
        options: Options<S>,
        serve: impl Fn(TcpStream, Arc<Engine<S>>) -> F + Send + 'static,
    ) -> io::Result<Handle>
    where
        S: Shape,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let counters = Arc::new(Counters::default());
        let engine = Arc::new(Engine {
            batch: Batch::new(options.speed.clone(), Arc::clone(&counters)),
            counters: Arc::clone(&counters),
            options,
        });
        let acceptor = tokio::spawn(connection::accept(listener, engine, serve));
        Ok(Handle { addr, counters, acceptor })
    }
}

/// A running server.
#[derive(Debug)]
pub struct Handle {
    addr: SocketAddr,
    counters: Arc<Counters>,
    acceptor: JoinHandle<()>,
}

impl Handle {
    /// Returns its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// Waits at most `limit` until the counts satisfy `wanted`. Returns the counts at that moment, or
    /// as an error those at the end of the limit.
    pub async fn until(&self, limit: Duration, wanted: impl Fn(&Counts) -> bool) -> Result<Counts, Counts> {
        let end = Instant::now() + limit;
        loop {
            let counts = self.counts();
            if wanted(&counts) {
                return Ok(counts);
            }
            if Instant::now() >= end {
                return Err(counts);
            }
            // Polled, so that the counters need no notification.
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Stops listening and drops all connections, like a killed process. Returns when the port
    /// is free.
    pub async fn shutdown(mut self) {
        self.acceptor.abort();
        // The result of an aborted task is the abort.
        let _ = (&mut self.acceptor).await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

/// The state that all connections of a server share.
#[derive(Debug)]
pub struct Engine<S> {
    options: Options<S>,
    batch: Batch,
    counters: Arc<Counters>,
}
