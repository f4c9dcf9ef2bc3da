//! The budgets, connected: charges go in without waiting, and each second a thread of their own
//! looks at how they stand. What is passed is logged, counted and posted; who is over a limit that
//! is enforced is refused. The law: nothing here makes an exchange wait, and if this thread ends,
//! nobody is refused any more.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};

use budget::{Budgets, Notice, Observed, Rejection, Webhook, day_of, tightest};
use ledger::now_us;
use metrics::{BudgetReading, Metrics};

use crate::memory::Memory;
use crate::plan::BudgetsPlan;

/// What the budgets need of others.
pub(crate) struct Hooks {
    /// What the ledger has, by tenant and day, from this day on. Action once, before the first charge.
    pub(crate) restore: Box<dyn FnOnce(i32) -> Result<Sums, String> + Send>,
    /// Where it is kept what was told.
    pub(crate) memory: Memory,
    /// Refuses.
    pub(crate) refuse: Refuse,
}

/// Refuses these tenants from now on, and no others.
pub(crate) type Refuse = Box<dyn Fn(HashMap<Arc<str>, Rejection>) + Send>;

/// What was spent, by tenant and day: pico-units.
pub(crate) type Sums = Vec<(Arc<str>, i32, i128)>;

/// Takes charges. Cheap to clone; the clones are one.
#[derive(Clone, Default)]
pub(crate) struct Charges(Arc<Mutex<Waiting>>);

/// What came since the last look.
#[derive(Default)]
struct Waiting {
    charged: HashMap<(Arc<str>, i32), i128>,
    observed: Option<Vec<Observed>>,
}

impl Charges {
    /// Adds what an exchange that ended at `ended_us` costs. Never waits for the budgets.
    pub(crate) fn charge(&self, tenant: &Arc<str>, ended_us: i64, pico: i64) {
        let mut waiting = self.lock();
        let full = waiting.charged.len() >= WAITING;
        let mut key = (Arc::clone(tenant), day_of(ended_us));
        if full && !waiting.charged.contains_key(&key) {
            key.0 = budget::OTHER.into();
        }
        let sum = waiting.charged.entry(key).or_default();
        *sum = sum.saturating_add(pico.into());
    }

    /// Says what a central store has of all, in place of what was said before.
    pub(crate) fn observe(&self, all: Vec<Observed>) {
        self.lock().observed = Some(all);
    }

    fn take(&self) -> Waiting {
        mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that looks.
pub(crate) struct Running {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Begins to look. Waits for the ledger's sums for a while; after that it begins without them.
pub(crate) fn start(
    plan: BudgetsPlan,
    currency: &str,
    metrics: &Metrics,
    hooks: Hooks,
) -> io::Result<(Charges, Running)> {
    let charges = Charges::default();
    let webhook = plan.webhook.map(Webhook::start).transpose()?;
    let budgets = Budgets::new(plan.budgets, currency);
    let mut looks = Looks {
        budgets,
        charges: charges.clone(),
        metrics: metrics.clone(),
        webhook,
        memory: hooks.memory,
        refuse: hooks.refuse,
        owed: Vec::new(),
        unkept: false,
        refusing: false,
        shown_us: None,
        warned: false,
    };
    let (stop, stopped) = mpsc::sync_channel(0);
    let (ready, restored) = mpsc::sync_channel(0);
    let restore = hooks.restore;
    let thread = thread::Builder::new().name("budgets".to_owned()).spawn(move || {
        looks.restore(restore, &ready, now_us());
        if catch_unwind(AssertUnwindSafe(|| looks.until(&stopped))).is_err() {
            tracing::error!("the budgets' thread has failed: nobody is refused any more; please report this");
            (looks.refuse)(HashMap::new());
        }
        looks.end(now_us());
    })?;
    if restored.recv_timeout(RESTORE).is_err() {
        tracing::warn!(
            "the ledger did not say in time what was spent: what was spent today before the start is not known"
        );
    }
    Ok((charges, Running { stop: Some(stop), thread: Some(thread) }))
}

impl Running {
    /// A last look at what was charged, then the end; what waits to be posted has a few seconds.
    pub(crate) fn shutdown(mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Looks {
    budgets: Budgets,
    charges: Charges,
    metrics: Metrics,
    webhook: Option<Webhook>,
    memory: Memory,
    refuse: Refuse,
    /// What the webhook's receiver had not taken at the last look.
    owed: Vec<Notice>,
    /// Whether something counts as told, without a notice of ours, that is not kept yet.
    unkept: bool,
    /// Whether anybody was refused at the last look.
    refusing: bool,
    /// When the readings were shown last.
    shown_us: Option<i64>,
    /// Whether it was said that there are too many tenants.
    warned: bool,
}

impl Looks {
    /// `ready` takes a word only as long as somebody waits for it: sums that come later may have
    /// in them, of the days since the start, what was charged since.
    fn restore(
        &mut self,
        restore: Box<dyn FnOnce(i32) -> Result<Sums, String> + Send>,
        ready: &SyncSender<()>,
        now_us: i64,
    ) {
        let sums = restore(self.budgets.since(now_us));
        let told = self.memory.kept();
        let late = ready.send(()).is_err();
        match sums {
            Ok(mut sums) => {
                if late {
                    sums.retain(|(_, day, _)| *day < day_of(now_us));
                }
                self.unkept = told.is_none();
                self.budgets.restore(now_us, &sums, told.as_ref());
            }
            Err(trouble) => {
                tracing::warn!("budgets begin at nothing: the ledger cannot say what was spent: {trouble}");
                self.budgets.restore(now_us, &[], Some(&told.unwrap_or_default()));
            }
        }
    }

    fn until(&mut self, stopped: &Receiver<()>) {
        // At once: who has spent a budget is refused after a restart too.
        self.look(now_us());
        while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            self.look(now_us());
        }
        self.look(now_us());
    }

    fn look(&mut self, now_us: i64) {
        let waiting = self.charges.take();
        let mut news = !waiting.charged.is_empty() || waiting.observed.is_some();
        for ((tenant, day), pico) in waiting.charged {
            self.budgets.add(&tenant, day, pico);
        }
        if let Some(all) = waiting.observed {
            self.unkept |= self.budgets.observe(now_us, &all);
        }
        let notices = self.budgets.tick(now_us);
        for notice in &notices {
            let (budget, threshold) = (&*notice.budget, notice.threshold.name());
            tracing::warn!(budget, threshold, "{}", notice.sentence());
            self.metrics.budget_alert(&notice.label(), notice.period.name(), threshold);
            if let Some(webhook) = &self.webhook {
                webhook.post(notice);
            }
            news = true;
        }
        let owed = self.webhook.as_ref().map(Webhook::undelivered).unwrap_or_default();
        if mem::take(&mut self.unkept) || !notices.is_empty() || owed != self.owed {
            self.memory.keep(&self.budgets.sent_alerts(now_us).without(&owed));
            self.owed = owed;
        }
        let refused = self.budgets.rejections(now_us);
        if self.refusing || !refused.is_empty() {
            self.refusing = !refused.is_empty();
            (self.refuse)(refused);
        }
        if news || self.shown_us.is_none_or(|shown| (now_us - shown).abs() >= SHOW_US) {
            self.shown_us = Some(now_us);
            self.show(now_us);
        }
        if let Some(webhook) = &self.webhook {
            let sent = webhook.counts();
            self.metrics.budget_webhooks([sent.sent, sent.failed, sent.dropped]);
        }
        if !self.warned && self.budgets.untracked() > 0 {
            self.warned = true;
            tracing::warn!(
                "more than {} tenants have spent: budgets of their own are kept for those only",
                budget::TRACKED_MAX_TENANTS
            );
        }
    }

    fn show(&self, now_us: i64) {
        let readings = tightest(self.budgets.readings(now_us)).into_iter().map(|reading| BudgetReading {
            tenant: reading.tenant,
            period: reading.period.name().into(),
            soft_pico: reading.soft,
            hard_pico: reading.hard,
            used_pico: reading.used,
            forecast_pico: reading.forecast,
        });
        self.metrics.budgets(readings.collect());
    }

    fn end(&mut self, now_us: i64) {
        if let Some(webhook) = self.webhook.take() {
            let (sent, owed) = webhook.shutdown(POSTING);
            self.metrics.budget_webhooks([sent.sent, sent.failed, sent.dropped]);
            if owed != self.owed {
                self.memory.keep(&self.budgets.sent_alerts(now_us).without(&owed));
            }
        }
        self.memory.end();
    }
}

/// How often budgets are looked at: what is spent in between is over the limit.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often gauges are brought up to date if nothing is spent: forecasts change by themselves.
const SHOW_US: i64 = 15_000_000;

/// How long a start waits for the ledger's sums; from rollups they take milliseconds.
const RESTORE: Duration = Duration::from_secs(5);

/// How long an end waits for what is to be posted.
const POSTING: Duration = Duration::from_secs(5);

/// Pairs of tenant and day that may wait for the next look; more are one tenant.
const WAITING: usize = 20_000;

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
