//! The simulated server: a listener, its connections and a handle to watch and stop it.
//!
//! It runs wherever it is bound: on a current-thread runtime or on a pool of threads. Dropping the
//! handle stops it, connections included, so a test that fails leaves nothing behind.
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

/// How a server is simulated.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which server it looks like.
    pub shape: Shape,
    /// How fast it is.
    pub speed: Model,
    /// The models it serves; requests for others get 404. None: it serves whatever is asked for.
    pub models: Vec<String>,
    /// Together with the question, decides what an answer says.
    pub seed: u64,
    /// Output tokens of an answer for which the request sets no length.
    pub output_tokens: u64,
    /// What goes wrong with each answer whose request does not say so itself.
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
    /// A server of this shape that never waits.
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
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://` and where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What it has counted so far.
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// Waits until the counts satisfy `wanted`, for at most `limit`. The counts at that moment, or
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
            // Polled, so that the counters need no notice on each token.
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Stops listening and drops all connections, as a killed process would. Returns when the port
    /// is free again.
    pub async fn shutdown(mut self) {
        self.acceptor.abort();
        // An aborted task's result is the abort.
        let _ = (&mut self.acceptor).await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

/// What all connections of a server share.
#[derive(Debug)]
struct Engine {
    options: Options,
    batch: Batch,
    counters: Arc<Counters>,
}
