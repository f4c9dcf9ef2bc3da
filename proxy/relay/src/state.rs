//! The state that the requests of one worker share. `Rc`, never `Arc`: it stays on its thread (law 7). Other workers
//! see only its load cells, profiles, capacities and outbox.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exchange::{AnsweredIds, DetachedWork, IdSource, RuleMembers};
use meter::{Load, Tick};

use crate::capacity::Capacity;
use crate::holder::{Holders, Resource};
use crate::outbox::Outbox;
use crate::rejection::{Known, Rejection};
use crate::{Control, Dropped, Observer, Passthrough, Plan, Refusal, ServerKind, UpstreamProfile, limits};

/// The state that all workers share.
#[derive(Clone)]
pub(crate) struct Shared {
    /// The effective settings.
    pub(crate) plan: Arc<Plan>,
    /// The tenant rules and the gate.
    pub(crate) control: Control,
    /// The queue of finished records.
    pub(crate) outbox: Outbox,
    /// One load cell per upstream, in the plan's order; touched at an exchange's start and end only.
    pub(crate) loads: Vec<Arc<Mutex<Load>>>,
    /// One profile per upstream, in the plan's order.
    pub(crate) profiles: Vec<Arc<UpstreamProfile>>,
    /// The capacities among which clients have shares.
    pub(crate) capacities: Capacities,
    /// The memory for texts that are kept to be counted.
    pub(crate) texts: Capacity,
    /// The ids of the last answers.
    pub(crate) answered: Arc<AnsweredIds>,
    /// The detached work that was started and is not counted.
    pub(crate) detached: Arc<DetachedWork>,
}

impl Shared {
    /// The state at the start of these settings.
    pub(crate) fn new(plan: Plan, control: Control, outbox: Outbox) -> Self {
        Self {
            loads: plan.upstreams.iter().map(|_| Arc::default()).collect(),
            profiles: plan.upstreams.iter().map(|_| Arc::default()).collect(),
            capacities: Capacities::new(&plan),
            texts: Capacity::new(limits::KEPT_TEXTS_BYTES, None),
            answered: Arc::new(AnsweredIds::new()),
            detached: Arc::new(DetachedWork::new()),
            plan: Arc::new(plan),
            control,
            outbox,
        }
    }
}

/// The state of one worker, with what all workers share.
pub(crate) struct WorkerState {
    shared: Shared,
    /// The worker's cells.
    pub(crate) observer: RefCell<Box<dyn Observer>>,
    /// The source of the worker's ids.
    pub(crate) ids: IdSource,
    /// The body members that the last rules read, and those rules.
    pub(crate) rule_members: RefCell<RuleMembers>,
    /// True while the worker is being stopped: the proxy, not the client, then ends an exchange.
    pub(crate) cutting: Cell<bool>,
    /// True from the start of the drain: each HTTP/1 response then ends its connection.
    pub(crate) draining: Cell<bool>,
    /// The tick at which every connection got the signal to end after its current request.
    pub(crate) leaving: Cell<Option<Tick>>,
    /// Requests without a complete answer so far. Only this thread writes it.
    pub(crate) in_flight: Arc<AtomicUsize>,
}

impl Deref for WorkerState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// The capacities that the clients of all workers share.
#[derive(Clone)]
pub(crate) struct Capacities {
    pub(crate) holders: Holders,
    /// Client connections.
    pub(crate) connections: Capacity,
    /// Bytes of buffered request bodies.
    pub(crate) gathered_bytes: Capacity,
    /// Connections that carry a request, in the plan's order.
    pub(crate) upstreams: Vec<Capacity>,
    /// Sockets of clients and upstreams.
    pub(crate) sockets: Capacity,
}

impl Capacities {
    fn new(plan: &Plan) -> Self {
        let shares = &plan.shares;
        // A request also uses a socket of its client.
        let carried = shares.upstream_connections.min((shares.sockets / 2).max(1));
        let upstreams = 0..plan.upstreams.len();
        Self {
            holders: Holders::new(plan.upstreams.len()),
            connections: Capacity::new(
                plan.connections.saturating_mul(plan.workers),
                Some(Resource::Connections),
            ),
            gathered_bytes: Capacity::new(shares.gather_room_bytes, Some(Resource::GatheredBytes)),
            upstreams: upstreams
                .map(|index| Capacity::new(carried, Some(Resource::Upstream(index))))
                .collect(),
            sockets: Capacity::new(shares.sockets, Some(Resource::Sockets)),
        }
    }
}

impl WorkerState {
    /// The state of a new worker. It is created on the worker's own thread, so that its keys are unique.
    pub(crate) fn new(shared: Shared, observer: Box<dyn Observer>, in_flight: Arc<AtomicUsize>) -> Rc<Self> {
        Rc::new(Self {
            shared,
            observer: RefCell::new(observer),
            ids: IdSource::new(),
            rule_members: RefCell::default(),
            cutting: Cell::new(false),
            draining: Cell::new(false),
            leaving: Cell::new(None),
            in_flight,
        })
    }

    /// Returns the kind of an upstream, as configured or detected.
    pub(crate) fn kind(&self, upstream: usize) -> Option<ServerKind> {
        self.plan.upstreams[upstream].kind.or_else(|| self.profiles[upstream].found_kind())
    }

    /// Returns the names of the provider and of an upstream.
    pub(crate) fn place(&self, upstream: usize) -> (Arc<str>, Arc<str>) {
        let found = self.profiles[upstream].found_kind();
        let upstream = &self.plan.upstreams[upstream];
        let provider = match (upstream.kind, found) {
            (None, Some(found)) => found.provider().into(),
            _ => Arc::clone(&upstream.provider),
        };
        (provider, Arc::clone(&upstream.name))
    }

    /// Counts a request that is forwarded unmetered.
    pub(crate) fn passthrough(&self, reason: Passthrough) {
        self.observer.borrow_mut().passthrough(reason);
    }

    /// Counts a request that the proxy answered.
    pub(crate) fn refuse(&self, reason: Refusal) {
        self.observer.borrow_mut().refuse(reason);
    }

    /// Reports a request that makes no record to the access log.
    pub(crate) fn report_rejection(&self, upstream: usize, answer: (Refusal, u16), known: Option<Known>) {
        if !self.plan.report_rejections {
            return;
        }
        let (reason, status) = answer;
        let upstream = Arc::clone(&self.plan.upstreams[upstream].name);
        if !self.outbox.report(Rejection { upstream, reason, status, known }) {
            self.dropped(Dropped::Refusal);
        }
    }

    /// The load cell of an upstream. A thread that panicked while it held it cannot have left it half changed in a way
    /// that matters: it is a few numbers.
    pub(crate) fn load(&self, upstream: usize) -> MutexGuard<'_, Load> {
        self.loads[upstream].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a loss. A loss inside the observer itself is not counted.
    pub(crate) fn dropped(&self, what: Dropped) {
        if let Ok(mut observer) = self.observer.try_borrow_mut() {
            observer.dropped(what, 1);
        }
    }
}
