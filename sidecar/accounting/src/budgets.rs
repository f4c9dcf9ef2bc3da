//! Runs the budgets: charges are queued, and once a second a thread evaluates the budgets. A crossed
//! threshold is logged, counted and posted; a tenant over an enforced limit is rejected. The law: no
//! exchange waits for this thread, and if it fails, no tenant is rejected.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};

use budget::{Budget, Budgets, Calendar, Notice, Observed, Rejection, Webhook, day_of, tightest};
use ledger::now_us;
use metrics::{BudgetReading, Metrics};
use relay::Terms;

use crate::budget_state_file::BudgetStateFile;

/// The budgets and their alerts.
#[derive(Clone, Debug, Default)]
pub struct BudgetsPlan {
    /// The budgets, in file order.
    pub budgets: Vec<Budget>,
    /// The terms of each budget, in the same order, for requests that cannot be metered in full.
    pub terms: Vec<Terms>,
    /// The webhook that receives alerts.
    pub webhook: Option<budget::Plan>,
}

/// The connections of the budgets to other parts.
pub(crate) struct Hooks {
    /// Reads the ledger's sums by tenant and day, from a day on. Called once, before the first charge.
    pub(crate) restore: Box<dyn FnOnce(i32) -> Result<Sums, String> + Send>,
    /// The calendar of the ledger.
    pub(crate) calendar: Calendar,
    /// Persists which alerts were sent.
    pub(crate) state_file: BudgetStateFile,
    /// Rejects tenants.
    pub(crate) refuse: Refuse,
}

/// Rejects these tenants from now on, and no others.
pub(crate) type Refuse = Box<dyn Fn(HashMap<Arc<str>, Rejection>) + Send>;

/// Spend by tenant and day, in pico-units.
pub(crate) type Sums = Vec<(Arc<str>, i32, i128)>;

/// The queue of charges. A clone shares the queue.
#[derive(Clone, Default)]
pub(crate) struct Charges {
    pending: Arc<Mutex<Pending>>,
    calendar: Calendar,
    /// The enforced budgets.
    enforced: Arc<[Budget]>,
}

/// Charges and observations since the last evaluation.
#[derive(Default)]
struct Pending {
    charged: HashMap<(Arc<str>, i32), i128>,
    observed: Option<Vec<Observed>>,
}

impl Charges {
    /// Adds the cost of an exchange that ended at `ended_us`. Never waits for the budgets.
    pub(crate) fn charge(&self, tenant: &Arc<str>, ended_us: i64, pico: i64) {
        let mut pending = self.lock();
        let full = pending.charged.len() >= QUEUE_MAX_ITEMS;
        let mut key = (Arc::clone(tenant), day_of(&self.calendar, ended_us));
        if full && !pending.charged.contains_key(&key) {
            key.0 = budget::OTHER.into();
        }
        let sum = pending.charged.entry(key).or_default();
        *sum = sum.saturating_add(pico.into());
    }

    /// Returns whether an enforced budget covers a tenant.
    pub(crate) fn is_enforced(&self, tenant: &str) -> bool {
        self.enforced.iter().any(|budget| budget.covers(tenant))
    }

    /// Replaces the observation of a central store.
    pub(crate) fn observe(&self, all: Vec<Observed>) {
        self.lock().observed = Some(all);
    }

    fn take(&self) -> Pending {
        mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running thread.
pub(crate) struct Running {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the thread. Waits up to [`RESTORE_TIMEOUT`] for the ledger's sums, then continues without them.
pub(crate) fn start(
    plan: BudgetsPlan,
    currency: &str,
    metrics: &Metrics,
    hooks: Hooks,
) -> io::Result<(Charges, Running)> {
    let enforced = plan.budgets.iter().filter(|budget| budget.enforce).cloned().collect();
    let charges = Charges { pending: Arc::default(), calendar: hooks.calendar.clone(), enforced };
    let webhook = plan.webhook.map(Webhook::start).transpose()?;
    let budgets = Budgets::new(plan.budgets, currency).by_calendar(hooks.calendar);
    let mut thread_state = BudgetThread {
        budgets,
        charges: charges.clone(),
        metrics: metrics.clone(),
        webhook,
        state_file: hooks.state_file,
        refuse: hooks.refuse,
        undelivered: Vec::new(),
        is_unsaved: false,
        has_rejected: false,
        published_us: None,
        warned: false,
    };
    let (stop, stopped) = mpsc::sync_channel(0);
    let (ready, restored) = mpsc::sync_channel(0);
    let restore = hooks.restore;
    let thread = thread::Builder::new().name("budgets".to_owned()).spawn(move || {
        thread_state.restore(restore, &ready, now_us());
        if catch_unwind(AssertUnwindSafe(|| thread_state.until(&stopped))).is_err() {
            tracing::error!(
                "the budgets' thread has failed, so no tenant is rejected any more; please report this"
            );
            (thread_state.refuse)(HashMap::new());
        }
        thread_state.end(now_us());
    })?;
    if restored.recv_timeout(RESTORE_TIMEOUT).is_err() {
        tracing::warn!(
            "the ledger did not return its sums in time: budgets lack today's spend before the start"
        );
    }
    Ok((charges, Running { stop: Some(stop), thread: Some(thread) }))
}

impl Running {
    /// Evaluates the last charges and ends the thread; queued posts have [`POST_TIMEOUT`].
    pub(crate) fn shutdown(mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic.
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct BudgetThread {
    budgets: Budgets,
    charges: Charges,
    metrics: Metrics,
    webhook: Option<Webhook>,
    state_file: BudgetStateFile,
    refuse: Refuse,
    /// Alerts that the webhook had not delivered at the last evaluation.
    undelivered: Vec<Notice>,
    /// True if an alert counts as sent without an alert of this process, and is not persisted yet.
    is_unsaved: bool,
    /// True if a tenant was rejected at the last evaluation.
    has_rejected: bool,
    /// The time of the last update of the gauges.
    published_us: Option<i64>,
    /// True if the warning of too many tenants was logged.
    warned: bool,
}

impl BudgetThread {
    /// Restores the sums. `ready` has a receiver only while the start waits: later sums may include charges of
    /// this process on the days since the start, so those days are dropped.
    fn restore(
        &mut self,
        restore: Box<dyn FnOnce(i32) -> Result<Sums, String> + Send>,
        ready: &SyncSender<()>,
        now_us: i64,
    ) {
        let sums = restore(self.budgets.since(now_us));
        let told = self.state_file.kept();
        let late = ready.send(()).is_err();
        match sums {
            Ok(mut sums) => {
                if late {
                    sums.retain(|(_, day, _)| *day < day_of(&self.charges.calendar, now_us));
                }
                self.is_unsaved = told.is_none();
                self.budgets.restore(now_us, &sums, told.as_ref());
            }
            Err(trouble) => {
                tracing::warn!("budgets start at zero, because the ledger's sums cannot be read: {trouble}");
                self.budgets.restore(now_us, &[], Some(&told.unwrap_or_default()));
            }
        }
    }

    fn until(&mut self, stopped: &Receiver<()>) {
        // At once: a spent budget rejects its tenant after a restart, too.
        self.evaluate(now_us());
        while stopped.recv_timeout(EVALUATION_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            self.evaluate(now_us());
        }
        self.evaluate(now_us());
    }

    fn evaluate(&mut self, now_us: i64) {
        let pending = self.charges.take();
        let mut news = !pending.charged.is_empty() || pending.observed.is_some();
        for ((tenant, day), pico) in pending.charged {
            self.budgets.add(&tenant, day, pico);
        }
        if let Some(all) = pending.observed {
            self.is_unsaved |= self.budgets.observe(now_us, &all);
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
        let undelivered = self.webhook.as_ref().map(Webhook::undelivered).unwrap_or_default();
        if mem::take(&mut self.is_unsaved) || !notices.is_empty() || undelivered != self.undelivered {
            self.state_file.keep(&self.budgets.sent_alerts(now_us).without(&undelivered));
            self.undelivered = undelivered;
        }
        let refused = self.budgets.rejections(now_us);
        if self.has_rejected || !refused.is_empty() {
            self.has_rejected = !refused.is_empty();
            (self.refuse)(refused);
        }
        if news || self.published_us.is_none_or(|shown| (now_us - shown).abs() >= GAUGE_INTERVAL_US) {
            self.published_us = Some(now_us);
            self.publish(now_us);
        }
        if let Some(webhook) = &self.webhook {
            let sent = webhook.counts();
            self.metrics.budget_webhooks([sent.sent, sent.failed, sent.dropped]);
        }
        if !self.warned && self.budgets.untracked() > 0 {
            self.warned = true;
            tracing::warn!(
                "more than {} tenants have spent: the others share one budget state",
                budget::TRACKED_MAX_TENANTS
            );
        }
    }

    fn publish(&self, now_us: i64) {
        let states = tightest(self.budgets.states(now_us)).into_iter().map(|state| BudgetReading {
            tenant: state.tenant,
            period: state.period.name().into(),
            soft_pico: state.soft,
            hard_pico: state.hard,
            used_pico: state.used,
            forecast_pico: state.forecast,
        });
        self.metrics.budgets(states.collect());
    }

    fn end(&mut self, now_us: i64) {
        if let Some(webhook) = self.webhook.take() {
            let (sent, undelivered) = webhook.shutdown(POST_TIMEOUT);
            self.metrics.budget_webhooks([sent.sent, sent.failed, sent.dropped]);
            if undelivered != self.undelivered {
                self.state_file.keep(&self.budgets.sent_alerts(now_us).without(&undelivered));
            }
        }
        self.state_file.end();
    }
}

/// The interval of evaluations. Spend within an interval can exceed a limit.
const EVALUATION_INTERVAL: Duration = Duration::from_secs(1);

/// The interval of gauge updates without spend: forecasts change with time.
const GAUGE_INTERVAL_US: i64 = 15_000_000;

/// The longest wait of a start for the ledger's sums; reading daily totals takes milliseconds.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest wait of an end for queued posts.
const POST_TIMEOUT: Duration = Duration::from_secs(5);

/// Queued pairs of tenant and day; further tenants are summed as one.
const QUEUE_MAX_ITEMS: usize = 20_000;

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
