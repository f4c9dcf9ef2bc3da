//! When the devices are asked: one thread, a sample every so often. The other threads only leave
//! notices of ended exchanges, in a queue that never makes them wait.
//!
//! Law: an ended exchange that was taken comes back through [`Hooks::settled`], whatever happens
//! here, a panic included. Who does not watch any more does not look as if it did: the last reading
//! says so.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use meter::{LoadReading, Tick};

use crate::ask;
use crate::attribution::{AttributionReading, Ended, Prices, Rules, Settled};
use crate::exporter::ExporterPlan;
use crate::gpus::Upstream;
use crate::limits::{ENDING, PERIOD_MAX, PERIOD_MIN, WAITING};
use crate::round::{GpusReading, Rounds};
use crate::sample::Sample;
use crate::source::{Answer, Wanted, choose};

/// What to watch.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who is asked.
    pub source: Wanted,
    /// NVML's path, if it is not the driver's own.
    pub nvml_library: Option<PathBuf>,
    /// The exporter, if there is one.
    pub exporter: Option<ExporterPlan>,
    /// The upstreams; their order gives them the numbers by which the hooks and notices know them.
    pub upstreams: Vec<Upstream>,
    /// From one sample to the next; brought within [`PERIOD_MIN`] and [`PERIOD_MAX`].
    pub period: Duration,
    /// Periods without a sample after which nothing is concluded any more. Fewer than 2 are 2: else every
    /// sample would be one after a gap.
    pub stale_periods: u32,
    /// What devices cost.
    pub prices: Prices,
    /// Tenants that are told apart.
    pub tenants: usize,
    /// Models that are told apart.
    pub models: usize,
}

/// Where things come from and go to. All are called on the watching thread, and should be quick.
pub struct Hooks<T> {
    /// The clock of the load cells.
    pub now: Box<dyn Fn() -> Tick + Send>,
    /// An upstream's load cell, read at this tick.
    pub load: Box<dyn Fn(usize, Tick) -> LoadReading + Send>,
    /// What is known of the devices; replaces what was known before.
    pub reading: Box<dyn Fn(GpusReading) + Send>,
    /// Where everything went; replaces what was said before.
    pub attribution: Box<dyn Fn(AttributionReading) + Send>,
    /// An ended exchange comes back. Each that was taken does, once.
    pub settled: Box<dyn Fn(Settled<T>) + Send>,
}

/// Begins to watch.
pub fn start<T: Send + 'static>(plan: Plan, hooks: Hooks<T>) -> io::Result<Running<T>> {
    let invalid =
        |what: Box<dyn std::error::Error + Send + Sync>| io::Error::new(io::ErrorKind::InvalidInput, what);
    let period = plan.period.clamp(PERIOD_MIN, PERIOD_MAX);
    let rules = Rules {
        stale: period * plan.stale_periods.max(2),
        prices: plan.prices,
        tenants: plan.tenants,
        models: plan.models,
    };
    let at = (hooks.now)();
    let loads: Vec<LoadReading> = (0..plan.upstreams.len()).map(|number| (hooks.load)(number, at)).collect();
    let rounds = Rounds::new(rules, &plan.upstreams, &loads).map_err(|mistake| invalid(mistake.into()))?;
    if plan.source == Wanted::Exporter && plan.exporter.is_none() {
        return Err(invalid("the GPUs are to be read from an exporter, and none is named".into()));
    }
    let notices = Notices(Arc::new(Shared { desk: Mutex::default(), rung: Condvar::new() }));
    let (upstreams, taken) = (plan.upstreams.len(), VecDeque::new());
    let watcher = Watcher { notices: notices.clone(), hooks, rounds, taken, upstreams, period };
    let thread = std::thread::Builder::new().name("gpu".to_owned()).spawn(move || watcher.watch(plan))?;
    Ok(Running { notices, thread: Some(thread) })
}

/// The watching thread. Dropping it takes a last sample if that comes in [`ENDING`], gives every exchange
/// back, and ends.
#[derive(Debug)]
pub struct Running<T> {
    notices: Notices<T>,
    thread: Option<JoinHandle<()>>,
}

impl<T> Running<T> {
    /// For whoever knows which exchanges ended.
    pub fn notices(&self) -> Notices<T> {
        self.notices.clone()
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.notices.desk().end_by = Some(Instant::now() + ENDING);
        self.notices.0.rung.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Takes word of exchanges that ended. Cheap to clone; the clones are one.
#[derive(Debug)]
pub struct Notices<T>(Arc<Shared<T>>);

impl<T> Clone for Notices<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Shared<T> {
    desk: Mutex<Desk<T>>,
    rung: Condvar,
}

#[derive(Debug)]
struct Desk<T> {
    ended: VecDeque<Ended<T>>,
    /// Those that were taken from here and wait to be settled.
    waiting: usize,
    refused: u64,
    /// A device was seen: what exchanges used can be known.
    devices: bool,
    /// What the source said last, until it is taken.
    answer: Option<io::Result<Answer>>,
    /// No more rounds but the last, and until when that may be waited for.
    end_by: Option<Instant>,
    /// No more rounds at all.
    closed: bool,
}

impl<T> Default for Desk<T> {
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
    /// An exchange ended. Never waits. The ticket comes back here and now if there is no room for
    /// it, no device was seen yet, or nobody watches any more: then what it used is not known.
    pub fn ended(&self, ended: Ended<T>) -> Result<(), T> {
        let mut desk = self.desk();
        if !desk.devices {
            return Err(ended.ticket);
        }
        if desk.closed || desk.ended.len() + desk.waiting >= WAITING {
            desk.refused += 1;
            return Err(ended.ticket);
        }
        desk.ended.push_back(ended);
        Ok(())
    }

    fn desk(&self) -> MutexGuard<'_, Desk<T>> {
        self.0.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Watcher<T> {
    notices: Notices<T>,
    hooks: Hooks<T>,
    rounds: Rounds<T>,
    /// Taken from the desk, and not yet among those that wait.
    taken: VecDeque<Ended<T>>,
    upstreams: usize,
    period: Duration,
}

impl<T: Send + 'static> Watcher<T> {
    fn watch(mut self, plan: Plan) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.rounds(plan)));
        let failed = !matches!(outcome, Ok(Ok(())));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("the GPUs cannot be watched: {error}"),
            Err(_) => tracing::error!("watching the GPUs failed: a defect; they are not watched any more"),
        }
        let left = {
            let mut desk = self.notices.desk();
            desk.closed = true;
            std::mem::take(&mut desk.ended)
        };
        let settled = &self.hooks.settled;
        for ended in self.taken.drain(..).chain(left) {
            settled(Settled { ticket: ended.ticket, used: None });
        }
        self.rounds.finish(&mut |back| settled(back));
        if failed {
            self.rounds.fail();
            // If it was this that failed, it may fail again, and all else is done.
            let _ = catch_unwind(AssertUnwindSafe(|| (self.hooks.reading)(self.rounds.gpus())));
        }
    }

    fn rounds(&mut self, plan: Plan) -> io::Result<()> {
        let patience = self.period.min(Duration::from_secs(2)).max(Duration::from_millis(500));
        let uuids = self.rounds.uuids();
        let notices = self.notices.clone();
        let ask = ask::start(
            move || choose(plan.source, plan.nvml_library, plan.exporter, uuids, patience),
            move |answer| {
                notices.desk().answer = Some(answer);
                notices.0.rung.notify_all();
            },
        )?;
        let mut due = Instant::now();
        loop {
            let ending = self.wait(due);
            if self.round(&ask, ending)? {
                return Ok(());
            }
            // After a time asleep, one sample is enough.
            due = (due + self.period).max(Instant::now());
        }
    }

    /// Until then, or until there will be no other round.
    fn wait(&self, due: Instant) -> bool {
        let mut desk = self.notices.desk();
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if desk.end_by.is_some() || left.is_zero() {
                return desk.end_by.is_some();
            }
            let rung = self.notices.0.rung.wait_timeout(desk, left);
            desk = rung.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What the source says now; nothing if all is to end before it does.
    fn answer(&self, ask: &SyncSender<()>) -> io::Result<Option<Answer>> {
        // Who has ended has left word why.
        let _ = ask.try_send(());
        let mut desk = self.notices.desk();
        loop {
            if let Some(answer) = desk.answer.take() {
                return answer.map(Some);
            }
            let rung = &self.notices.0.rung;
            desk = match desk.end_by.map(|by| by.saturating_duration_since(Instant::now())) {
                None => rung.wait(desk).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Ok(None),
                Some(left) => rung.wait_timeout(desk, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Whether it was the last.
    fn round(&mut self, ask: &SyncSender<()>, last: bool) -> io::Result<bool> {
        let at = (self.hooks.now)();
        let loads: Vec<LoadReading> =
            (0..self.upstreams).map(|number| (self.hooks.load)(number, at)).collect();
        let answer = self.answer(ask)?;
        let took = Duration::from_nanos((self.hooks.now)().since(at));
        let last = last || answer.is_none();
        let mut answer = answer.unwrap_or_else(|| {
            let known = self.rounds.gpus();
            let why = "they had not answered when all was to end".to_owned();
            Answer { source: known.source, refused: known.refused, sample: Sample::Nothing(why) }
        });
        if took > self.period.max(SLOW) && matches!(answer.sample, Sample::Devices(_)) {
            // The energy is of some moment in between: nobody can say which.
            let why = format!("they took {} ms to answer, which is too long", took.as_millis());
            answer.sample = Sample::Nothing(why);
        }
        let refused = {
            let mut desk = self.notices.desk();
            std::mem::swap(&mut desk.ended, &mut self.taken);
            desk.waiting += self.taken.len();
            std::mem::take(&mut desk.refused)
        };
        let settled = &self.hooks.settled;
        self.rounds.refused(refused);
        while let Some(ended) = self.taken.pop_front() {
            if let Some(back) = self.rounds.ended(ended) {
                settled(back);
            }
        }
        self.rounds.take(at, &answer, &loads, last, &mut |back| settled(back));
        {
            let mut desk = self.notices.desk();
            desk.waiting = self.rounds.waiting();
            desk.devices = self.rounds.has_devices();
        }
        (self.hooks.reading)(self.rounds.gpus());
        (self.hooks.attribution)(self.rounds.attribution());
        Ok(last)
    }
}

/// How long an answer may take, whatever the period.
const SLOW: Duration = Duration::from_secs(1);
