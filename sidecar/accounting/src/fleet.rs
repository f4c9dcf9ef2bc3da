//! Queries the central store for the spend of the whole fleet, for the budgets. The law: no other part waits for the
//! query, and while the store is slow or unreachable, the budgets use its last result.

use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use budget::{Budget, Budgets, Observed};
use ledger::export::ExportReader;
use price::Currency;
use ship::{Address, Central};

/// Receives the result of each query.
pub(crate) type OnObserved = Box<dyn Fn(Vec<Observed>) + Send>;

/// The query thread. After a drop, it ends with its current query; the drop does not wait.
pub(crate) struct Running {
    _stop: Sender<()>,
}

/// Starts the thread.
pub(crate) fn start(
    ship: &ship::Plan,
    budgets: Vec<Budget>,
    currency: Currency,
    on_observed: OnObserved,
) -> io::Result<Running> {
    let (stop, stopped) = mpsc::channel();
    let mut fleet = Fleet::new(ship, budgets, currency);
    thread::Builder::new().name("fleet".to_owned()).spawn(move || fleet.until(&stopped, &on_observed))?;
    Ok(Running { _stop: stop })
}

/// The state of the thread.
struct Fleet {
    address: Address,
    feed: ExportReader,
    /// Determines the first day whose sums matter.
    budgets: Budgets,
    currency: Currency,
    /// The minimum interval of queries.
    every: Duration,
    /// The ids of this process' ledger files since the start, including quarantined ones, whose charges are its own,
    /// too.
    own_files: BTreeSet<[u8; 16]>,
    trouble: Option<String>,
}

impl Fleet {
    fn new(ship: &ship::Plan, budgets: Vec<Budget>, currency: Currency) -> Self {
        Self {
            address: ship.address.clone(),
            feed: ExportReader::of(&ship.ledger),
            budgets: Budgets::new(budgets, currency.code()),
            currency,
            every: MIN_INTERVAL,
            own_files: BTreeSet::new(),
            trouble: None,
        }
    }

    fn until(&mut self, stopped: &Receiver<()>, on_observed: &OnObserved) {
        loop {
            let began = Instant::now();
            // A panic leaves a valid state: only the ids of files persist between queries, each inserted at once.
            let result = catch_unwind(AssertUnwindSafe(|| self.query(ledger::now_us()).map(on_observed)));
            match result.unwrap_or_else(|_| Err(DEFECT.to_owned())) {
                Ok(()) => {
                    if self.trouble.take().is_some() {
                        tracing::info!("budgets include the spend of other processes again");
                    }
                }
                Err(trouble) => {
                    if self.trouble.as_ref() != Some(&trouble) {
                        tracing::warn!(
                            "the central store cannot be queried for the spend of other processes: {trouble}; budgets \
                             use its last result and this process' own spend"
                        );
                    }
                    self.trouble = Some(trouble);
                }
            }
            let wait = self.every.max(began.elapsed() * INTERVAL_PER_QUERY);
            if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// Returns the store's sums by tenant and day.
    fn query(&mut self, now_us: i64) -> Result<Vec<Observed>, String> {
        let (address, since, currency) = (self.address.clone(), self.budgets.since(now_us), self.currency);
        let ours = || Ok(self.instances()?);
        let spent =
            Central::spent(&address, since, currency.code(), ours).map_err(|trouble| trouble.to_string())?;
        let observed = spent.into_iter().map(|one| Observed {
            tenant: one.tenant,
            day: one.day,
            ours: one.own,
            all: one.all,
        });
        Ok(observed.collect())
    }

    /// Returns the ids of this process' ledger files. An unreadable file is an error: its rows would count as those of
    /// another process, and so twice.
    fn instances(&mut self) -> Result<Vec<[u8; 16]>, String> {
        for _ in 0..LIST_ATTEMPTS {
            let files = self.feed.files().map_err(|failure| failure.to_string())?;
            let mut moved = false;
            for path in files {
                match self.feed.open(&path) {
                    Ok(opened) => {
                        self.own_files.insert(opened.origin().instance);
                    }
                    // The file of a month that ends is renamed.
                    Err(_) if !path.exists() => moved = true,
                    Err(failure) => return Err(failure.to_string()),
                }
            }
            if !moved {
                return Ok(self.own_files.iter().copied().collect());
            }
        }
        Err("the ledger's files are being renamed".to_owned())
    }
}

/// The error of a panic, whose message is on stderr.
const DEFECT: &str = "the query failed by a defect of tokenmeter (a panic, printed to stderr) and is repeated; please \
                      report this";

/// The minimum interval of queries.
const MIN_INTERVAL: Duration = Duration::from_secs(60);

/// Queries take at most one part in this many of the time.
const INTERVAL_PER_QUERY: u32 = 50;

/// Attempts at listing files while they are renamed.
const LIST_ATTEMPTS: u32 = 5;

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
