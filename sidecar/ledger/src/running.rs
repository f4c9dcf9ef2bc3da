//! The handle of a running ledger, by which the rest of the process enters rows and reads the status.
//!
//! Law: no call waits for the disk, and none fails.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::audit_event::AuditEvent;
use crate::energy::EnergyRow;
use crate::error::Fault;
use crate::queue::{End, Item};
use crate::row::bounded;
use crate::source::DeviceTotal;
use crate::status::Status;
use crate::writer::{Shared, Writer};
use crate::{Calendar, LedgerFolder, Row, Zone};

/// A clock: microseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Returns true if the rows of a file may be deleted: the central store has them all, and their usage events are
/// accepted, as far as they are shipped and sent.
pub type MayForget = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// The settings of a ledger.
#[derive(Clone)]
pub struct Plan {
    /// The path of the open month; the files of other months are beside it.
    pub path: PathBuf,
    /// The number of days for which the rows of a month are kept after its end; 0: for ever. Daily totals always stay.
    pub keep_days: u32,
    /// The decision whether rows may be deleted from a month's file; `None`: they may.
    pub may_forget: Option<MayForget>,
    /// The central store to which the rows are shipped, without a password. If there is one, months are closed there.
    pub ships_to: Option<Arc<str>>,
    /// The time zone of days and months. If it is not the ledger's current one, it begins with the next month. `None`:
    /// the zone of the ledger, or UTC for a new one.
    pub time_zone: Option<Zone>,
    /// The actor of automatic events in the audit trail.
    pub who: Arc<str>,
    /// The time of day.
    pub clock: Clock,
}

impl Plan {
    /// Returns the settings of a ledger that keeps all rows for ever.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            keep_days: 0,
            may_forget: None,
            ships_to: None,
            time_zone: None,
            who: format!("tokenmeter {}", env!("CARGO_PKG_VERSION")).into(),
            clock: Arc::new(now_us),
        }
    }

    /// Returns the calendar of the ledger if it is started now. Rows get their days by it until the writer has opened
    /// the ledger.
    pub fn calendar(&self) -> Calendar {
        let planned = LedgerFolder::open(&self.path).planned(self.time_zone.as_ref(), (self.clock)());
        planned.unwrap_or_else(|error| {
            let zone = self.time_zone.clone().unwrap_or_default();
            tracing::warn!(reason = %error, "the ledger's time zones cannot be read yet: its days are those of {zone}");
            Calendar::of(zone)
        })
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("path", &self.path)
            .field("keep_days", &self.keep_days)
            .finish_non_exhaustive()
    }
}

/// Returns this machine's time, microseconds since 1970.
pub fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A running ledger. Clones share it.
#[derive(Clone, Debug)]
pub struct Ledger {
    who: Arc<str>,
    shared: Arc<Shared>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// Starts to write a ledger. The writer thread opens the file and tries again until it can; [`Ledger::status`] has the
/// result.
pub fn start(plan: Plan) -> Ledger {
    let shared = Arc::new(Shared::default());
    *shared.calendar() = plan.calendar();
    let its = Arc::clone(&shared);
    let who = Arc::clone(&plan.who);
    let thread = std::thread::Builder::new().name("ledger".into()).spawn(move || keep_writing(&plan, &its));
    let thread = match thread {
        Ok(thread) => Some(thread),
        Err(error) => {
            let message = format!("the ledger's thread cannot be started: {error}");
            tracing::error!("{message}");
            shared.status().fault_message = Some(message);
            None
        }
    };
    Ledger { who, shared, thread: Arc::new(Mutex::new(thread)) }
}

/// Runs the writer until the end, and starts it again after a panic: otherwise rows would wait for ever.
fn keep_writing(plan: &Plan, shared: &Arc<Shared>) {
    loop {
        // The shared state is whole after each statement; the new writer opens everything else again.
        let write = AssertUnwindSafe(|| Writer::new(plan.clone(), Arc::clone(shared)).run());
        if catch_unwind(write).is_ok() {
            return;
        }
        let message = "the ledger's writer thread stopped because of a bug in tokenmeter (a panic, printed to stderr); it \
                       restarts by itself; please report the bug";
        tracing::error!("{message}");
        {
            let mut status = shared.status();
            status.fault(Fault::Other);
            (status.up, status.fault_message) = (false, Some(message.to_owned()));
        }
        shared.queue.drop_held();
        shared.queue.pause(RESTART_PAUSE);
        if shared.queue.requested_end().is_some() {
            let (rows, others) = shared.queue.abandon().counts();
            tracing::error!(rows, others, "what waits for the ledger is lost; the next start enters a gap");
            return;
        }
    }
}

/// The time for the writer's last attempt, and for its note of what is lost.
const LAST_ATTEMPT: Duration = Duration::from_secs(1);

/// The pause before a writer that panicked is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

impl Ledger {
    /// Returns the calendar of the ledger, with the change that begins with the next month, if there is one.
    pub fn calendar(&self) -> Calendar {
        self.shared.calendar().clone()
    }

    /// Counts exchanges that were lost before they reached the ledger; a gap records them.
    pub fn lost(&self, at_us: i64, rows: u64) {
        self.shared.queue.lose_unseen(at_us, rows);
    }

    /// Enters an exchange. It is on the disk once [`Status::rows_total`] counts it.
    pub fn enter(&self, row: Row) {
        let row = Box::new(bounded(row).dated(&self.calendar()));
        if row.is_anonymous_failure() {
            self.shared.queue.put_failure(row);
        } else {
            self.shared.queue.put(Item::Row(row));
        }
    }

    /// Enters the GPU use of an exchange, preferably after the exchange itself.
    pub fn energy(&self, row: EnergyRow) {
        self.shared.queue.put(Item::Energy(Box::new(row.bounded().dated(&self.calendar()))));
    }

    /// Adds GPU use without an exchange.
    pub fn device(&self, added: Vec<DeviceTotal>) {
        for line in added {
            self.shared.queue.put(Item::Device(Box::new(line)));
        }
    }

    /// Enters an event into the audit trail: the action, such as `price_book`, and its details as JSON.
    pub fn act(&self, at_us: i64, what: &str, detail: String) {
        let who = Arc::clone(&self.who);
        let event = AuditEvent { at_us, what: what.into(), who, detail: detail.into() };
        self.shared.queue.put(Item::Audit(Box::new(event)));
    }

    /// Returns the status.
    pub fn status(&self) -> Status {
        let waiting = self.shared.queue.waiting();
        let status = self.shared.status().clone();
        Status {
            queued_rows: waiting.items,
            shed_rows_total: waiting.shed_rows,
            lost_rows_total: waiting.lost_rows,
            lost_energies_total: waiting.lost_others,
            commit_lag: waiting.lag,
            ..status
        }
    }

    /// Enters all waiting items and ends; gives up after `at_most`, and logs what is lost. Returns true if all were
    /// entered in time.
    pub fn shutdown(&self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let lost = |status: &Status| (status.lost_rows_total, status.lost_energies_total);
        let before = lost(&self.status());
        self.shared.queue.end(End::By(until));
        let mut held = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = held.take() else { return self.status().up };
        // A disk that hangs must not delay the end of the process, so the thread is polled and not joined.
        let hung = until + LAST_ATTEMPT;
        while !thread.is_finished() {
            if Instant::now() >= hung {
                tracing::error!(
                    items = self.status().queued_rows,
                    "the ledger's disk does not answer; waiting items are lost if the process ends before it does"
                );
                // Another call waits again.
                *held = Some(thread);
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let ended = thread.join().is_ok();
        let status = self.status();
        ended && status.queued_rows == 0 && lost(&status) == before
    }

    /// Stops at once, as after a kill.
    #[cfg(test)]
    pub(crate) fn abandon(&self) {
        self.shared.queue.end(End::Now);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.unwrap().join().unwrap();
    }
}

#[cfg(test)]
#[path = "running_tests.rs"]
mod tests;
