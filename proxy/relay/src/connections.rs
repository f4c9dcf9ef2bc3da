//! The connections of one worker: those of its clients, and the idle ones to its upstreams. If the process has no free
//! socket, one of them is closed for another.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::{AbortHandle, JoinSet};

use crate::capacity::Permit;
use crate::claims::{Claim, Need, Progress, give_way};
use crate::conn::client::{Client, Stage};
use crate::conn::pace::Verdict;
use crate::conn::pool::Pool;
use crate::conn::socket::Socket;
use crate::conn::tls::Tls;
use crate::contained::Contained;
use crate::request::in_flight::InFlight;
use crate::state::WorkerState;
use crate::watched::Watched;
use crate::wire::Buffers;
use crate::{Dropped, clock, limits};

/// The connections of one worker.
pub(crate) struct Connections {
    pub(crate) worker: Rc<WorkerState>,
    /// Idle connections, one pool for each upstream in the plan's order.
    pub(crate) pools: Vec<Pool>,
    /// Client connections, oldest first, and their tasks.
    pub(crate) clients: RefCell<BTreeMap<u64, (Rc<Client>, AbortHandle)>>,
    /// Number of client connections accepted so far.
    connected: Cell<u64>,
    /// The requests that the sweep checks: those that waited for their client.
    pub(crate) watched: Rc<Watched<InFlight>>,
    /// Tasks that read responses after their clients left.
    pub(crate) rests: RefCell<JoinSet<()>>,
    /// The memory that its connections share.
    pub(crate) buffers: Rc<Buffers>,
}

impl Connections {
    /// The state of a worker without connections.
    pub(crate) fn new(worker: &Rc<WorkerState>) -> Rc<Self> {
        let plan = &worker.plan;
        Rc::new(Self {
            worker: Rc::clone(worker),
            pools: plan.upstreams.iter().map(|_| Pool::new(plan.pool_size, plan.pool_idle)).collect(),
            clients: RefCell::default(),
            connected: Cell::new(0),
            watched: Rc::default(),
            rests: RefCell::default(),
            buffers: Rc::new(Buffers::new()),
        })
    }

    /// A client connection accepted from `peer`: its address, and true if a header of the PROXY protocol names the client.
    pub(crate) fn client(&self, socket: Socket, tls: Option<Box<Tls>>, peer: (IpAddr, bool)) -> Rc<Client> {
        self.connected.set(self.connected.get() + 1);
        Rc::new(Client::new(&self.worker, socket, tls, peer, self.connected.get()))
    }

    /// Spawns a task that reads the rest of a response after its client left.
    pub(crate) fn read_on(&self, rest: impl Future<Output = ()> + 'static) {
        let mut rests = self.rests.borrow_mut();
        while rests.try_join_next().is_some() {}
        rests.spawn_local(Contained::new(&self.worker, rest));
    }

    /// Registers a client connection, so that it can be closed for another.
    pub(crate) fn remember(&self, client: Rc<Client>, task: AbortHandle) {
        if !task.is_finished() {
            self.clients.borrow_mut().insert(client.number, (client, task));
        }
    }

    /// Removes a client connection.
    pub(crate) fn forget(&self, number: u64) {
        self.clients.borrow_mut().remove(&number);
    }

    /// Reserves another socket for a request; for a limited time, waits for other connections to close.
    pub(crate) async fn socket(&self, for_request: &InFlight) -> Option<Permit> {
        let mut socket = self.worker.capacities.sockets.permit(for_request.holder.clone());
        let _waiting = socket.wait_for(1);
        let begun = clock::now();
        let mut pause = limits::CAPACITY_RETRY_PAUSE;
        while !socket.grow(1) {
            if clock::now().since(begun) >= limits::CAPACITY_WAIT_NS {
                return None;
            }
            self.make_place(&for_request.client);
            tokio::time::sleep(pause).await;
            pause = limits::PLACE_PAUSE_MAX.min(pause * 2);
        }
        Some(socket)
    }

    /// Returns true if the client's holder exceeds its share of connections or sockets.
    pub(crate) fn is_greedy(&self, client: &Client) -> bool {
        let (connections, sockets) = (&self.worker.capacities.connections, &self.worker.capacities.sockets);
        let holder = client.holder();
        connections.excess(holder.as_ref()) > 0 || sockets.excess(holder.as_ref()) > 0
    }

    /// Returns true if at least half of the requests wait for data from their clients.
    pub(crate) fn is_clogged(&self) -> bool {
        let stuck = |in_flight: &Rc<InFlight>| in_flight.is_sending() && in_flight.uploading.is_known();
        let stuck = self.watched.all().iter().filter(|in_flight| stuck(in_flight)).count();
        stuck > 0 && 2 * stuck >= self.worker.in_flight.load(Ordering::Relaxed)
    }

    /// Closes a connection so that the connection of `asking` gets its place; returns false if none may be closed.
    /// Connections of holders above their share come first, and among them the one that has been without a request for
    /// longest. A holder above its share takes no place from one within it. New connections of a holder within its
    /// share stay open: closing one would reset the request that is on its way. If all have requests, one of them gives
    /// way by the rules of [`claims`](crate::claims).
    pub(crate) fn make_place(&self, asking: &Client) -> bool {
        let now = clock::now();
        if self.worker.capacities.sockets.is_short(now) {
            self.pools.iter().for_each(Pool::clear);
        }
        let is_greedy = self.is_greedy(asking);
        let clients = self.clients.borrow();
        let candidates = clients.values().filter_map(|(client, _)| {
            let is_above = self.is_greedy(client);
            let is_new =
                client.stage() != Stage::Idle && now.since(client.since()) < limits::NEW_CONNECTION_GRACE_NS;
            // HTTP/2 writes the last answer after its request has ended.
            let is_writing = client.is_http2() && now.since(client.since()) < limits::H2_ANSWER_WRITTEN_NS;
            let is_idle = client.stage() != Stage::Busy && (is_above || !is_new) && !is_writing;
            (is_idle && (is_above || !is_greedy)).then(|| (!is_above, client.since().0, client.number))
        });
        let idle = candidates.min().map(|(_, _, number)| number);
        drop(clients);
        let Some(number) = idle.or_else(|| self.busy_for(asking)) else { return false };
        let ended = self.clients.borrow_mut().remove(&number);
        if let Some((client, task)) = &ended {
            self.worker.dropped(Dropped::Connection);
            client.cut(task);
        }
        ended.is_some()
    }

    /// The connection with requests, or the tunnel, that gives way to `asking`. Its uploads are ended.
    fn busy_for(&self, asking: &Client) -> Option<u64> {
        let mut requests = BTreeMap::<u64, Vec<Rc<InFlight>>>::new();
        for in_flight in self.watched.all() {
            requests.entry(in_flight.client.number).or_default().push(in_flight);
        }
        let (clients, none) = (self.clients.borrow(), Vec::new());
        let others = clients.values().map(|(client, _)| client).filter(|other| other.number != asking.number);
        let busy = others.map(|client| {
            let requests = requests.get(&client.number).unwrap_or(&none);
            let progress = match client.tunnel_read() {
                Some(read) => Some(Progress::Tunnel(read.0)),
                None if requests.len() < client.requests() => None,
                None => requests.iter().map(|in_flight| in_flight.progress()).max(),
            };
            let holder = client.holder().map(|holder| Arc::as_ptr(&holder));
            let excess = usize::from(self.is_greedy(client));
            let progress = progress.unwrap_or(Progress::Flowing);
            (client.number, Claim { holder, excess, amount: 1, progress })
        });
        let (numbers, claims): (Vec<u64>, Vec<_>) = busy.unzip();
        let need = Need { within_shares: usize::from(!self.is_greedy(asking)), in_all: 1 };
        let number = numbers[*give_way(need, &claims).first()?];
        let uploads = requests.get(&number).unwrap_or(&none).iter().filter(|request| request.is_sending());
        uploads.for_each(|in_flight| in_flight.uploading.decide(Verdict::OverShare));
        Some(number)
    }

    /// Ends a response whose client is too slow to take it: its stream, or its connection.
    pub(crate) fn end_unread(&self, in_flight: &InFlight) {
        self.worker.dropped(Dropped::SlowClient);
        in_flight.downloading().decide(Verdict::OverShare);
        if let Some(stream) = &in_flight.stream {
            stream.cut();
        } else if let Some((_, task)) = self.clients.borrow().get(&in_flight.client.number) {
            task.abort();
        }
    }

    /// Signals every connection to end after its current request; idle ones end soon.
    pub(crate) fn leave(&self) {
        self.worker.leaving.set(Some(clock::now()));
        self.clients.borrow().values().for_each(|(client, _)| _ = client.announce_end());
        for pool in &self.pools {
            pool.leave();
        }
    }

    /// Closes idle upstream connections that are too old or that their server closed.
    pub(crate) fn sweep(&self) {
        for pool in &self.pools {
            pool.sweep();
        }
    }
}
