//! All budgets and the spend under them: charges and times go in; notices, states
//! and rejections come out. No clock and no thread. The output follows from the daily
//! sums and the alerts sent, so neither the order of charges nor a clock
//! change matters.

use std::collections::HashMap;
use std::sync::Arc;

use calendar::Calendar;
use text::money;

use crate::alert_state::{AlertState, Crossed, Evaluation, SentAlert};
use crate::budget::{Budget, Threshold};
use crate::fleet::Observed;
use crate::notice::{Notice, shared_label};
use crate::period::{Period, ROLLING_DAYS, Span, day_of, time};
use crate::sent_alerts::{SentAlerts, SentEntry, limits_text};
use crate::spend::Spend;
use crate::state::{BudgetState, Rejection};

/// All budgets, and the spend under them.
#[derive(Debug)]
pub struct Budgets {
    budgets: Vec<Budget>,
    currency: Arc<str>,
    calendar: Calendar,
    tenants: HashMap<Arc<str>, Tenant>,
    /// By budget: the spend and alerts of the tenants that share its limit.
    shared_states: Vec<Option<(Spend, AlertState)>>,
    untracked: u64,
    observed: bool,
    /// The day of the last tick, and true if idle tenants were evicted on it.
    today: i32,
    evicted_today: bool,
}

/// A tenant that a budget covers.
#[derive(Debug, Default)]
struct Tenant {
    spend: Spend,
    /// By budget index: the alerts under each budget with a limit per tenant.
    alert_states: Vec<(usize, AlertState)>,
    /// The indices of its budgets with a shared limit.
    shared: Vec<usize>,
}

impl Budgets {
    /// Returns the budgets with the days of another calendar.
    #[must_use]
    pub fn by_calendar(self, calendar: Calendar) -> Self {
        Self { calendar, ..self }
    }

    /// Returns budgets in a currency, without spend, with the days of UTC.
    pub fn new(budgets: Vec<Budget>, currency: &str) -> Self {
        let shared_states = budgets.iter().map(|budget| budget.shared.then(Default::default)).collect();
        let named: Vec<Arc<str>> = budgets.iter().flat_map(Budget::named).map(Into::into).collect();
        let mut all = Self {
            budgets,
            currency: currency.into(),
            calendar: Calendar::default(),
            tenants: HashMap::new(),
            shared_states,
            untracked: 0,
            observed: false,
            today: 0,
            evicted_today: false,
        };
        // Tenants that a budget names have a state from the start, and no other tenant takes their place.
        for name in named {
            if let Some(tenant) = all.covered(&name) {
                all.tenants.insert(name, tenant);
            }
        }
        all
    }

    /// Returns the first day whose sums are needed: the first day of the earliest previous period, or
    /// thirty days before the last thirty.
    pub fn since(&self, now_us: i64) -> i32 {
        let today = day_of(&self.calendar, now_us);
        let starts = self.budgets.iter().map(|budget| {
            let period = budget.period;
            period.before(today).unwrap_or_else(|| period.span(period.span(today).start)).start
        });
        starts.min().unwrap_or(today).max(0)
    }

    /// Adds the sums of this process's own ledger, by tenant and day, before the first charge. Without
    /// `sent`, every threshold that these sums cross counts as sent.
    pub fn restore(&mut self, now_us: i64, sums: &[(Arc<str>, i32, i128)], sent: Option<&SentAlerts>) {
        for (tenant, day, pico) in sums {
            self.add(tenant, *day, *pico);
        }
        match sent {
            Some(sent) => self.restore_sent(sent),
            None => self.mark_all_sent(now_us),
        }
    }

    /// Adds the cost of an exchange that ended at `at_us`; a correction is negative.
    pub fn charge(&mut self, tenant: &str, at_us: i64, pico: i64) {
        self.add(tenant, day_of(&self.calendar, at_us), pico.into());
    }

    /// Adds the sum of a day's exchanges.
    pub fn add(&mut self, tenant: &str, day: i32, pico: i128) {
        self.apply(tenant, &mut |spend| spend.add(day, pico));
    }

    /// Replaces the totals of a central store. Thresholds that the first totals cross count as sent, because other
    /// processes sent them. Returns true for the first totals, which may have changed [`Budgets::sent_alerts`].
    pub fn observe(&mut self, now_us: i64, all: &[Observed]) -> bool {
        self.tenants.values_mut().for_each(|tenant| tenant.spend.forget_observed());
        self.shared_states.iter_mut().flatten().for_each(|(spend, _)| spend.forget_observed());
        for one in all {
            let others = one.all.saturating_sub(one.ours);
            self.apply(&one.tenant, &mut |spend| spend.observe(one.day, one.ours, others));
        }
        let is_first = !std::mem::replace(&mut self.observed, true);
        if is_first {
            self.mark_all_sent(now_us);
        }
        is_first
    }

    /// Returns the notices that are due: each threshold once for each budget, tenant and period.
    pub fn tick(&mut self, now_us: i64) -> Vec<Notice> {
        let today = day_of(&self.calendar, now_us);
        if self.today != today {
            (self.today, self.evicted_today) = (today, false);
        }
        let currency = Arc::clone(&self.currency);
        let mut notices = Vec::new();
        self.evaluate_all(now_us, |evaluation, tenant, state| {
            state
                .evaluate(evaluation, |crossed| notices.push(notice(evaluation, tenant, &currency, crossed)));
        });
        notices.sort_unstable_by(|a, b| {
            (&a.budget, &a.tenant, a.span.start, a.threshold).cmp(&(
                &b.budget,
                &b.tenant,
                b.span.start,
                b.threshold,
            ))
        });
        notices
    }

    /// Returns the tenants to reject now. A tenant that is not tracked is never rejected.
    pub fn rejections(&self, now_us: i64) -> HashMap<Arc<str>, Rejection> {
        let mut rejections: HashMap<Arc<str>, Rejection> = HashMap::new();
        if !self.budgets.iter().any(|budget| budget.enforce) {
            return rejections;
        }
        let mut reject = |tenant: &Arc<str>, reason: Rejection| match rejections.get(tenant) {
            Some(other) if other.retry_after_s >= reason.retry_after_s => {}
            _ => {
                rejections.insert(Arc::clone(tenant), reason);
            }
        };
        let spans = Spans::at(&self.calendar, now_us);
        let shared_states: Vec<_> = (self.shared_states.iter().enumerate())
            .map(|(at, shared_state)| {
                self.rejection(&spans.evaluation(&self.budgets[at], &shared_state.as_ref()?.0))
            })
            .collect();
        for (name, tenant) in &self.tenants {
            for (at, _) in &tenant.alert_states {
                if let Some(reason) = self.rejection(&spans.evaluation(&self.budgets[*at], &tenant.spend)) {
                    reject(name, reason);
                }
            }
            for reason in tenant.shared.iter().filter_map(|at| shared_states[*at].as_ref()) {
                reject(name, reason.clone());
            }
        }
        rejections
    }

    /// Returns the state of every budget, ordered by tenant and then by budget.
    pub fn states(&self, now_us: i64) -> Vec<BudgetState> {
        let spans = Spans::at(&self.calendar, now_us);
        let mut tenants: Vec<_> = self.tenants.iter().collect();
        tenants.sort_unstable_by_key(|(name, _)| *name);
        let own = tenants.into_iter().flat_map(|(name, tenant)| {
            tenant.alert_states.iter().map(move |(at, _)| (Arc::clone(name), *at, &tenant.spend))
        });
        let shared_states = self.shared_states.iter().enumerate();
        let shared_states = shared_states.filter_map(|(at, shared_state)| {
            Some((shared_label(&self.budgets[at].name), at, &shared_state.as_ref()?.0))
        });
        own.chain(shared_states)
            .map(|(tenant, at, spend)| {
                let evaluation = spans.evaluation(&self.budgets[at], spend);
                BudgetState {
                    budget: Arc::clone(&evaluation.budget.name),
                    tenant,
                    period: evaluation.budget.period,
                    soft: evaluation.budget.soft,
                    hard: evaluation.budget.hard,
                    used: evaluation.used(),
                    forecast: evaluation.forecast(),
                    refused: is_rejecting(&evaluation),
                }
            })
            .collect()
    }

    /// Returns the alerts sent for periods that can still send one, for the next process.
    pub fn sent_alerts(&self, now_us: i64) -> SentAlerts {
        let spans = Spans::at(&self.calendar, now_us);
        let mut entries = Vec::new();
        let mut note = |at: usize, tenant: Option<&Arc<str>>, state: &AlertState| {
            let budget = &self.budgets[at];
            // Of a rolling period only the last time matters, however long ago.
            let since = spans.spans[budget.period as usize].1.map_or(0, |before| before.start);
            entries.extend(state.sent().iter().filter(|alert| alert.at >= since).map(|alert| SentEntry {
                budget: Arc::clone(&budget.name),
                limits: limits_text(budget),
                tenant: tenant.cloned(),
                at: alert.at,
                bits: alert.bits,
            }));
        };
        for (name, tenant) in &self.tenants {
            tenant.alert_states.iter().for_each(|(at, state)| note(*at, Some(name), state));
        }
        for (at, shared_state) in self.shared_states.iter().enumerate() {
            if let Some((_, state)) = shared_state {
                note(at, None, state);
            }
        }
        entries.sort_unstable_by(|a, b| (&a.budget, &a.tenant, a.at).cmp(&(&b.budget, &b.tenant, b.at)));
        SentAlerts(entries)
    }

    /// Returns the number of charges to tenants that are not tracked: only shared limits include them.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    fn restore_sent(&mut self, sent: &SentAlerts) {
        for entry in &sent.0 {
            let Some(at) = self.budgets.iter().position(|budget| budget.name == entry.budget) else {
                continue;
            };
            if limits_text(&self.budgets[at]) != entry.limits {
                continue;
            }
            let state = match &entry.tenant {
                None => self.shared_states[at].as_mut().map(|(_, state)| state),
                Some(name) if self.track(name) => self.tenants.get_mut(name).and_then(|tenant| {
                    tenant.alert_states.iter_mut().find(|(of, _)| *of == at).map(|(_, state)| state)
                }),
                Some(_) => None,
            };
            if let Some(state) = state {
                state.restore_sent(SentAlert { at: entry.at, bits: entry.bits });
            }
        }
    }

    fn mark_all_sent(&mut self, now_us: i64) {
        self.evaluate_all(now_us, |evaluation, _, state| state.mark_all_sent(evaluation));
    }

    /// Applies a change to the sums of a tenant and of every shared limit that covers it.
    fn apply(&mut self, name: &str, change: &mut dyn FnMut(&mut Spend)) {
        if self.track(name) {
            let tenant = self.tenants.get_mut(name).expect("the tenant is tracked");
            change(&mut tenant.spend);
            for at in &tenant.shared {
                if let Some((spend, _)) = &mut self.shared_states[*at] {
                    change(spend);
                }
            }
            return;
        }
        let mut covered = false;
        for (budget, shared_state) in self.budgets.iter().zip(&mut self.shared_states) {
            if !budget.covers(name) {
                continue;
            }
            covered = true;
            if let Some((spend, _)) = shared_state {
                change(spend);
            }
        }
        self.untracked += u64::from(covered);
    }

    /// Tracks the tenant if a budget covers it and the limit of tenants is not reached; returns true if it is tracked.
    fn track(&mut self, name: &str) -> bool {
        if self.tenants.contains_key(name) {
            return true;
        }
        let Some(tenant) = self.covered(name) else { return false };
        if self.tenants.len() >= TRACKED_MAX_TENANTS && !self.evict_idle() {
            return false;
        }
        self.tenants.insert(name.into(), tenant);
        true
    }

    fn covered(&self, name: &str) -> Option<Tenant> {
        let mut tenant = Tenant::default();
        for (at, budget) in self.budgets.iter().enumerate().filter(|(_, budget)| budget.covers(name)) {
            match budget.shared {
                true => tenant.shared.push(at),
                false => tenant.alert_states.push((at, AlertState::default())),
            }
        }
        let some = !tenant.alert_states.is_empty() || !tenant.shared.is_empty();
        (some && name != OTHER).then_some(tenant)
    }

    /// Evicts tenants without spend for two months. At most once a day, because it visits every tenant.
    fn evict_idle(&mut self) -> bool {
        if !std::mem::replace(&mut self.evicted_today, true) {
            let since = self.today - IDLE_DAYS;
            let named: Vec<&str> = self.budgets.iter().flat_map(Budget::named).collect();
            self.tenants.retain(|name, tenant| {
                tenant.spend.last().is_some_and(|last| last >= since) || named.contains(&&**name)
            });
        }
        self.tenants.len() < TRACKED_MAX_TENANTS
    }

    /// Evaluates every budget of every tenant, and every shared limit.
    fn evaluate_all(
        &mut self,
        now_us: i64,
        mut evaluate: impl FnMut(&Evaluation<'_>, Option<&Arc<str>>, &mut AlertState),
    ) {
        let spans = Spans::at(&self.calendar, now_us);
        for (name, tenant) in &mut self.tenants {
            for (at, state) in &mut tenant.alert_states {
                evaluate(&spans.evaluation(&self.budgets[*at], &tenant.spend), Some(name), state);
            }
        }
        for (budget, shared_state) in self.budgets.iter().zip(&mut self.shared_states) {
            if let Some((spend, state)) = shared_state {
                evaluate(&spans.evaluation(budget, spend), None, state);
            }
        }
    }

    fn rejection(&self, evaluation: &Evaluation<'_>) -> Option<Rejection> {
        if !is_rejecting(evaluation) {
            return None;
        }
        let hard = evaluation.budget.hard?;
        let end = match evaluation.budget.period {
            Period::Rolling => {
                let held = |day| evaluation.spend.between(day - ROLLING_DAYS + 1, day + 1);
                let later = evaluation.today + 1..=evaluation.today + ROLLING_DAYS;
                { later }.find(|day| held(*day) < hard).unwrap_or(evaluation.today + ROLLING_DAYS)
            }
            _ => evaluation.span.end,
        };
        let end_us = self.calendar.begin_us(end);
        let left_us = end_us.saturating_sub(evaluation.now_us);
        let (limit, until) = (money(hard), time(end_us));
        let period = match evaluation.budget.period {
            Period::Rolling => "any 30 days",
            period => &format!("a {}", period.name()),
        };
        let message = format!(
            "budget exceeded: `{}` allows {limit} {} for {period}, and that is spent; try again after {until}",
            evaluation.budget.name, self.currency
        );
        Some(Rejection {
            retry_after_s: u64::try_from(left_us).unwrap_or(0).div_ceil(1_000_000).max(1),
            message: message.into(),
        })
    }
}

/// Returns true if requests are rejected.
fn is_rejecting(evaluation: &Evaluation<'_>) -> bool {
    evaluation.budget.enforce && evaluation.budget.hard.is_some_and(|hard| evaluation.used() >= hard)
}

fn notice(
    evaluation: &Evaluation<'_>,
    tenant: Option<&Arc<str>>,
    currency: &Arc<str>,
    crossed: Crossed,
) -> Notice {
    Notice {
        budget: Arc::clone(&evaluation.budget.name),
        tenant: tenant.cloned(),
        period: evaluation.budget.period,
        span: crossed.span,
        span_us: crossed.span.instants_us(evaluation.calendar),
        threshold: crossed.threshold,
        limit: crossed.limit,
        used: crossed.used,
        forecast: crossed.forecast,
        soft: evaluation.budget.soft,
        hard: evaluation.budget.hard,
        // The same charge may cross other thresholds; only this one starts the rejections.
        refusing: crossed.threshold == Threshold::All
            && crossed.span == evaluation.span
            && is_rejecting(evaluation),
        currency: Arc::clone(currency),
        at_us: evaluation.now_us,
    }
}

/// The current periods, calculated once for all tenants.
struct Spans {
    calendar: Calendar,
    now_us: i64,
    today: i32,
    spans: [(Span, Option<Span>); Period::ALL.len()],
}

impl Spans {
    fn at(calendar: &Calendar, now_us: i64) -> Self {
        let today = day_of(calendar, now_us);
        let spans = Period::ALL.map(|period| (period.span(today), period.before(today)));
        Self { calendar: calendar.clone(), now_us, today, spans }
    }

    fn evaluation<'a>(&'a self, budget: &'a Budget, spend: &'a Spend) -> Evaluation<'a> {
        let (span, before) = self.spans[budget.period as usize];
        Evaluation {
            budget,
            spend,
            calendar: &self.calendar,
            now_us: self.now_us,
            today: self.today,
            span,
            before,
        }
    }
}

/// The tenant label of all tenants beyond the label limit.
pub const OTHER: &str = "_other";

/// Maximum number of tracked tenants, besides those that budgets name: some kilobytes each.
pub const TRACKED_MAX_TENANTS: usize = 10_000;

/// Longer than any period together with the one before.
const IDLE_DAYS: i32 = 62;
