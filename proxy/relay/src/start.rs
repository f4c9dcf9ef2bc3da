//! The start of the data plane, and the handle that observes and stops it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::watch;

use crate::capacity::Capacity;
use crate::drain::Phase;
use crate::listen::listen;
use crate::outbox::Outbox;
use crate::state::{Capacities, Shared};
use crate::worker::{self, Start, WorkerListener};
use crate::{Control, ListenAddress, Observer, Plan, UpstreamProfile};

/// Starts the workers. When it returns, every address is bound and connections are accepted.
///
/// # Errors
///
/// If an address cannot be bound or a thread cannot be started. In that case nothing keeps running.
///
/// # Panics
///
/// If the number of observers differs from the plan's number of workers, or that is zero.
pub fn start(
    plan: Plan,
    control: Control,
    observers: Vec<Box<dyn Observer + Send>>,
    outbox: Outbox,
) -> Result<Running, StartError> {
    assert_eq!(observers.len(), plan.workers, "each worker owns one observer");
    assert!(plan.workers > 0, "at least one worker");
    let mut bound = Vec::new();
    let mut listeners: Vec<Vec<_>> = (0..plan.workers).map(|_| Vec::new()).collect();
    for (index, upstream) in plan.upstreams.iter().enumerate() {
        for planned in &upstream.listen {
            let failed = |source| StartError::Listen {
                upstream: Arc::clone(&upstream.name),
                address: planned.address.clone(),
                source,
            };
            let (address, shared) = listen(&planned.address, plan.workers).map_err(failed)?;
            bound.push(BoundListener { upstream: index, address, is_tls: planned.tls.is_some() });
            for (worker, listener) in listeners.iter_mut().zip(shared) {
                let (tls, proxy_protocol) = (planned.tls.clone(), planned.proxy_protocol);
                worker.push(WorkerListener { upstream: index, listener, tls, proxy_protocol });
            }
        }
    }

    let shared = Shared::new(plan, control, outbox);
    let (phase, phases) = watch::channel(Phase::Serving);
    let mut running = Running {
        listeners: bound,
        loads: shared.loads.clone(),
        profiles: shared.profiles.clone(),
        capacities: shared.capacities.clone(),
        phase,
        in_flight: Vec::new(),
        threads: Mutex::default(),
    };
    for (number, (observer, listeners)) in observers.into_iter().zip(listeners).enumerate() {
        let in_flight = Arc::new(AtomicUsize::new(0));
        running.in_flight.push(Arc::clone(&in_flight));
        let start = Start { shared: shared.clone(), observer, listeners, in_flight, phase: phases.clone() };
        let thread = std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
            if let Err(error) = worker::run(start) {
                tracing::error!(%error, worker = number, "a worker cannot run");
            }
        });
        // Dropping `running` stops it.
        let thread = thread.map_err(StartError::Thread)?;
        running.threads.get_mut().unwrap_or_else(PoisonError::into_inner).push(thread);
    }
    Ok(running)
}

/// A listener that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundListener {
    /// The index of its upstream in the plan.
    pub upstream: usize,
    /// Its address, with the actual port.
    pub address: ListenAddress,
    /// True if its clients use TLS.
    pub is_tls: bool,
}

/// The running data plane. Dropping it stops it without waiting.
pub struct Running {
    listeners: Vec<BoundListener>,
    loads: Vec<Arc<Mutex<meter::Load>>>,
    profiles: Vec<Arc<UpstreamProfile>>,
    capacities: Capacities,
    in_flight: Vec<Arc<AtomicUsize>>,
    phase: watch::Sender<Phase>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Running {
    /// The listeners, in the plan's order.
    pub fn listeners(&self) -> &[BoundListener] {
        &self.listeners
    }

    /// Each upstream's load cell, in the plan's order.
    pub fn loads(&self) -> Vec<Arc<Mutex<meter::Load>>> {
        self.loads.clone()
    }

    /// Each upstream's profile, in the plan's order: the control plane adds the facts that it detects.
    pub fn profiles(&self) -> &[Arc<UpstreamProfile>] {
        &self.profiles
    }

    /// Requests without a complete answer so far, tunnels included.
    pub fn in_flight(&self) -> usize {
        self.in_flight.iter().map(|worker| worker.load(Ordering::Relaxed)).sum()
    }

    /// Returns a function that reads the shared capacities in use.
    pub fn reader(&self) -> impl Fn() -> CapacityReading + Send + Sync + use<> {
        let capacities = self.capacities.clone();
        let of = |capacity: &Capacity| CapacityUse { taken: capacity.taken(), most: capacity.most() };
        move || CapacityReading {
            connections: of(&capacities.connections),
            gathered_bytes: of(&capacities.gathered_bytes),
            upstream_connections: capacities.upstreams.iter().map(of).collect(),
        }
    }

    /// Starts to drain, as described in the table of `drain`; returns at once.
    pub fn drain(&self) {
        self.advance(Phase::Draining);
    }

    /// Stops now: requests in flight are cut.
    pub fn stop_now(&self) {
        self.advance(Phase::Stopped);
    }

    /// Waits until every worker has ended.
    pub fn join(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a worker panicked");
            }
        }
    }

    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let later = to > *phase;
            *phase = to.max(*phase);
            later
        });
    }
}

/// The use of the shared capacities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityReading {
    /// Client connections.
    pub connections: CapacityUse,
    /// Bytes of buffered request bodies.
    pub gathered_bytes: CapacityUse,
    /// Connections that carry a request, by upstream in the plan's order.
    pub upstream_connections: Vec<CapacityUse>,
}

/// The used amount of one capacity, and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityUse {
    /// The used amount.
    pub taken: usize,
    /// The total amount.
    pub most: usize,
}

/// The reason why the data plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address could not be bound.
    #[error("cannot listen on {address} for upstream '{upstream}': {source}{}", remedy(source))]
    Listen {
        /// The name of its upstream.
        upstream: Arc<str>,
        /// The address.
        address: ListenAddress,
        /// The kernel's error.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a worker thread: {0}")]
    Thread(#[source] io::Error),
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another process or upstream listens there: stop it, or choose another port"
        }
        _ => "",
    }
}
