//! One worker: a thread, a single-threaded runtime, and everything that lives on it (law 7). It accepts connections of
//! every upstream's listener and runs each as a task of its own.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Poll;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use tokio::runtime::LocalOptions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::capacity::Permit;
use crate::conn::client::Client;
use crate::conn::socket::Socket;
use crate::conn::tls::Tls;
use crate::connections::Connections;
use crate::contained::Contained;
use crate::drain::Phase;
use crate::listen::{Accepting, Listener};
use crate::redirected;
use crate::state::{Shared, WorkerState};
use crate::sweep::{end_overdue, sweep};
use crate::wire::serve::serve;
use crate::{Dropped, Observer, clock, limits};

/// The parts from which a worker is started.
pub(crate) struct Start {
    pub(crate) shared: Shared,
    pub(crate) observer: Box<dyn Observer + Send>,
    pub(crate) listeners: Vec<WorkerListener>,
    pub(crate) in_flight: Arc<AtomicUsize>,
    pub(crate) phase: watch::Receiver<Phase>,
}

/// A listener of one worker.
pub(crate) struct WorkerListener {
    /// The index of its upstream.
    pub(crate) upstream: usize,
    pub(crate) listener: Listener,
    /// The current TLS configuration, if its clients use TLS.
    pub(crate) tls: Option<Arc<ArcSwap<ServerConfig>>>,
    /// True if each connection begins with a header of the PROXY protocol.
    pub(crate) proxy_protocol: bool,
}

/// Runs a worker from start to end, on its own thread.
pub(crate) fn run(start: Start) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(limits::RESOLVER_THREADS)
        .build_local(LocalOptions::default())?;
    let done = runtime.block_on(work(start));
    // Connections that were cut end with their tasks; a pending name resolution is not awaited.
    runtime.shutdown_background();
    done
}

async fn work(start: Start) -> io::Result<()> {
    let Start { shared, observer, listeners, in_flight, mut phase } = start;
    let worker = WorkerState::new(shared, observer, in_flight);
    let connections = Connections::new(&worker);
    let places = Arc::new(Semaphore::new(worker.plan.connections));
    let tasks = Rc::new(RefCell::new(JoinSet::new()));

    let mut accepting = JoinSet::new();
    // The sockets of waiting connections come on top of the bound for all.
    let sockets = worker.plan.shares.sockets / (16 * worker.plan.workers * listeners.len().max(1));
    let waiting_max = sockets.clamp(1, limits::WAITING_CONNECTIONS);
    for WorkerListener { upstream, listener, tls, proxy_protocol } in listeners {
        let listener = listener.accepting()?;
        let (connections, places, tasks) = (Rc::clone(&connections), Arc::clone(&places), Rc::clone(&tasks));
        accepting.spawn_local(accept(
            (listener, tls, proxy_protocol),
            upstream,
            connections,
            places,
            tasks,
            waiting_max,
        ));
    }
    let sweeping = tokio::task::spawn_local(sweep_forever(Rc::clone(&connections)));

    let plan = &worker.plan;
    if Phase::reached(&mut phase, Phase::Draining).await == Phase::Draining {
        // Load balancers still send connections for a while: they are served. Connections that a client would use again
        // are not worth keeping, as they could close under its next request.
        worker.draining.set(true);
        tokio::select! {
            _ = Phase::reached(&mut phase, Phase::Stopped) => {}
            () = tokio::time::sleep(plan.drain_delay) => {}
        }
        accepting.shutdown().await;
        connections.leave();
        // Ends with the first of these; the other connections are cut below.
        tokio::select! {
            _ = Phase::reached(&mut phase, Phase::Stopped) => {}
            () = async {
                all_ended(&tasks).await;
                all_ended(&connections.rests).await;
            } => {}
            () = end_overdue_forever(&connections) => {}
            () = tokio::time::sleep(plan.drain_grace) => {}
        }
    }
    worker.cutting.set(true);
    accepting.shutdown().await;
    sweeping.abort();
    let mut tasks = tasks.take();
    tasks.shutdown().await;
    Ok(())
}

/// Accepts one listener's connections, while there are places for them. Several may wait for a place at once, so that
/// one without a place does not delay the others.
async fn accept(
    (listener, tls, proxy_protocol): (Accepting, Option<Arc<ArcSwap<ServerConfig>>>, bool),
    upstream: usize,
    connections: Rc<Connections>,
    places: Arc<Semaphore>,
    tasks: Rc<RefCell<JoinSet<()>>>,
    waiting_max: usize,
) {
    let mut warned = None;
    let mut waiting = JoinSet::new();
    let plan = &connections.worker.plan;
    loop {
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                connections.worker.dropped(Dropped::Accept);
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    let now = clock::now();
                    if warned.is_none_or(|before| now.since(before) > limits::ACCEPT_WARNING_NS) {
                        warned = Some(now);
                        tracing::warn!(%error, "cannot accept connections at the moment");
                    }
                    tokio::time::sleep(limits::ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        if proxy_protocol && !connections.worker.control.tenants.load().trusts(peer.ip()) {
            connections.worker.dropped(Dropped::ProxyHeader);
            tracing::debug!(%peer, "closed: a PROXY protocol header is expected, and the peer is not in trusted_peers");
            continue;
        }
        let mut upstream = upstream;
        if let Socket::Tcp(stream) = &socket {
            if plan.transparent && tls.is_none() {
                let Some(redirected) = redirected::upstream(&plan.upstreams, stream, peer) else {
                    connections.worker.dropped(Dropped::Accept);
                    tracing::debug!(%peer, "closed: it was not redirected from the port of an upstream");
                    continue;
                };
                upstream = redirected;
            }
            // Without it, small frames wait for the client's acknowledgements. If a socket rejects the option, its
            // client is gone.
            if stream.set_nodelay(true).is_err() {
                continue;
            }
        }
        let tls = tls.as_ref().map(|tls| Tls::new(tls.load_full()).map(Box::new)).transpose();
        let tls = match tls {
            Ok(tls) => tls,
            Err(error) => {
                connections.worker.dropped(Dropped::Handshake);
                tracing::warn!(%error, "the TLS configuration starts no session");
                continue;
            }
        };
        let client = connections.client(socket, tls, (peer.ip(), proxy_protocol));
        if let Some(place) = place_at_once(&connections.worker, &client, &places) {
            spawn_connection(&connections, upstream, client, place, &mut tasks.borrow_mut());
            continue;
        }
        while waiting.try_join_next().is_some() {}
        while waiting.len() >= waiting_max {
            waiting.join_next().await;
        }
        let (connections, places, tasks) = (Rc::clone(&connections), Arc::clone(&places), Rc::clone(&tasks));
        waiting.spawn_local(async move {
            if let Some(place) = place(&connections, &client, &places).await {
                spawn_connection(&connections, upstream, client, place, &mut tasks.borrow_mut());
            }
        });
    }
}

/// Serves a client connection in a task of its own, while it has its place.
fn spawn_connection(
    connections: &Rc<Connections>,
    upstream: usize,
    client: Rc<Client>,
    place: Place,
    tasks: &mut JoinSet<()>,
) {
    // Boxed once: each future around it would otherwise contain it twice, at both ends of the move.
    let serving = Box::pin(serve(Rc::clone(connections), upstream, Rc::clone(&client)));
    let serving = Contained::new(&connections.worker, serving);
    let remembered = Remembered { connections: Rc::clone(connections), client: Rc::clone(&client) };
    let (place, socket_place) = place;
    client.set_socket_place(Some(socket_place));
    let task = tasks.spawn_local(async move {
        serving.await;
        drop((remembered, place));
    });
    connections.remember(client, task);
    while tasks.try_join_next().is_some() {}
}

/// The place of a client connection: its own in this worker, and its socket's in the process.
type Place = (OwnedSemaphorePermit, Permit);

/// Reserves a free place. A holder above its share gets none for which another one may wait.
fn place_at_once(worker: &WorkerState, client: &Client, places: &Arc<Semaphore>) -> Option<Place> {
    let capacities = &worker.capacities;
    let holder = client.holder();
    let holder = holder.as_ref();
    if capacities.connections.binds(holder) || capacities.sockets.binds(holder) {
        return None;
    }
    let mut socket = capacities.sockets.permit(holder.cloned());
    if !socket.grow(1) {
        return None;
    }
    let place = Arc::clone(places).try_acquire_owned().ok();
    if place.is_none() {
        capacities.connections.note_full(holder);
    }
    Some((place?, socket))
}

/// Waits for a place: other connections are closed for it. A holder above its share may only take the place of another
/// connection above its share; if there is none, the result is `None` while another holder waits, or may wait unnoticed
/// because uploads take the places.
async fn place(connections: &Connections, client: &Client, places: &Arc<Semaphore>) -> Option<Place> {
    let capacities = &connections.worker.capacities;
    let mut pause = limits::CAPACITY_RETRY_PAUSE;
    loop {
        if let Some(place) = place_at_once(&connections.worker, client, places) {
            return Some(place);
        }
        let is_made = connections.make_place(client);
        // A connection that got the signal to end is gone after this turn.
        tokio::task::yield_now().await;
        if is_made {
            let mut socket = capacities.sockets.permit(client.holder());
            if socket.grow_unbound(1)
                && let Ok(place) = Arc::clone(places).try_acquire_owned()
            {
                return Some((place, socket));
            }
        }
        let holder = client.holder();
        let holder = holder.as_ref();
        let is_bound = capacities.connections.binds(holder) || capacities.sockets.binds(holder);
        if !is_made && (is_bound || connections.is_greedy(client) && connections.is_clogged()) {
            connections.worker.dropped(Dropped::Connection);
            return None;
        }
        tokio::time::sleep(pause).await;
        pause = limits::PLACE_PAUSE_MAX.min(pause * 2);
    }
}

/// A connection registered with the worker; removed when dropped.
struct Remembered {
    connections: Rc<Connections>,
    client: Rc<Client>,
}

impl Drop for Remembered {
    fn drop(&mut self) {
        self.client.set_socket_place(None);
        self.connections.forget(self.client.number);
    }
}

async fn sweep_forever(connections: Rc<Connections>) {
    loop {
        tokio::time::sleep(limits::SWEEP).await;
        connections.sweep();
        sweep(&connections);
    }
}

/// Ends idle connections soon after their time, as long as the drain waits for them.
async fn end_overdue_forever(connections: &Connections) {
    loop {
        tokio::time::sleep(limits::LAST_IDLE_CHECK).await;
        end_overdue(connections);
    }
}

/// Waits until no task runs; more of them may start meanwhile.
async fn all_ended(tasks: &RefCell<JoinSet<()>>) {
    std::future::poll_fn(|cx| {
        let mut tasks = tasks.borrow_mut();
        while let Poll::Ready(Some(_)) = tasks.poll_join_next(cx) {}
        if tasks.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
