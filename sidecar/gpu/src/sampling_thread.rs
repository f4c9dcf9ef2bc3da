//! The sampling thread, with one sample per period. Other threads only queue
//! notices of ended exchanges, and never wait.
//!
//! Law: every accepted ended exchange comes back through [`Hooks::settled`], also after a panic.
//! After sampling has ended, the last reading shows every device as down.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use meter::{LoadReading, Tick};

use crate::attribution::{AttributionReading, Ended, Prices, Rules, Settled};
use crate::exporter::ExporterPlan;
use crate::gpus::Upstream;
use crate::limits::{PERIOD_MAX, PERIOD_MIN, SHUTDOWN_TIMEOUT, WAITING_MAX_ITEMS};
use crate::sample::Sample;
use crate::sampler::{GpusReading, Sampler};
use crate::source::{Answer, SourceChoice, choose};
use crate::source_thread;

/// The configuration of the sampling thread.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The source of samples.
    pub source: SourceChoice,
    /// NVML's path, if not the driver's default.
    pub nvml_library: Option<PathBuf>,
    /// The exporter, if one is configured.
    pub exporter: Option<ExporterPlan>,
    /// The upstreams; hooks and notices identify them by their index.
    pub upstreams: Vec<Upstream>,
    /// The sampling period; clamped to [`PERIOD_MIN`] and [`PERIOD_MAX`].
    pub period: Duration,
    /// Periods without a sample after which a device is stale. At least 2: otherwise every
    /// sample would follow a gap.
    pub stale_periods: u32,
    /// The prices of device time and energy.
    pub prices: Prices,
    /// The number of tenants that have totals of their own.
    pub tenants: usize,
    /// The number of models that have totals of their own.
    pub models: usize,
}

/// Inputs and outputs. All are called on the sampling thread, and should return quickly.
pub struct Hooks<T> {
    /// Returns the time of the load cells' clock.
    pub now: Box<dyn Fn() -> Tick + Send>,
    /// Reads an upstream's load cell at this tick.
    pub load: Box<dyn Fn(usize, Tick) -> LoadReading + Send>,
    /// Takes the state of the devices; replaces the previous one.
    pub reading: Box<dyn Fn(GpusReading) + Send>,
    /// Takes the totals of attribution; replaces the previous ones.
    pub attribution: Box<dyn Fn(AttributionReading) + Send>,
    /// Takes an ended exchange that comes back. Each accepted one does, once.
    pub settled: Box<dyn Fn(Settled<T>) + Send>,
}

/// Starts the sampling thread.
pub fn start<T: Send + 'static>(plan: Plan, hooks: Hooks<T>) -> io::Result<Running<T>> {
    let invalid =
        |error: Box<dyn std::error::Error + Send + Sync>| io::Error::new(io::ErrorKind::InvalidInput, error);
    let period = plan.period.clamp(PERIOD_MIN, PERIOD_MAX);
    let rules = Rules {
        stale: period * plan.stale_periods.max(2),
        prices: plan.prices,
        tenants: plan.tenants,
        models: plan.models,
    };
    let at = (hooks.now)();
    let loads: Vec<LoadReading> = (0..plan.upstreams.len()).map(|number| (hooks.load)(number, at)).collect();
    let sampler = Sampler::new(rules, &plan.upstreams, &loads).map_err(|error| invalid(error.into()))?;
    if plan.source == SourceChoice::Exporter && plan.exporter.is_none() {
        return Err(invalid("the GPU source is an exporter, and no exporter is configured".into()));
    }
    let notices = Notices(Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new() }));
    let (upstreams, taken) = (plan.upstreams.len(), VecDeque::new());
    let watcher = Watcher { notices: notices.clone(), hooks, sampler, taken, upstreams, period };
    let thread =
        std::thread::Builder::new().name("gpu".to_owned()).spawn(move || watcher.sampling_thread(plan))?;
    Ok(Running { notices, thread: Some(thread) })
}

/// The sampling thread. Dropping it waits at most [`SHUTDOWN_TIMEOUT`] for a last sample, gives every exchange
/// back, and ends the thread.
#[derive(Debug)]
pub struct Running<T> {
    notices: Notices<T>,
    thread: Option<JoinHandle<()>>,
}

impl<T> Running<T> {
    /// Returns a sender of notices.
    pub fn notices(&self) -> Notices<T> {
        self.notices.clone()
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.notices.queue().end_by = Some(Instant::now() + SHUTDOWN_TIMEOUT);
        self.notices.0.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was logged when it happened.
            let _ = thread.join();
        }
    }
}

/// A queue of notices of ended exchanges. Clones share one queue.
#[derive(Debug)]
pub struct Notices<T>(Arc<Shared<T>>);

impl<T> Clone for Notices<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Shared<T> {
    queue: Mutex<QueueState<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct QueueState<T> {
    ended: VecDeque<Ended<T>>,
    /// Accepted exchanges that were taken from `ended` and are not settled yet.
    waiting: usize,
    refused: u64,
    /// A device was seen: the use of exchanges can be known.
    devices: bool,
    /// The source's last answer, until it is taken.
    answer: Option<io::Result<Answer>>,
    /// Shutdown has begun, and the last sample may take until then.
    end_by: Option<Instant>,
    /// The thread has ended.
    closed: bool,
}

impl<T> Default for QueueState<T> {
    fn default() -> Self {
        Self {
            ended: VecDeque::new(),
            waiting: 0,
            refused: 0,
            devices: false,
            answer: None,
            end_by: None,
            closed: false,
        }
    }
}

impl<T> Notices<T> {
    /// Queues an ended exchange. Never waits. Returns its context if the queue is full, no device was
    /// seen yet, or the thread has ended: its use is then unknown.
    pub fn ended(&self, ended: Ended<T>) -> Result<(), T> {
        let mut queue = self.queue();
        if !queue.devices {
            return Err(ended.context);
        }
        if queue.closed || queue.ended.len() + queue.waiting >= WAITING_MAX_ITEMS {
            queue.refused += 1;
            return Err(ended.context);
        }
        queue.ended.push_back(ended);
        Ok(())
    }

    fn queue(&self) -> MutexGuard<'_, QueueState<T>> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Watcher<T> {
    notices: Notices<T>,
    hooks: Hooks<T>,
    sampler: Sampler<T>,
    /// Taken from the queue, and not yet handed to the sampler.
    taken: VecDeque<Ended<T>>,
    upstreams: usize,
    period: Duration,
}

impl<T: Send + 'static> Watcher<T> {
    fn sampling_thread(mut self, plan: Plan) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run(plan)));
        let failed = !matches!(outcome, Ok(Ok(())));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("GPU sampling stopped: {error}"),
            Err(_) => tracing::error!("GPU sampling stopped: panic (a defect)"),
        }
        let left = {
            let mut queue = self.notices.queue();
            queue.closed = true;
            std::mem::take(&mut queue.ended)
        };
        let settled = &self.hooks.settled;
        for ended in self.taken.drain(..).chain(left) {
            settled(Settled { context: ended.context, used: None });
        }
        self.sampler.finish(&mut |back| settled(back));
        if failed {
            self.sampler.fail();
            // If this hook caused the panic, it may panic again; nothing is left to do after it.
            let _ = catch_unwind(AssertUnwindSafe(|| (self.hooks.reading)(self.sampler.gpus())));
        }
    }

    fn run(&mut self, plan: Plan) -> io::Result<()> {
        let timeout = self.period.min(Duration::from_secs(2)).max(Duration::from_millis(500));
        let uuids = self.sampler.uuids();
        let notices = self.notices.clone();
        let requests = source_thread::start(
            move || choose(plan.source, plan.nvml_library, plan.exporter, uuids, timeout),
            move |answer| {
                notices.queue().answer = Some(answer);
                notices.0.changed.notify_all();
            },
        )?;
        let mut due = Instant::now();
        loop {
            let ending = self.wait(due);
            if self.cycle(&requests, ending)? {
                return Ok(());
            }
            // After a suspend, one sample is enough.
            due = (due + self.period).max(Instant::now());
        }
    }

    /// Waits for the due time or for shutdown; returns true on shutdown.
    fn wait(&self, due: Instant) -> bool {
        let mut queue = self.notices.queue();
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if queue.end_by.is_some() || left.is_zero() {
                return queue.end_by.is_some();
            }
            let changed = self.notices.0.changed.wait_timeout(queue, left);
            queue = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the source's answer now; `None` if shutdown ends the wait.
    fn answer(&self, requests: &SyncSender<()>) -> io::Result<Option<Answer>> {
        // Fails if the thread has ended, which has left its error in `answer`.
        let _ = requests.try_send(());
        let mut queue = self.notices.queue();
        loop {
            if let Some(answer) = queue.answer.take() {
                return answer.map(Some);
            }
            let changed = &self.notices.0.changed;
            queue = match queue.end_by.map(|by| by.saturating_duration_since(Instant::now())) {
                None => changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Ok(None),
                Some(left) => changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Runs one sampling cycle; returns true if it was the last.
    fn cycle(&mut self, requests: &SyncSender<()>, last: bool) -> io::Result<bool> {
        let at = (self.hooks.now)();
        let loads: Vec<LoadReading> =
            (0..self.upstreams).map(|number| (self.hooks.load)(number, at)).collect();
        let answer = self.answer(requests)?;
        let took = Duration::from_nanos((self.hooks.now)().since(at));
        let last = last || answer.is_none();
        let mut answer = answer.unwrap_or_else(|| {
            let known = self.sampler.gpus();
            let reason = "no answer before shutdown".to_owned();
            Answer { source: known.source, refused: known.refused, sample: Sample::Failed(reason) }
        });
        if took > self.period.max(ANSWER_MAX_DURATION) && matches!(answer.sample, Sample::Devices(_)) {
            // The energy is of an unknown moment in between.
            let reason = format!("the answer took {} ms, which is too long", took.as_millis());
            answer.sample = Sample::Failed(reason);
        }
        let refused = {
            let mut queue = self.notices.queue();
            std::mem::swap(&mut queue.ended, &mut self.taken);
            queue.waiting += self.taken.len();
            std::mem::take(&mut queue.refused)
        };
        let settled = &self.hooks.settled;
        self.sampler.refused(refused);
        while let Some(ended) = self.taken.pop_front() {
            if let Some(back) = self.sampler.ended(ended) {
                settled(back);
            }
        }
        self.sampler.apply(at, &answer, &loads, last, &mut |back| settled(back));
        {
            let mut queue = self.notices.queue();
            queue.waiting = self.sampler.waiting();
            queue.devices = self.sampler.has_devices();
        }
        (self.hooks.reading)(self.sampler.gpus());
        (self.hooks.attribution)(self.sampler.attribution());
        Ok(last)
    }
}

/// The longest accepted duration of an answer, if the period is shorter.
const ANSWER_MAX_DURATION: Duration = Duration::from_secs(1);
