//! The admin thread: a listener and a single-threaded runtime of its own, shared with nobody, and
//! beside it the few threads that print scrape pages.
//!
//! Each connection carries one request and then closes, within [`CONNECTION_TIME`]: scrapes and
//! probes are seconds apart, and so no state of a peer's outlives its answer.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use http_body_util::Either;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::host::AllowedHosts;
use crate::limits::{
    ACCEPT_PAUSE, CONNECTION_TIME, CONNECTIONS, HEAD_BYTES, HEAD_TIME, PRINTINGS, SAMPLE_EVERY,
};
use crate::press::Press;
use crate::route::{Answer, Routes};
use crate::source::Source;
use crate::speed::Speed;

/// Binds `listen` and answers on it until the returned value is dropped.
pub fn start(listen: SocketAddr, hosts: AllowedHosts, source: Box<dyn Source>) -> Result<Running, Error> {
    let listener = TcpListener::bind(listen).map_err(|cause| Error::Bind { address: listen, cause })?;
    listener.set_nonblocking(true).map_err(Error::Start)?;
    let address = listener.local_addr().map_err(Error::Start)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(PRINTINGS)
        .build()
        .map_err(Error::Start)?;
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("admin".to_owned())
        .spawn(move || {
            let routes = Routes { source, hosts, speed: Speed::default() };
            LocalSet::new().block_on(&runtime, async {
                tokio::select! {
                    () = serve(listener, Rc::new(RefCell::new(routes))) => {}
                    _ = stopped => {}
                }
            });
        })
        .map_err(Error::Start)?;
    Ok(Running { address, stop: Some(stop), thread: Some(thread) })
}

/// The running admin listener. Dropping it closes the listener and every connection.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Where it listens: the address that was asked for, with a port if that was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Why the admin listener did not start.
#[derive(Debug)]
pub enum Error {
    /// The address could not be bound.
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// The thread or its runtime could not be made.
    Start(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { address, cause } => write!(f, "cannot listen on {address}: {cause}"),
            Self::Start(cause) => write!(f, "cannot start the admin thread: {cause}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind { cause, .. } | Self::Start(cause) => Some(cause),
        }
    }
}

async fn serve(listener: TcpListener, routes: Rc<RefCell<Routes>>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the admin listener cannot be polled"),
    };
    tokio::task::spawn_local(sample(routes.clone()));
    let press = Rc::new(Press::default());
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let slot = slots.clone().acquire_owned().await.expect("the semaphore is never closed");
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "the admin listener could not accept");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (routes, press) = (routes.clone(), press.clone());
        tokio::task::spawn_local(async move {
            let _slot = slot;
            // An error here is a peer that left or was too slow; there is nobody to tell.
            let _ = timeout(CONNECTION_TIME, connection(stream, &routes, &press)).await;
        });
    }
}

async fn connection(stream: TcpStream, routes: &RefCell<Routes>, press: &Press) -> hyper::Result<()> {
    let service = service_fn(|request| {
        let answer = routes.borrow().answer(&request);
        async {
            Ok::<_, Infallible>(match answer {
                Answer::Now(response) => response.map(Either::Left),
                Answer::Print(scrape, gzip) => press.print(scrape, gzip).await,
            })
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn sample(routes: Rc<RefCell<Routes>>) {
    let mut seconds = interval(SAMPLE_EVERY);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        seconds.tick().await;
        routes.borrow_mut().sample();
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
