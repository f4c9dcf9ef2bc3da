//! One worker: a thread, a single-threaded runtime, and everything that lives on it (law 7). It
//! accepts connections of every upstream's listener and runs each as a task of its own; nothing it
//! does can be seen by another worker but the load cells and the outbox.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::TcpListener as StdListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use scan::Wanted;
use tenant::Rules;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinSet, LocalSet};

use crate::capacity::{Capacity, Permit};
use crate::drain::Phase;
use crate::engine::hyper::{Client, Engine};
use crate::holder::Holders;
use crate::ids::IdSource;
use crate::outbox::Outbox;
use crate::rejection::{Known, Rejection};
use crate::request::tenant as tenant_rules;
use crate::{Dropped, Observer, Passthrough, Plan, Refusal, UpstreamProfile, UsageStep, clock, limits};

/// What the exchanges of one worker share. `Rc`, never `Arc`: it stays on its thread.
pub(crate) struct Worker {
    /// The numbers we run by.
    pub(crate) plan: Arc<Plan>,
    /// This worker's cells.
    pub(crate) observer: RefCell<Box<dyn Observer>>,
    /// The way out for finished records.
    pub(crate) outbox: Outbox,
    /// One load cell per upstream, in the plan's order; shared by all workers, touched at an
    /// exchange's start and end only.
    pub(crate) loads: Vec<Arc<Mutex<meter::Load>>>,
    /// What was learned about each upstream, in the plan's order; shared by all workers.
    pub(crate) learned: Vec<Arc<UpstreamProfile>>,
    /// For the ids this worker gives.
    pub(crate) chance: IdSource,
    /// What the last rules asked for want of a body, and for which rules that is.
    pub(crate) wanted: RefCell<Option<(Arc<Rules>, Arc<Wanted>)>>,
    /// The resources that clients share, in all workers.
    pub(crate) common: Common,
    /// For texts that are kept to be counted; shared by all workers.
    pub(crate) texts: Capacity,
    /// What is still under way is being cut: its end is our doing, not its client's.
    pub(crate) cutting: Cell<bool>,
}

/// The resources that the clients of all workers share.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) holders: Holders,
    /// For connections of clients.
    pub(crate) connections: Capacity,
    /// For request bodies that are gathered.
    pub(crate) room: Capacity,
    /// For connections that carry a request, in the plan's order.
    pub(crate) upstreams: Vec<Capacity>,
    /// For sockets of either side.
    pub(crate) sockets: Capacity,
}

impl Worker {
    /// Tells the observer of a request that passes unmetered.
    pub(crate) fn pass(&self, reason: Passthrough) {
        self.observer.borrow_mut().pass(reason);
    }

    /// Tells the observer of a request that was answered here.
    pub(crate) fn refuse(&self, reason: Refusal) {
        self.observer.borrow_mut().refuse(reason);
    }

    /// Tells whoever keeps the access log of a request that makes no record.
    pub(crate) fn turned_away(&self, upstream: usize, answer: (Refusal, u16), known: Option<Known>) {
        if !self.plan.tell_turned_away {
            return;
        }
        let (reason, status) = answer;
        let upstream = Arc::clone(&self.plan.upstreams[upstream].name);
        if !self.outbox.tell(Rejection { upstream, reason, status, known }) {
            self.lose(Dropped::Refusal);
        }
    }

    /// What these rules want of a body; made anew only when the rules change.
    pub(crate) fn wanted(&self, rules: &Arc<Rules>) -> Arc<Wanted> {
        let mut kept = self.wanted.borrow_mut();
        match &*kept {
            Some((of, wanted)) if Arc::ptr_eq(of, rules) => Arc::clone(wanted),
            _ => {
                let wanted = Arc::new(tenant_rules::wanted(rules));
                *kept = Some((Arc::clone(rules), Arc::clone(&wanted)));
                wanted
            }
        }
    }

    /// Tells the observer what was done about a request's usage.
    pub(crate) fn usage(&self, step: UsageStep) {
        self.observer.borrow_mut().usage(step);
    }

    /// Tells the observer of a loss. A loss inside the observer itself goes untold.
    pub(crate) fn lose(&self, what: Dropped) {
        if let Ok(mut observer) = self.observer.try_borrow_mut() {
            observer.lose(what, 1);
        }
    }
}

/// What a worker's thread is started with.
pub(crate) struct Start {
    pub(crate) plan: Arc<Plan>,
    pub(crate) observer: Box<dyn Observer + Send>,
    pub(crate) outbox: Outbox,
    pub(crate) loads: Vec<Arc<Mutex<meter::Load>>>,
    pub(crate) learned: Vec<Arc<UpstreamProfile>>,
    pub(crate) common: Common,
    pub(crate) texts: Capacity,
    /// One listener per upstream, in the plan's order.
    pub(crate) listeners: Vec<StdListener>,
    pub(crate) in_flight: Arc<AtomicUsize>,
    pub(crate) phase: watch::Receiver<Phase>,
}

/// A worker's whole life, on its own thread.
pub(crate) fn run(start: Start) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(limits::RESOLVER_THREADS)
        .build()?;
    let tasks = LocalSet::new();
    let done = runtime.block_on(tasks.run_until(serve(start)));
    // Connections that were cut go with the tasks; a name being resolved is not waited for.
    drop(tasks);
    runtime.shutdown_background();
    done
}

async fn serve(start: Start) -> io::Result<()> {
    let Start { plan, observer, outbox, loads, learned, common, texts, listeners, in_flight, mut phase } =
        start;
    let observer = RefCell::new(observer);
    let cutting = Cell::new(false);
    // On the worker's own thread, so that its keys are no other's.
    let chance = IdSource::new();
    let wanted = RefCell::new(None);
    let worker =
        Rc::new(Worker { plan, observer, outbox, loads, learned, chance, wanted, common, texts, cutting });
    let engine = Engine::new(&worker, in_flight);
    let room = Arc::new(Semaphore::new(worker.plan.connections));
    let connections = Rc::new(RefCell::new(JoinSet::new()));

    let mut accepting = JoinSet::new();
    for (upstream, listener) in listeners.into_iter().enumerate() {
        let listener = TcpListener::from_std(listener)?;
        let (engine, room, connections) = (Rc::clone(&engine), Arc::clone(&room), Rc::clone(&connections));
        accepting.spawn_local(accept(listener, upstream, engine, room, connections));
    }
    let sweeping = tokio::task::spawn_local(sweep(Rc::clone(&engine)));

    let plan = &worker.plan;
    if Phase::reached(&mut phase, Phase::Draining).await == Phase::Draining {
        // The way to us is still being unlearned elsewhere: whoever comes is served.
        let delay = pin!(tokio::time::sleep(plan.drain_delay));
        Phase::reached_before(&mut phase, Phase::Stopped, delay).await;
        accepting.shutdown().await;
        engine.leave();
        let ended = pin!(async {
            // Stops at whichever comes first; what is left is cut below.
            let _ = tokio::time::timeout(plan.drain_grace, async {
                all_ended(&connections).await;
                all_ended(&engine.rests).await;
            })
            .await;
        });
        Phase::reached_before(&mut phase, Phase::Stopped, ended).await;
    }
    worker.cutting.set(true);
    accepting.shutdown().await;
    sweeping.abort();
    let mut connections = connections.take();
    connections.shutdown().await;
    Ok(())
}

/// Accepts one listener's connections, as long as there is room for them. Some may wait for a place beside the
/// others, so that one that gets none keeps no other from being seen.
async fn accept(
    listener: TcpListener,
    upstream: usize,
    engine: Rc<Engine>,
    room: Arc<Semaphore>,
    connections: Rc<RefCell<JoinSet<()>>>,
) {
    let mut warned = None;
    let mut waiting = JoinSet::new();
    let plan = &engine.worker().plan;
    // Their sockets are beyond the bound for all.
    let sockets = plan.shares.sockets / (16 * plan.workers * plan.upstreams.len());
    let waiting_max = sockets.clamp(1, limits::WAITING_CONNECTIONS);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                engine.worker().lose(Dropped::Accept);
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    let now = clock::now();
                    if warned.is_none_or(|before| now.since(before) > limits::ACCEPT_WARNING_NS) {
                        warned = Some(now);
                        tracing::warn!(%error, "cannot accept connections for now");
                    }
                    tokio::time::sleep(limits::ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        // Without it, small frames wait for the client's acknowledgements. A socket that refuses
        // the option is one that is gone.
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let client = engine.client(stream, peer);
        if let Some(place) = place_at_once(&engine, &client, &room) {
            serve_client(&engine, upstream, client, place, &mut connections.borrow_mut());
            continue;
        }
        while waiting.try_join_next().is_some() {}
        while waiting.len() >= waiting_max {
            waiting.join_next().await;
        }
        let (engine, room, connections) = (Rc::clone(&engine), Arc::clone(&room), Rc::clone(&connections));
        waiting.spawn_local(async move {
            if let Some(place) = place(&engine, &client, &room).await {
                serve_client(&engine, upstream, client, place, &mut connections.borrow_mut());
            }
        });
    }
}

/// Serves a client's connection in a task of its own, as long as it has its place.
fn serve_client(
    engine: &Rc<Engine>,
    upstream: usize,
    client: Rc<Client>,
    place: Place,
    connections: &mut JoinSet<()>,
) {
    // Boxed once: each future around it would otherwise hold it twice, moved from and moved to.
    let serving = Box::pin(Rc::clone(engine).serve(upstream, Rc::clone(&client)));
    let connection = guard(Rc::clone(engine.worker()), serving);
    let remembered = Remembered { engine: Rc::clone(engine), number: client.number };
    let task = connections.spawn_local(async move {
        connection.await;
        drop((remembered, place));
    });
    engine.remember(client, task);
    while connections.try_join_next().is_some() {}
}

/// The place of a client's connection: its own in this worker, and its socket's in the process.
type Place = (OwnedSemaphorePermit, Permit);

/// A place that is free now. A holder above its share gets none of those that another one may wait for.
fn place_at_once(engine: &Engine, client: &Client, room: &Arc<Semaphore>) -> Option<Place> {
    let common = &engine.worker().common;
    let holder = client.holder.as_ref();
    if common.connections.binds(holder) || common.sockets.binds(holder) {
        return None;
    }
    let mut socket = common.sockets.share(client.holder.clone());
    if !socket.grow(1) {
        return None;
    }
    let place = Arc::clone(room).try_acquire_owned().ok();
    if place.is_none() {
        common.connections.note_full(holder);
    }
    Some((place?, socket))
}

/// A place as soon as there is one: other connections give way to it. A holder above its share may only take the
/// place of another connection above its share; if there is none, `None` while another holder waits, or may wait
/// unseen because uploads take the places.
async fn place(engine: &Engine, client: &Client, room: &Arc<Semaphore>) -> Option<Place> {
    let common = &engine.worker().common;
    let mut pause = limits::ROOM_PAUSE;
    loop {
        if let Some(place) = place_at_once(engine, client, room) {
            return Some(place);
        }
        let is_made = engine.make_place(client);
        // A connection that was told to go is gone after this turn.
        tokio::task::yield_now().await;
        if is_made {
            let mut socket = common.sockets.share(client.holder.clone());
            if socket.grow_unbound(1)
                && let Ok(place) = Arc::clone(room).try_acquire_owned()
            {
                return Some((place, socket));
            }
        }
        let holder = client.holder.as_ref();
        let is_bound = common.connections.binds(holder) || common.sockets.binds(holder);
        if !is_made && (is_bound || engine.is_greedy(client) && engine.is_clogged()) {
            engine.worker().lose(Dropped::Connection);
            return None;
        }
        tokio::time::sleep(pause).await;
        pause = limits::PLACE_PAUSE_MAX.min(pause * 2);
    }
}

/// A connection among those that the engine remembers; forgotten when dropped.
struct Remembered {
    engine: Rc<Engine>,
    number: u64,
}

impl Drop for Remembered {
    fn drop(&mut self) {
        self.engine.forget(self.number);
    }
}

async fn sweep(engine: Rc<Engine>) {
    loop {
        tokio::time::sleep(limits::SWEEP).await;
        engine.sweep();
    }
}

/// Waits until none of the tasks runs; more of them may begin meanwhile.
async fn all_ended(tasks: &RefCell<JoinSet<()>>) {
    std::future::poll_fn(|cx| {
        let mut tasks = tasks.borrow_mut();
        while let Poll::Ready(Some(_)) = tasks.poll_join_next(cx) {}
        if tasks.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Contains a panic to the task it happened in, and counts it (law 3).
pub(crate) async fn guard(worker: Rc<Worker>, task: impl Future<Output = ()>) {
    let mut task = pin!(task);
    std::future::poll_fn(|cx| {
        catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx))).unwrap_or_else(|_panic| {
            worker.lose(Dropped::Panic);
            Poll::Ready(())
        })
    })
    .await;
}

/// Whether the process, or the machine, is out of descriptors or memory.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENOMEM | ENFILE | EMFILE | ENOBUFS))
}
