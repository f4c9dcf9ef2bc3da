//! The admin thread: a listener, and another one with TLS, with a single-threaded runtime of its own, and a few threads
//! that render scrape pages.
//!
//! Each connection carries one request and then closes, within [`CONNECTION_MAX_TIME`]: scrapes and probes are seconds
//! apart, and no state of a peer outlives its response. A few may wait longer, for the end of the drain. Idle connections
//! are evicted for later ones, so that probes are answered.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use hyper::Response;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, yield_now};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::body::ResponseBody;
use crate::host::AllowedHosts;
use crate::limits::{
    ACCEPT_PAUSE, CONNECTION_MAX_TIME, FIRST_BYTE_MAX_TIME, HEAD_MAX_BYTES, HEAD_MAX_TIME,
    LAST_ANSWERS_MAX_TIME, MAX_CONCURRENT_SCRAPES, SAMPLE_INTERVAL, SLOT_PAUSE,
};
use crate::render::Renderer;
use crate::route::{self, Answer, Routes};
use crate::slots::{Progress, Slot, Slots, StreamPlace, Taken};
use crate::source::Source;
use crate::stream::{self, Events};

/// The addresses on which the same is served.
#[derive(Clone, Debug)]
pub struct Listeners {
    /// The one without TLS.
    pub clear: SocketAddr,
    /// The one with TLS.
    pub with_tls: Option<TlsListener>,
}

/// A listener with TLS.
#[derive(Clone, Debug)]
pub struct TlsListener {
    /// Its address.
    pub address: SocketAddr,
    /// The current configuration; a new one applies to new connections.
    pub tls: Arc<ArcSwap<ServerConfig>>,
}

impl From<SocketAddr> for Listeners {
    fn from(clear: SocketAddr) -> Self {
        Self { clear, with_tls: None }
    }
}

/// Binds the listeners and serves at most `connections` at once, until the returned value is dropped.
pub fn start(
    listeners: Listeners,
    hosts: AllowedHosts,
    connections: usize,
    source: Box<dyn Source>,
) -> Result<Running, Error> {
    let Listeners { clear, with_tls } = listeners;
    let (listener, address) = bind(clear)?;
    let (with_tls, tls_address) = match with_tls {
        None => (None, None),
        Some(TlsListener { address, tls }) => {
            let (listener, address) = bind(address)?;
            (Some((listener, tls)), Some(address))
        }
    };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_CONCURRENT_SCRAPES)
        .build()
        .map_err(Error::Start)?;
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("admin".to_owned())
        .spawn(move || {
            let routes = RefCell::new(Routes::new(source, hosts));
            LocalSet::new().block_on(&runtime, async {
                let slots = Rc::new(Slots::new(connections));
                let (renderer, max_streams) = (Renderer::default(), stream::most(connections));
                let shared = Rc::new(Shared { routes, renderer, max_streams });
                tokio::task::spawn_local(sample(Rc::clone(&shared)));
                if let Some((listener, tls)) = with_tls {
                    let serving = serve(listener, Some(tls), Rc::clone(&slots), Rc::clone(&shared));
                    tokio::task::spawn_local(serving);
                }
                tokio::select! {
                    () = serve(listener, None, Rc::clone(&slots), shared) => {}
                    _ = stopped => {}
                }
                // A process may end right after its drain; its waiters are answered before.
                let _ = timeout(LAST_ANSWERS_MAX_TIME, answered(&slots)).await;
            });
        })
        .map_err(Error::Start)?;
    Ok(Running { address, tls_address, stop: Some(stop), thread: Some(thread) })
}

fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let listener = TcpListener::bind(address).map_err(|cause| Error::Bind { address, cause })?;
    listener.set_nonblocking(true).map_err(Error::Start)?;
    let address = listener.local_addr().map_err(Error::Start)?;
    Ok((listener, address))
}

/// The running admin listeners. Dropping it closes the listeners and every connection.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    tls_address: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Returns the bound address; the port is the actual one if 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the bound address of the listener with TLS, if there is one.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls_address
    }

    /// Returns both.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        [self.address].into_iter().chain(self.tls_address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

/// The error of a failed start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address could not be bound.
    #[error("cannot listen on {address}: {cause}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// The thread or its runtime could not be created.
    #[error("cannot start the admin thread: {0}")]
    Start(#[source] io::Error),
}

/// Waits until no connection waits for the end of the drain.
async fn answered(slots: &Slots) {
    while slots.has_waiters() {
        sleep(SLOT_PAUSE).await;
    }
}

/// A connection, and the configuration of its session if it has TLS.
type Accepted = (TcpStream, Option<Arc<ServerConfig>>);

/// The state that all connections share.
struct Shared {
    routes: RefCell<Routes>,
    renderer: Renderer,
    max_streams: usize,
}

async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ArcSwap<ServerConfig>>>,
    slots: Rc<Slots>,
    shared: Rc<Shared>,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the admin listener cannot be polled"),
    };
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok((stream, peer)) => (stream, peer.ip().to_canonical()),
            Err(error) => {
                tracing::debug!(%error, "the admin listener could not accept");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let shared = Rc::clone(&shared);
        let stream = (stream, tls.as_ref().map(|tls| tls.load_full()));
        match slots.take(peer) {
            Taken::Free(slot) => drop(tokio::task::spawn_local(answer(stream, slot, shared))),
            Taken::Evicting(slot) => {
                shared.routes.borrow().source.evicted();
                tokio::task::spawn_local(answer(stream, slot, shared));
                // The evicted connection closes in its own task. Without a turn for it, a backlog of connections would
                // open up to 128 descriptors more, the number of accepts that tokio allows one task without a pause.
                yield_now().await;
            }
            Taken::Full => match slots.wait() {
                Some(waiting) => drop(tokio::task::spawn_local(async move {
                    let slot = waiting.slot(peer).await;
                    answer(stream, slot, shared).await;
                })),
                None => shared.routes.borrow().source.evicted(),
            },
        }
    }
}

async fn answer(stream: Accepted, slot: Slot, shared: Rc<Shared>) {
    let slot = Rc::new(slot);
    tokio::select! {
        // An error means that the peer left or was too slow; there is no peer to answer.
        _ = connection(stream, &slot, &shared) => {}
        () = expired(&slot) => {}
        () = slot.evicted() => {}
    }
}

/// Waits for the maximum time of a connection, which begins after the drain if it waits for that. A stream has none.
async fn expired(slot: &Slot) {
    loop {
        sleep(CONNECTION_MAX_TIME).await;
        if !matches!(slot.progress(), Progress::Drain | Progress::Stream) {
            return;
        }
    }
}

async fn connection((stream, tls): Accepted, slot: &Rc<Slot>, shared: &Rc<Shared>) -> hyper::Result<()> {
    if !matches!(timeout(FIRST_BYTE_MAX_TIME, stream.readable()).await, Ok(Ok(()))) {
        return Ok(());
    }
    slot.reached(Progress::Head);
    let Some(tls) = tls else { return requests(stream, slot, shared).await };
    let mut first = [0];
    if !matches!(stream.peek(&mut first).await, Ok(1)) {
        // A probe of a load balancer, for example.
        return Ok(());
    }
    let failed = || shared.routes.borrow().source.handshake_failed();
    if first[0].is_ascii_uppercase() {
        failed();
        return http(stream, service_fn(async |_| Ok::<_, Infallible>(route::tls_expected()))).await;
    }
    match timeout(HEAD_MAX_TIME, TlsAcceptor::from(tls).accept(stream)).await {
        Ok(Ok(stream)) => return requests(stream, slot, shared).await,
        // A peer that fails or is too slow gets no answer but an alert.
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake with the admin listener failed"),
        Err(_) => {}
    }
    failed();
    Ok(())
}

async fn requests<S>(stream: S, slot: &Rc<Slot>, shared: &Rc<Shared>) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|request| {
        slot.reached(Progress::Answer);
        let answer = shared.routes.borrow().answer(&request);
        async {
            Ok::<_, Infallible>(match answer {
                Answer::Now(response) => response.map(ResponseBody::Whole),
                Answer::Render(content, gzip) => shared.renderer.render(content, gzip).await,
                Answer::Stream(token) => stream_of(slot, shared, token),
                Answer::Drained(drained) => {
                    slot.waits_for_drain();
                    drained.await;
                    route::drained().map(ResponseBody::Whole)
                }
            })
        }
    });
    http(stream, service).await
}

/// Answers one request.
async fn http<S, R, B>(stream: S, service: R) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    R: HttpService<Incoming, ResBody = B, Error = Infallible>,
    B: Body + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX_TIME)
        .max_buf_size(HEAD_MAX_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

fn stream_of(slot: &Rc<Slot>, shared: &Rc<Shared>, token: Option<String>) -> Response<ResponseBody> {
    match slot.streams(shared.max_streams) {
        StreamPlace::Free => {}
        StreamPlace::Evicting => shared.routes.borrow().source.evicted(),
        StreamPlace::Full => return route::too_many_streams().map(ResponseBody::Whole),
    }
    let state = Rc::clone(&shared.routes.borrow().state);
    let routes = Rc::clone(shared);
    let may_go_on = move || routes.routes.borrow().may_go_on(token.as_deref());
    let events = Events::open(state, Rc::clone(slot), may_go_on);
    route::respond(route::EVENTS, ResponseBody::Events(events))
}

async fn sample(shared: Rc<Shared>) {
    let mut seconds = interval(SAMPLE_INTERVAL);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        seconds.tick().await;
        shared.routes.borrow_mut().sample();
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
