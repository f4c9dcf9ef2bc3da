//! The export thread. Each signal has its own loop, connection and counts, so that a blocked signal does not delay the
//! others.
//!
//! ```text
//! submit ─→ queue of spans ─→ batch ─┐
//!        └→ queue of logs ──→ batch ─┼─→ sender: attempt, wait, attempt … → settled
//!           reading, periodically ───┘
//! ```
//!
//! Invariant: an export never blocks its callers. Items that cannot be sent are dropped and counted.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use metrics::{Reading, SampleWriter, Samples, Upstream};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use crate::attributes::resource;
use crate::counts::{Counts, End};
use crate::finished::Finished;
use crate::limits::REQUEST_MAX_BYTES;
use crate::plan::{Detail, EventName, Periodic, Plan, Queued, Signal};
use crate::queue::Queue;
use crate::sender::Sender;
use crate::{log, metric, samples, span};

/// Starts the export thread. It reads the certificates and opens no connection yet.
///
/// The export thread calls `reading` once for each export of metrics.
///
/// # Errors
/// Fails if a certificate file is invalid or the thread cannot be started.
pub fn start(plan: Plan, reading: Box<dyn Fn() -> Reading + Send>) -> io::Result<Exporter> {
    let shared = Shared {
        metrics: Queue::new(usize::MAX, 1),
        sends_metrics: plan.metrics.is_some(),
        spans: plan.spans.as_ref().map(|queued| Queue::new(queued.capacity, queued.batch)),
        logs: plan.logs.as_ref().map(|queued| Queue::new(queued.capacity, queued.batch)),
        resource: resource(&plan.resource, plan.text_limit),
        event: plan.event,
        detail: plan.detail,
        upstreams: plan.upstreams,
        text_limit: plan.text_limit,
    };
    let shared = Arc::new(shared);
    let (stop, stopping) = watch::channel(None);
    let mut loops: Vec<Loop> = Vec::new();
    if let Some(periodic) = plan.metrics {
        let sender = Sender::new(&periodic.target, Signal::Metric)?;
        let loop_ = send_metrics(Arc::clone(&shared), periodic, sender, reading, stopping.clone());
        loops.push(Box::pin(loop_));
    }
    for (queued, signal) in [(plan.spans, Signal::Span), (plan.logs, Signal::Log)] {
        let Some(queued) = queued else { continue };
        let sender = Sender::new(&queued.target, signal)?;
        loops.push(Box::pin(send_queue(Arc::clone(&shared), signal, queued, sender, stopping.clone())));
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (done, ended) = mpsc::channel();
    let closing = Arc::clone(&shared);
    let thread = std::thread::Builder::new().name("otlp".to_owned()).spawn(move || {
        LocalSet::new().block_on(&runtime, run(loops, stopping));
        // A pending name resolution must not block the end of the thread.
        runtime.shutdown_background();
        closing.close();
        // The receiver may have stopped waiting.
        let _ = done.send(());
    })?;
    Ok(Exporter { shared, stop, thread: Mutex::new(Some((thread, ended))) })
}

type Loop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs until all loops have ended, or until the deadline of the shutdown.
async fn run(loops: Vec<Loop>, mut stopping: watch::Receiver<Option<Instant>>) {
    let tasks: Vec<_> = loops.into_iter().map(tokio::task::spawn_local).collect();
    let deadline = stopping.wait_for(Option::is_some).await.ok().and_then(|deadline| *deadline);
    let all = async {
        for task in tasks {
            // The panic hook already reported a panic of the task.
            let _ = task.await;
        }
    };
    tokio::select! {
        () = all => {}
        () = sleep_until(deadline.unwrap_or_else(Instant::now)) => {}
    }
}

/// The state that the export thread shares with submitters.
#[derive(Debug)]
struct Shared {
    /// The requests of one export; empty between exports.
    metrics: Queue<Vec<u8>>,
    sends_metrics: bool,
    spans: Option<Queue<Finished>>,
    logs: Option<Queue<Finished>>,
    resource: Resource,
    event: EventName,
    detail: Detail,
    upstreams: Vec<Upstream>,
    text_limit: usize,
}

impl Samples for Shared {
    fn write(&self, to: &mut SampleWriter) {
        samples::write(&self.counts(), to);
    }
}

impl Shared {
    fn counts(&self) -> Counts {
        let of = |queue: &Option<Queue<Finished>>| queue.as_ref().map(Queue::counts).unwrap_or_default();
        Counts {
            metrics: self.metrics.counts(),
            spans: of(&self.spans),
            logs: of(&self.logs),
            on: [self.sends_metrics, self.spans.is_some(), self.logs.is_some()],
        }
    }

    fn close(&self) {
        self.metrics.close();
        for queue in [&self.spans, &self.logs].into_iter().flatten() {
            queue.close();
        }
    }

    fn queue(&self, signal: Signal) -> Option<&Queue<Finished>> {
        match signal {
            Signal::Metric => None,
            Signal::Span => self.spans.as_ref(),
            Signal::Log => self.logs.as_ref(),
        }
    }

    fn encoded(&self, signal: Signal, batch: &[Finished]) -> Vec<u8> {
        match signal {
            Signal::Log => {
                let form = log::Form { event: self.event, detail: self.detail, text_limit: self.text_limit };
                log::request(batch, &self.resource, &self.upstreams, &form).encode_to_vec()
            }
            _ => span::request(batch, &self.resource, &self.upstreams, self.text_limit).encode_to_vec(),
        }
    }
}

/// The handle of the export thread. Dropping it ends the thread at once; [`Exporter::shutdown`] first sends queued
/// items.
#[derive(Debug)]
pub struct Exporter {
    shared: Arc<Shared>,
    stop: watch::Sender<Option<Instant>>,
    thread: Mutex<Option<(JoinHandle<()>, mpsc::Receiver<()>)>>,
}

impl Exporter {
    /// Queues a finished exchange. It never waits: if a queue is full, the items are dropped and counted.
    pub fn submit(&self, finished: Finished) {
        let spans = span::count(&finished.record);
        if let (Some(queue), 1..) = (&self.shared.spans, spans) {
            queue.put(finished.clone(), spans);
        }
        if let Some(queue) = &self.shared.logs {
            queue.put(finished, 1);
        }
    }

    /// Returns the current counts.
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// Returns the exporter's own samples, which do not keep its thread alive.
    pub fn samples(&self) -> Arc<dyn Samples> {
        Arc::clone(&self.shared) as _
    }

    /// Sends queued items and the metrics once more, and ends the thread, at the latest after `within`; then remaining
    /// items are dropped. The returned counts are final.
    pub fn shutdown(&self, within: Duration) -> Counts {
        let within = within.min(SHUTDOWN_MAX);
        self.stop.send_replace(Some(Instant::now() + within));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((thread, ended)) = thread {
            // A reading that does not return blocks the thread, but not this call.
            if ended.recv_timeout(within + SHUTDOWN_GRACE) == Err(RecvTimeoutError::Timeout) {
                tracing::warn!("the OTLP thread does not end; it is abandoned");
            } else {
                // The panic hook already reported a panic of the thread.
                let _ = thread.join();
            }
        }
        self.shared.close();
        self.counts()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.shutdown(Duration::ZERO);
    }
}

/// Maximum time of a shutdown; the sum of an instant and a longer time may overflow.
const SHUTDOWN_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Additional time that the caller waits for the thread after the deadline.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(250);

/// The loop of one queue: it sends a full batch at once, and a partial one after the delay.
async fn send_queue(
    shared: Arc<Shared>,
    signal: Signal,
    plan: Queued,
    mut sender: Sender,
    mut stopping: watch::Receiver<Option<Instant>>,
) {
    let Some(queue) = shared.queue(signal) else { return };
    loop {
        tokio::select! {
            () = queue.full_batch() => {}
            () = sleep(plan.delay) => {}
            // An error means that the sender was dropped, which is a shutdown too.
            _ = stopping.wait_for(Option::is_some) => {}
        }
        loop {
            let (batch, items) = queue.take();
            if items == 0 {
                break;
            }
            let message = shared.encoded(signal, &batch);
            drop(batch);
            let began = Instant::now();
            let end = sender.send(message, began + plan.within).await;
            queue.settle(items, end, began.elapsed());
            if stopping.borrow().is_none() {
                break;
            }
        }
        if stopping.borrow().is_some() {
            return;
        }
    }
}

/// The loop of metrics: a reading per interval, and one at shutdown.
async fn send_metrics(
    shared: Arc<Shared>,
    plan: Periodic,
    mut sender: Sender,
    reading: Box<dyn Fn() -> Reading + Send>,
    mut stopping: watch::Receiver<Option<Instant>>,
) {
    let mut ticks = interval(plan.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    // The first tick is immediate, before there is anything to export.
    ticks.tick().await;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopping.wait_for(Option::is_some) => {}
        }
        let last = stopping.borrow().is_some();
        let parts = metric::parts(
            &reading(),
            &shared.resource,
            plan.histograms,
            shared.text_limit,
            REQUEST_MAX_BYTES,
        );
        for part in parts {
            shared.metrics.put(part.request.encode_to_vec(), part.points);
        }
        let deadline = Instant::now() + plan.within;
        loop {
            let (mut parts, points) = shared.metrics.take();
            let Some(message) = parts.pop() else { break };
            let began = Instant::now();
            let end = if began < deadline { sender.send(message, deadline).await } else { End::Unreachable };
            shared.metrics.settle(points, end, began.elapsed());
        }
        if last {
            return;
        }
    }
}
