//! The ledger as the rest of the process sees it: something to give rows to, and to ask how it is.
//!
//! Law: no call waits for the disk, and none fails.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Row;
use crate::audit_event::AuditEvent;
use crate::energy::EnergyRow;
use crate::error::Fault;
use crate::queue::{End, Item};
use crate::row::bounded;
use crate::source::DeviceTotal;
use crate::status::Status;
use crate::writer::{Shared, Writer};

/// Microseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Returns true if all rows of a file may be removed: every other store that is to have them has them.
pub type MayForget = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// The settings of a ledger.
#[derive(Clone)]
pub struct Plan {
    /// The path of the open month; the others are beside it.
    pub path: PathBuf,
    /// For how many days after its end a month's rows are kept; 0: for ever. Lines stay.
    pub keep_days: u32,
    /// Decides whether rows may be deleted from a month's file; `None`: they may.
    pub may_forget: Option<MayForget>,
    /// The actor of automatic events in the audit trail.
    pub who: Arc<str>,
    /// The time of day.
    pub clock: Clock,
}

impl Plan {
    /// A ledger that keeps everything.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            keep_days: 0,
            may_forget: None,
            who: format!("tokenmeter {}", env!("CARGO_PKG_VERSION")).into(),
            clock: Arc::new(now_us),
        }
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

/// This machine's time, microseconds since 1970.
pub fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A ledger that is being written.
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
    let its = Arc::clone(&shared);
    let who = Arc::clone(&plan.who);
    let thread = std::thread::Builder::new().name("ledger".into()).spawn(move || keep_writing(&plan, &its));
    let thread = match thread {
        Ok(thread) => Some(thread),
        Err(error) => {
            let said = format!("the ledger's thread cannot be started: {error}");
            tracing::error!("{said}");
            shared.status().trouble = Some(said);
            None
        }
    };
    Ledger { who, shared, thread: Arc::new(Mutex::new(thread)) }
}

/// Writes until the end, also after a panic: else rows would wait for ever without notice.
fn keep_writing(plan: &Plan, shared: &Arc<Shared>) {
    loop {
        // What the writer shares are counts, whole after each statement; all else begins anew.
        let write = AssertUnwindSafe(|| Writer::new(plan.clone(), Arc::clone(shared)).run());
        if catch_unwind(write).is_ok() {
            return;
        }
        let said = "the ledger's writer broke, which is a mistake of ours: please report what was said on stderr; it \
                    begins again";
        tracing::error!("{said}");
        {
            let mut status = shared.status();
            status.fault(Fault::Other);
            (status.up, status.trouble) = (false, Some(said.to_owned()));
        }
        shared.queue.drop_held((plan.clock)());
        shared.queue.pause(AGAIN);
        if shared.queue.wanted().is_some() {
            shared.queue.abandon();
            return;
        }
    }
}

/// The pause before a writer that panicked begins again.
const AGAIN: Duration = Duration::from_secs(1);

impl Ledger {
    /// Says that so many exchanges are not known, because they were lost on the way here.
    pub fn lost(&self, at_us: i64, rows: u64) {
        self.shared.queue.lose_unseen(at_us, rows);
    }

    /// Enters an exchange. It is acknowledged when `rows_total` counts it.
    pub fn enter(&self, row: Row) {
        self.shared.queue.put(Item::Row(Box::new(bounded(row))));
    }

    /// Enters what an exchange used of the GPUs, best after the exchange itself.
    pub fn energy(&self, row: EnergyRow) {
        self.shared.queue.put(Item::Energy(Box::new(row.bounded())));
    }

    /// Adds GPU use without an exchange.
    pub fn device(&self, added: Vec<DeviceTotal>) {
        for line in added {
            self.shared.queue.put(Item::Device(Box::new(line)));
        }
    }

    /// Keeps in the audit trail what was done: `price_book`, and JSON that says which.
    pub fn act(&self, at_us: i64, what: &str, detail: String) {
        let who = Arc::clone(&self.who);
        let event = AuditEvent { at_us, what: what.into(), who, detail: detail.into() };
        self.shared.queue.put(Item::Audit(Box::new(event)));
    }

    /// Returns its state.
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

    /// Enters all that waits and ends; gives up after so long. Whether all was entered in time.
    pub fn shutdown(&self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let lost = |status: &Status| (status.lost_rows_total, status.lost_energies_total);
        let before = lost(&self.status());
        self.shared.queue.end(End::By(until));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return self.status().up };
        // A disk that hangs must not hold up the process: it is waited for by looking, not by joining.
        let hung = until + Duration::from_millis(200);
        while !thread.is_finished() {
            if Instant::now() >= hung {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let ended = thread.join().is_ok();
        let status = self.status();
        ended && status.queued_rows == 0 && lost(&status) == before
    }

    /// Stops where it is, as far as a thread can.
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
