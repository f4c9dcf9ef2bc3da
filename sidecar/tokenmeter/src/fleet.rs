//! What the whole fleet has spent, asked of the central store for the budgets. The law: nobody waits for
//! it, and a store that is slow or gone leaves the budgets with what it said before.

use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use budget::{Budget, Budgets, Observed};
use ledger::feed::Feed;
use price::Currency;
use ship::{Address, Central};

/// Told what the store has, each time it was asked.
pub(crate) type Hear = Box<dyn Fn(Vec<Observed>) + Send>;

/// The thread that asks. Dropped, it ends after the question it is at; nobody waits.
pub(crate) struct Running {
    _stop: Sender<()>,
}

/// Begins to ask.
pub(crate) fn start(
    ship: &ship::Plan,
    budgets: Vec<Budget>,
    currency: Currency,
    hear: Hear,
) -> io::Result<Running> {
    let (stop, stopped) = mpsc::channel();
    let mut fleet = Fleet::new(ship, budgets, currency);
    thread::Builder::new().name("fleet".to_owned()).spawn(move || fleet.until(&stopped, &hear))?;
    Ok(Running { _stop: stop })
}

/// Who asks.
struct Fleet {
    address: Address,
    feed: Feed,
    /// For the day from which on sums are of use.
    budgets: Budgets,
    currency: Currency,
    /// How often the store is asked, at most.
    every: Duration,
    /// The ledger files that were ours since the start, damaged ones that were moved aside among them:
    /// what is in those was charged by us too.
    ours: BTreeSet<[u8; 16]>,
    trouble: Option<String>,
}

impl Fleet {
    fn new(ship: &ship::Plan, budgets: Vec<Budget>, currency: Currency) -> Self {
        Self {
            address: ship.address.clone(),
            feed: Feed::of(&ship.ledger),
            budgets: Budgets::new(budgets, currency.code()),
            currency,
            every: EVERY,
            ours: BTreeSet::new(),
            trouble: None,
        }
    }

    fn until(&mut self, stopped: &Receiver<()>, hear: &Hear) {
        loop {
            let began = Instant::now();
            // What is kept between two questions is the ids of our files, each put in at once.
            let asked = catch_unwind(AssertUnwindSafe(|| self.ask(ledger::now_us()).map(hear)));
            match asked.unwrap_or_else(|_| Err(DEFECT.to_owned())) {
                Ok(()) => {
                    if self.trouble.take().is_some() {
                        tracing::info!("budgets see what the others have spent again");
                    }
                }
                Err(trouble) => {
                    if self.trouble.as_ref() != Some(&trouble) {
                        tracing::warn!(
                            "the central store does not say what others have spent: {trouble}; budgets go by what it \
                             said before, and by our own spend"
                        );
                    }
                    self.trouble = Some(trouble);
                }
            }
            let wait = self.every.max(began.elapsed() * SHARE);
            if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// What the store has by tenant and day.
    fn ask(&mut self, now_us: i64) -> Result<Vec<Observed>, String> {
        let central = Central::open(&self.address).map_err(|trouble| trouble.to_string())?;
        let (since, currency) = (self.budgets.since(now_us), self.currency);
        let ours = || Ok(self.instances()?);
        let spent = central.spent(since, currency.code(), ours).map_err(|trouble| trouble.to_string())?;
        let observed = spent.into_iter().map(|one| Observed {
            tenant: one.tenant,
            day: one.day,
            ours: one.ours,
            all: one.all,
        });
        Ok(observed.collect())
    }

    /// The ids of our ledger's files. One that cannot be read is trouble: taken for somebody else's, what
    /// is in it would count twice.
    fn instances(&mut self) -> Result<Vec<[u8; 16]>, String> {
        for _ in 0..TRIES {
            let files = self.feed.files().map_err(|failure| failure.to_string())?;
            let mut moved = false;
            for path in files {
                match self.feed.open(&path) {
                    Ok(opened) => {
                        self.ours.insert(opened.origin().instance);
                    }
                    // A month that ends is given another name.
                    Err(_) if !path.exists() => moved = true,
                    Err(failure) => return Err(failure.to_string()),
                }
            }
            if !moved {
                return Ok(self.ours.iter().copied().collect());
            }
        }
        Err("the ledger's files are moved about".to_owned())
    }
}

/// What a panic is to others; what it said is on stderr.
const DEFECT: &str = "asking broke off by a defect of tokenmeter (a panic, which is on stderr), and begins anew by \
                      itself; please report this";

/// How often the store is asked, at most.
const EVERY: Duration = Duration::from_secs(60);

/// It is asked for no more than one part in so many of the time, however long it takes to answer.
const SHARE: u32 = 50;

/// How often files that move are looked for again.
const TRIES: u32 = 5;

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
