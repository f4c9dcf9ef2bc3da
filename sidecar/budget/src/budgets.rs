//! All budgets and what was spent under them: charges and the clock's word go in, notices, readings
//! and refusals come out. It owns no clock and no thread, and everything it says follows from the
//! sums of days and from what was told, so that neither the order of charges nor a clock that is
//! set matters.

use std::collections::HashMap;
use std::sync::Arc;

use text::money;

use crate::account::{Account, Look, Mark, Passed};
use crate::budget::{Budget, Threshold};
use crate::fleet::Observed;
use crate::notice::{Notice, shared_label};
use crate::period::{DAY_US, Period, ROLLING_DAYS, Span, day_of};
use crate::reading::{Reading, Refused};
use crate::spend::Spend;
use crate::told::{Entry, Told, form};

/// All budgets, and what was spent under them.
#[derive(Debug)]
pub struct Budgets {
    budgets: Vec<Budget>,
    currency: Arc<str>,
    tenants: HashMap<Arc<str>, Tenant>,
    /// By budget: the purse of those who share one.
    pools: Vec<Option<(Spend, Account)>>,
    untracked: u64,
    observed: bool,
    /// The day of the last tick, and whether room was made for new tenants on it.
    today: i32,
    tidied: bool,
}

/// A tenant that some budget covers.
#[derive(Debug, Default)]
struct Tenant {
    spend: Spend,
    /// Under each budget of its own, by the budget's place.
    accounts: Vec<(usize, Account)>,
    /// The budgets it shares, by their place.
    shared: Vec<usize>,
}

impl Budgets {
    /// Budgets in a currency, nothing being spent yet.
    pub fn new(budgets: Vec<Budget>, currency: &str) -> Self {
        let pools = budgets.iter().map(|budget| budget.shared.then(Default::default)).collect();
        let named: Vec<Arc<str>> = budgets.iter().flat_map(Budget::named).map(Into::into).collect();
        let mut all = Self {
            budgets,
            currency: currency.into(),
            tenants: HashMap::new(),
            pools,
            untracked: 0,
            observed: false,
            today: 0,
            tidied: false,
        };
        // So that those named have a reading from the start, and room whatever happens.
        for name in named {
            if let Some(tenant) = all.covered(&name) {
                all.tenants.insert(name, tenant);
            }
        }
        all
    }

    /// From which day on sums are of use: the first of the earliest period before the one that is on, and of
    /// the thirty days before each of the last thirty.
    pub fn since(&self, now_us: i64) -> i32 {
        let today = day_of(now_us);
        let starts = self.budgets.iter().map(|budget| {
            let period = budget.period;
            period.before(today).unwrap_or_else(|| period.span(period.span(today).start)).start
        });
        starts.min().unwrap_or(today).max(0)
    }

    /// Takes what this process's own ledger has, by tenant and day, before the first charge. Without
    /// `told`, whatever these sums pass counts as told.
    pub fn restore(&mut self, now_us: i64, sums: &[(Arc<str>, i32, i128)], told: Option<&Told>) {
        for (tenant, day, pico) in sums {
            self.add(tenant, *day, *pico);
        }
        match told {
            Some(told) => self.remember(told),
            None => self.take_for_told(now_us),
        }
    }

    /// Adds what an exchange that ended at `at_us` costs; a correction is negative.
    pub fn charge(&mut self, tenant: &str, at_us: i64, pico: i64) {
        self.add(tenant, day_of(at_us), pico.into());
    }

    /// The same for a sum over exchanges of a day.
    pub fn add(&mut self, tenant: &str, day: i32, pico: i128) {
        self.book(tenant, &mut |spend| spend.add(day, pico));
    }

    /// Replaces what a central store has. What the first such look passes counts as told: others did.
    /// Whether it was the first, so that [`Budgets::told`] may have more in it than before.
    pub fn observe(&mut self, now_us: i64, all: &[Observed]) -> bool {
        self.tenants.values_mut().for_each(|tenant| tenant.spend.forget_observed());
        self.pools.iter_mut().flatten().for_each(|(spend, _)| spend.forget_observed());
        for one in all {
            let others = one.all.saturating_sub(one.ours);
            self.book(&one.tenant, &mut |spend| spend.observe(one.day, one.ours, others));
        }
        let is_first = !std::mem::replace(&mut self.observed, true);
        if is_first {
            self.take_for_told(now_us);
        }
        is_first
    }

    /// What is to be told now: each threshold once for each budget, tenant and period.
    pub fn tick(&mut self, now_us: i64) -> Vec<Notice> {
        let today = day_of(now_us);
        if self.today != today {
            (self.today, self.tidied) = (today, false);
        }
        let currency = Arc::clone(&self.currency);
        let mut notices = Vec::new();
        self.each(now_us, |look, tenant, account| {
            account.tell(look, |passed| notices.push(notice(look, tenant, &currency, passed)));
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

    /// Who is refused now, and for how long. A tenant beyond those tracked never is.
    pub fn refused(&self, now_us: i64) -> HashMap<Arc<str>, Refused> {
        let mut refused: HashMap<Arc<str>, Refused> = HashMap::new();
        if !self.budgets.iter().any(|budget| budget.enforce) {
            return refused;
        }
        let mut refuse = |tenant: &Arc<str>, why: Refused| match refused.get(tenant) {
            Some(other) if other.retry_after_s >= why.retry_after_s => {}
            _ => {
                refused.insert(Arc::clone(tenant), why);
            }
        };
        let spans = Spans::at(now_us);
        let pools: Vec<_> = (self.pools.iter().enumerate())
            .map(|(at, pool)| self.refusal(&spans.look(&self.budgets[at], &pool.as_ref()?.0)))
            .collect();
        for (name, tenant) in &self.tenants {
            for (at, _) in &tenant.accounts {
                if let Some(why) = self.refusal(&spans.look(&self.budgets[*at], &tenant.spend)) {
                    refuse(name, why);
                }
            }
            for why in tenant.shared.iter().filter_map(|at| pools[*at].as_ref()) {
                refuse(name, why.clone());
            }
        }
        refused
    }

    /// How every budget stands, in the order of tenants and then of budgets.
    pub fn readings(&self, now_us: i64) -> Vec<Reading> {
        let spans = Spans::at(now_us);
        let mut tenants: Vec<_> = self.tenants.iter().collect();
        tenants.sort_unstable_by_key(|(name, _)| *name);
        let own = tenants.into_iter().flat_map(|(name, tenant)| {
            tenant.accounts.iter().map(move |(at, _)| (Arc::clone(name), *at, &tenant.spend))
        });
        let pools = self.pools.iter().enumerate();
        let pools = pools
            .filter_map(|(at, pool)| Some((shared_label(&self.budgets[at].name), at, &pool.as_ref()?.0)));
        own.chain(pools)
            .map(|(tenant, at, spend)| {
                let look = spans.look(&self.budgets[at], spend);
                Reading {
                    budget: Arc::clone(&look.budget.name),
                    tenant,
                    period: look.budget.period,
                    soft: look.budget.soft,
                    hard: look.budget.hard,
                    used: look.used(),
                    forecast: look.forecast(),
                    refused: refuses(&look),
                }
            })
            .collect()
    }

    /// What was told of periods that can still be told of, for the next process.
    pub fn told(&self, now_us: i64) -> Told {
        let spans = Spans::at(now_us);
        let mut entries = Vec::new();
        let mut note = |at: usize, tenant: Option<&Arc<str>>, account: &Account| {
            let budget = &self.budgets[at];
            // Of a rolling period the last time is what counts, however long ago.
            let since = spans.spans[budget.period as usize].1.map_or(0, |before| before.start);
            entries.extend(account.marks().iter().filter(|mark| mark.at >= since).map(|mark| Entry {
                budget: Arc::clone(&budget.name),
                form: form(budget),
                tenant: tenant.cloned(),
                at: mark.at,
                bits: mark.bits,
            }));
        };
        for (name, tenant) in &self.tenants {
            tenant.accounts.iter().for_each(|(at, account)| note(*at, Some(name), account));
        }
        for (at, pool) in self.pools.iter().enumerate() {
            if let Some((_, account)) = pool {
                note(at, None, account);
            }
        }
        entries.sort_unstable_by(|a, b| (&a.budget, &a.tenant, a.at).cmp(&(&b.budget, &b.tenant, b.at)));
        Told(entries)
    }

    /// Charges to tenants beyond those tracked: no budget but a shared one knows of them.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    fn remember(&mut self, told: &Told) {
        for entry in &told.0 {
            let Some(at) = self.budgets.iter().position(|budget| budget.name == entry.budget) else {
                continue;
            };
            if form(&self.budgets[at]) != entry.form {
                continue;
            }
            let account = match &entry.tenant {
                None => self.pools[at].as_mut().map(|(_, account)| account),
                Some(name) if self.track(name) => self.tenants.get_mut(name).and_then(|tenant| {
                    tenant.accounts.iter_mut().find(|(of, _)| *of == at).map(|(_, account)| account)
                }),
                Some(_) => None,
            };
            if let Some(account) = account {
                account.remember(Mark { at: entry.at, bits: entry.bits });
            }
        }
    }

    fn take_for_told(&mut self, now_us: i64) {
        self.each(now_us, |look, _, account| account.take_for_told(look));
    }

    /// Does something to the sums of a tenant and of all it shares.
    fn book(&mut self, name: &str, change: &mut dyn FnMut(&mut Spend)) {
        if self.track(name) {
            let tenant = self.tenants.get_mut(name).expect("it is tracked");
            change(&mut tenant.spend);
            for at in &tenant.shared {
                if let Some((spend, _)) = &mut self.pools[*at] {
                    change(spend);
                }
            }
            return;
        }
        let mut covered = false;
        for (budget, pool) in self.budgets.iter().zip(&mut self.pools) {
            if !budget.covers(name) {
                continue;
            }
            covered = true;
            if let Some((spend, _)) = pool {
                change(spend);
            }
        }
        self.untracked += u64::from(covered);
    }

    /// Whether the tenant is tracked, from now on if not before: a budget covers it and there is room.
    fn track(&mut self, name: &str) -> bool {
        if self.tenants.contains_key(name) {
            return true;
        }
        let Some(tenant) = self.covered(name) else { return false };
        if self.tenants.len() >= TRACKED && !self.make_room() {
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
                false => tenant.accounts.push((at, Account::default())),
            }
        }
        let some = !tenant.accounts.is_empty() || !tenant.shared.is_empty();
        (some && name != OTHER).then_some(tenant)
    }

    /// Lets those go who spent nothing for two months; looked for once a day, since it takes a while.
    fn make_room(&mut self) -> bool {
        if !std::mem::replace(&mut self.tidied, true) {
            let since = self.today - IDLE_DAYS;
            let named: Vec<&str> = self.budgets.iter().flat_map(Budget::named).collect();
            self.tenants.retain(|name, tenant| {
                tenant.spend.last().is_some_and(|last| last >= since) || named.contains(&&**name)
            });
        }
        self.tenants.len() < TRACKED
    }

    /// Every account, with what it is looked at with.
    fn each(&mut self, now_us: i64, mut look_at: impl FnMut(&Look<'_>, Option<&Arc<str>>, &mut Account)) {
        let spans = Spans::at(now_us);
        for (name, tenant) in &mut self.tenants {
            for (at, account) in &mut tenant.accounts {
                look_at(&spans.look(&self.budgets[*at], &tenant.spend), Some(name), account);
            }
        }
        for (budget, pool) in self.budgets.iter().zip(&mut self.pools) {
            if let Some((spend, account)) = pool {
                look_at(&spans.look(budget, spend), None, account);
            }
        }
    }

    fn refusal(&self, look: &Look<'_>) -> Option<Refused> {
        if !refuses(look) {
            return None;
        }
        let hard = look.budget.hard?;
        let end = match look.budget.period {
            Period::Rolling => {
                let held = |day| look.spend.between(day - ROLLING_DAYS + 1, day + 1);
                let later = look.today + 1..=look.today + ROLLING_DAYS;
                { later }.find(|day| held(*day) < hard).unwrap_or(look.today + ROLLING_DAYS)
            }
            _ => look.span.end,
        };
        let left_us = i64::from(end).saturating_mul(DAY_US).saturating_sub(look.now_us);
        let (limit, until) = (money(hard), Span { start: end, end }.start_text());
        let period = match look.budget.period {
            Period::Rolling => "any 30 days",
            period => &format!("a {}", period.name()),
        };
        let message = format!(
            "budget exceeded: `{}` allows {limit} {} for {period}, and that is spent; try again after {until}",
            look.budget.name, self.currency
        );
        Some(Refused {
            retry_after_s: u64::try_from(left_us).unwrap_or(0).div_ceil(1_000_000).max(1),
            message: message.into(),
        })
    }
}

/// Whether requests are refused.
fn refuses(look: &Look<'_>) -> bool {
    look.budget.enforce && look.budget.hard.is_some_and(|hard| look.used() >= hard)
}

fn notice(look: &Look<'_>, tenant: Option<&Arc<str>>, currency: &Arc<str>, passed: Passed) -> Notice {
    Notice {
        budget: Arc::clone(&look.budget.name),
        tenant: tenant.cloned(),
        period: look.budget.period,
        span: passed.span,
        threshold: passed.threshold,
        limit: passed.limit,
        used: passed.used,
        forecast: passed.forecast,
        soft: look.budget.soft,
        hard: look.budget.hard,
        // Other thresholds may be passed by the same charge; it is this one that shuts the gate.
        refusing: passed.threshold == Threshold::All && passed.span == look.span && refuses(look),
        currency: Arc::clone(currency),
        at_us: look.now_us,
    }
}

/// The periods that are on, worked out once for all accounts.
struct Spans {
    now_us: i64,
    today: i32,
    spans: [(Span, Option<Span>); Period::ALL.len()],
}

impl Spans {
    fn at(now_us: i64) -> Self {
        let today = day_of(now_us);
        Self { now_us, today, spans: Period::ALL.map(|period| (period.span(today), period.before(today))) }
    }

    fn look<'a>(&self, budget: &'a Budget, spend: &'a Spend) -> Look<'a> {
        let (span, before) = self.spans[budget.period as usize];
        Look { budget, spend, now_us: self.now_us, today: self.today, span, before }
    }
}

/// The tenant of those who are too many to be told apart.
pub const OTHER: &str = "_other";

/// Tenants tracked, besides those that budgets name in full: some kilobytes each.
pub const TRACKED: usize = 10_000;

/// Longer than any period and the one before.
const IDLE_DAYS: i32 = 62;
