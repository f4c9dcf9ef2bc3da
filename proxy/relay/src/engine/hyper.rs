//! The engine made of hyper: its server towards clients (HTTP/1.1 and HTTP/2 without TLS), its
//! HTTP/1.1 client towards upstreams.
//!
//! No task is spawned for an upstream connection. Its future is owned by whoever waits for it (the
//! forwarding future, then the response body) and is polled with it, so dropping that closes the
//! upstream's socket at once: cancellation needs no signal that could get lost (law 4). Only the rest of an unstreamed
//! answer whose client left has a task of its own ([`rest`]).
//!
//! Limits of hyper 1.12 that show on the wire:
//! - Requests that hyper itself cannot parse are answered without a body.
//! - Trailers pass only if the message's head announced them in `Trailer`, and to HTTP/1.1 clients
//!   only if the request said `TE: trailers`.
//! - Fields of one name are written together, at the place of the first.
//! - Chunks are re-made: the bytes are the same, their boundaries and extensions are not.
//! - `103 Early Hints` reach HTTP/1.1 clients (we write them), not HTTP/2 clients.

mod admit;
mod ask;
mod client;
mod connection;
mod edit;
mod forward;
mod interim;
mod outgoing;
mod pace;
mod pool;
mod rest;
mod send;
mod serve;
mod slices;
mod stream;
mod sweep;
mod tee;
mod tunnel;
mod upload;
mod visit;
mod watched;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::server::conn::{http1, http2};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

pub(crate) use self::client::Client;
use self::client::Stage;
use self::pace::Verdict;
use self::pool::Pool;
use self::rest::Rest;
use self::stream::Stream;
use self::visit::Visit;
use self::watched::Watched;
use crate::capacity::Permit;
use crate::worker::{Worker, guard};
use crate::{Dropped, clock, limits};

/// What the connections of one worker share.
pub(crate) struct Engine {
    worker: Rc<Worker>,
    /// Idle connections, one pool per upstream in the plan's order.
    pools: Vec<Pool>,
    http1: http1::Builder,
    http2: http2::Builder<StreamTasks>,
    upstream: hyper::client::conn::http1::Builder,
    /// Where bytes from any client's socket land first; used within one poll only.
    read_buffer: RefCell<Box<[u8]>>,
    /// Requests not yet fully answered. This thread alone writes it.
    in_flight: Arc<AtomicUsize>,
    leaving: Cell<bool>,
    left: Arc<Notify>,
    /// Connections of clients, oldest first, and their tasks.
    clients: RefCell<BTreeMap<u64, (Rc<Client>, AbortHandle)>>,
    connected: Cell<u64>,
    /// Requests that the sweep looks at: those whose client has been waited for.
    watched: Watched,
    /// Answers that are read without their clients.
    pub(crate) rests: RefCell<JoinSet<()>>,
}

impl Engine {
    /// The engine of one worker; `in_flight` counts its requests for whoever asks from outside.
    pub(crate) fn new(worker: &Rc<Worker>, in_flight: Arc<AtomicUsize>) -> Rc<Self> {
        let plan = &worker.plan;
        let mut http1 = http1::Builder::new();
        http1
            .half_close(plan.half_close)
            .preserve_header_case(true)
            .auto_date_header(false)
            .max_buf_size(limits::BUFFER_BYTES)
            .writev(true)
            // The connection's stage has its own deadlines; hyper has one for both of them.
            .header_read_timeout(None);
        let mut http2 = http2::Builder::new(StreamTasks(Rc::clone(worker)));
        http2
            .auto_date_header(false)
            .max_concurrent_streams(plan.shares.h2_streams)
            .max_header_list_size(limits::H2_HEADER_LIST_BYTES)
            .max_pending_accept_reset_streams(limits::H2_PENDING_RESETS)
            .max_local_error_reset_streams(limits::H2_LOCAL_RESETS)
            .initial_stream_window_size(limits::H2_STREAM_WINDOW)
            .initial_connection_window_size(limits::H2_CONNECTION_WINDOW)
            .max_send_buf_size(limits::BUFFER_BYTES);
        let mut upstream = hyper::client::conn::http1::Builder::new();
        upstream.preserve_header_case(true).max_buf_size(limits::BUFFER_BYTES).writev(true);
        Rc::new(Self {
            worker: Rc::clone(worker),
            pools: plan.upstreams.iter().map(|_| Pool::new(plan.pool_size, plan.pool_idle)).collect(),
            http1,
            http2,
            upstream,
            read_buffer: RefCell::new(vec![0; limits::CLIENT_READ_BYTES].into_boxed_slice()),
            in_flight,
            leaving: Cell::new(false),
            left: Arc::new(Notify::new()),
            clients: RefCell::default(),
            connected: Cell::new(0),
            watched: Watched::default(),
            rests: RefCell::default(),
        })
    }

    /// A client's connection that was accepted from `peer`.
    pub(crate) fn client(&self, stream: TcpStream, peer: SocketAddr) -> Rc<Client> {
        self.connected.set(self.connected.get() + 1);
        Rc::new(Client::new(&self.worker, stream, peer, self.connected.get()))
    }

    /// Serves one client connection of an upstream's listener until it ends; dropping it cuts it.
    pub(crate) async fn serve(self: Rc<Self>, upstream: usize, client: Rc<Client>) {
        serve::serve(self, upstream, client).await;
    }

    /// Reads the rest of an answer whose client left.
    fn read_on(&self, rest: Rest) {
        let mut rests = self.rests.borrow_mut();
        while rests.try_join_next().is_some() {}
        rests.spawn_local(guard(Rc::clone(&self.worker), rest.read()));
    }

    /// Remembers a connection that is served, so that it can be ended for another.
    pub(crate) fn remember(&self, client: Rc<Client>, task: AbortHandle) {
        if !task.is_finished() {
            self.clients.borrow_mut().insert(client.number, (client, task));
        }
    }

    /// Forgets a connection.
    pub(crate) fn forget(&self, number: u64) {
        self.clients.borrow_mut().remove(&number);
    }

    /// A place for another socket, for a request; for a while, other connections give way to it.
    async fn socket(&self, asking: &Visit) -> Option<Permit> {
        let mut socket = self.worker.common.sockets.share(asking.holder.clone());
        let begun = clock::now();
        let mut pause = limits::ROOM_PAUSE;
        while !socket.grow(1) {
            if clock::now().since(begun) >= limits::ROOM_WAIT_NS {
                return None;
            }
            self.make_place(&asking.client);
            tokio::time::sleep(pause).await;
            pause = limits::PLACE_PAUSE_MAX.min(pause * 2);
        }
        Some(socket)
    }

    /// Returns true if the client's holder is above its share of connections or of sockets.
    pub(crate) fn is_greedy(&self, client: &Client) -> bool {
        let (connections, sockets) = (&self.worker.common.connections, &self.worker.common.sockets);
        let holder = client.holder.as_ref();
        connections.excess(holder) > 0 || sockets.excess(holder) > 0
    }

    /// Returns true if at least half of the requests wait for their clients to send more.
    pub(crate) fn is_clogged(&self) -> bool {
        let stuck = |visit: &Rc<Visit>| visit.is_sending() && visit.uploading.is_known();
        let stuck = self.watched.all().iter().filter(|visit| stuck(visit)).count();
        stuck > 0 && 2 * stuck >= self.in_flight.load(Ordering::Relaxed)
    }

    /// Ends a connection so that there is a place for that of `asking`; false if none may be ended. It is one of a
    /// holder above its share if there is one, and of those the one that has been without a request for longest. A
    /// holder above its share takes no place of one within it. If all have requests, the one with the slowest
    /// uploads goes, unless `asking` is above its share itself.
    pub(crate) fn make_place(&self, asking: &Client) -> bool {
        if self.worker.common.sockets.is_short(clock::now()) {
            self.pools.iter().for_each(Pool::clear);
        }
        let is_greedy = self.is_greedy(asking);
        let clients = self.clients.borrow();
        let candidates = clients.values().filter_map(|(client, _)| {
            let is_above = self.is_greedy(client);
            let is_idle = client.stage().0 != Stage::Busy;
            (is_idle && (is_above || !is_greedy)).then(|| (!is_above, client.since().0, client.number))
        });
        let idle = candidates.min().map(|(_, _, number)| number);
        drop(clients);
        let Some(number) = idle.or_else(|| self.slowest(asking).filter(|_| !is_greedy)) else { return false };
        let ended = self.clients.borrow_mut().remove(&number);
        if let Some((_, task)) = &ended {
            self.worker.lose(Dropped::Connection);
            task.abort();
        }
        ended.is_some()
    }

    /// The connection with the slowest uploads, of those that carry nothing else: of a holder above its share, else
    /// one whose uploads have been slow for long. Its requests are decided against.
    fn slowest(&self, asking: &Client) -> Option<u64> {
        let mut uploads = BTreeMap::<u64, Vec<Rc<Visit>>>::new();
        for visit in self.watched.all() {
            let is_above = self.is_greedy(&visit.client);
            let gives_way = visit.uploading.is_slow() || is_above && visit.uploading.is_known();
            if visit.is_sending() && gives_way && visit.client.number != asking.number {
                uploads.entry(visit.client.number).or_default().push(visit);
            }
        }
        uploads.retain(|_, visits| visits.len() == visits[0].client.requests());
        let (_, _, number) = uploads
            .iter()
            .filter_map(|(number, visits)| {
                let fastest = visits.iter().map(|visit| visit.uploading.standing()).max()?;
                Some((!self.is_greedy(&visits[0].client), fastest, *number))
            })
            .min()?;
        uploads[&number].iter().for_each(|visit| visit.uploading.decide(Verdict::Crowding));
        Some(number)
    }

    /// Tells every connection to end after the request it is at; idle ones end now.
    pub(crate) fn leave(&self) {
        self.leaving.set(true);
        self.left.notify_waiters();
        for pool in &self.pools {
            pool.clear();
        }
    }

    /// Closes idle upstream connections that are too old or were closed by their server, and looks after slow
    /// clients.
    pub(crate) fn sweep(&self) {
        for pool in &self.pools {
            pool.sweep();
        }
        sweep::sweep(self);
    }

    pub(crate) fn worker(&self) -> &Rc<Worker> {
        &self.worker
    }

    fn request_began(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    fn request_ended(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs HTTP/2 streams as tasks of this thread. A panic ends the stream, not the connection.
#[derive(Clone)]
struct StreamTasks(Rc<Worker>);

impl<F> hyper::rt::Executor<F> for StreamTasks
where
    F: Future + 'static,
{
    fn execute(&self, stream: F) {
        let stream = async move {
            Stream::run(stream).await;
        };
        tokio::task::spawn_local(guard(Rc::clone(&self.0), stream));
    }
}
