//! The simulated server: a listener, its connections and a handle to observe and stop it.
//!
//! It runs on a current-thread runtime or on a thread pool. Dropping the
//! handle stops it with all connections, so a failed test leaves nothing running.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! use simulator::server::{Options, Server};
//!
//! let server = Server::bind("127.0.0.1:0".parse().unwrap(), Options::default()).await?;
//! println!("curl {}/v1/models", server.url());
//! assert_eq!(server.counts().requests, 0);
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod connection;
mod route;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::batch::Batch;
use crate::counters::Counters;
use crate::faults::Faults;
use crate::speed::Model;

pub use crate::counters::Counts;
pub use crate::shape::Shape;

/// The configuration of a simulated server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server it imitates.
    pub shape: Shape,
    /// Its speed.
    pub speed: Model,
    /// The models it serves; requests for others get 404. Empty: any model.
    pub models: Vec<String>,
    /// Determines the content of responses, together with the request.
    pub seed: u64,
    /// Output tokens of a response without a length in its request.
    pub output_tokens: u64,
    /// The faults of responses whose request has no header for them.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shape: Shape::default(),
            speed: Model::default(),
            models: Vec::new(),
            seed: 0,
            output_tokens: 128,
            faults: Faults::default(),
        }
    }
}

impl Options {
    /// Returns a server of this shape without delays.
    pub fn instant(shape: Shape) -> Self {
        Self { shape, speed: Model::instant(), ..Self::default() }
    }
}

/// The simulated server.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Listens on `addr` (port 0 for any free one) and serves until the handle is dropped.
    pub async fn bind(addr: SocketAddr, options: Options) -> io::Result<Handle> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let counters = Arc::new(Counters::default());
        let engine = Arc::new(Engine {
            batch: Batch::new(options.speed.clone(), Arc::clone(&counters)),
            counters: Arc::clone(&counters),
            options,
        });
        let acceptor = tokio::spawn(connection::accept(listener, engine));
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
struct Engine {
    options: Options,
    batch: Batch,
    counters: Arc<Counters>,
}
