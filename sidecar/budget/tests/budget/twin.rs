//! The naive twin: it keeps every charge, and sums a period by comparing dates, with
//! numbers of any size.

use std::collections::{BTreeMap, BTreeSet};

use budget::{Budget, Budgets, Calendar, DAY_US, Period, SentAlerts, Threshold, day_of};
use jiff::ToSpan;
use jiff::civil::Date;
use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;

use super::{at, budget};

#[derive(Clone, Debug)]
enum Step {
    Charge {
        tenant: &'static str,
        at_us: i64,
        pico: i64,
    },
    Tick {
        now_us: i64,
    },
    /// A new process, with the ledger's sums and the alerts sent.
    Restart {
        now_us: i64,
    },
}

#[derive(Default)]
struct Twin {
    charges: Vec<(&'static str, i64, i64)>,
    told: BTreeSet<String>,
    /// The last alert of each rolling threshold.
    last: BTreeMap<String, Date>,
}

fn date(at_us: i64) -> Date {
    jiff::Timestamp::from_microsecond(at_us).unwrap().to_zoned(jiff::tz::TimeZone::UTC).date()
}

fn together(period: Period, day: Date, of: Date) -> bool {
    match period {
        Period::Day => day == of,
        Period::Week => {
            let week = |day: Date| (day.iso_week_date().year(), day.iso_week_date().week());
            week(day) == week(of)
        }
        Period::Month => day.to_string()[..7] == of.to_string()[..7],
        Period::Rolling => day <= of && day > of - 30.days(),
    }
}

/// Returns the first day of the period of `of`, found by walking back.
fn first(period: Period, mut of: Date) -> Date {
    let today = of;
    while together(period, of - 1.days(), today) {
        of -= 1.days();
    }
    of
}

impl Twin {
    fn sum(&self, budget: &Budget, tenant: &str, within: impl Fn(Date) -> bool) -> BigInt {
        let ours = |name: &str| if budget.shared { budget.covers(name) } else { name == tenant };
        let charges = self.charges.iter().filter(|(name, at_us, _)| ours(name) && within(date(*at_us)));
        charges.map(|(_, _, pico)| BigInt::from(*pico)).sum()
    }

    fn tick(&mut self, budgets: &[Budget], now_us: i64) -> Vec<String> {
        let today = date(now_us);
        let mut ids = Vec::new();
        for budget in budgets {
            for tenant in tenant_keys(budget, &self.charges) {
                for of in [first(budget.period, today) - 1.days(), today] {
                    if budget.period == Period::Rolling && of != today {
                        continue;
                    }
                    let used = self.sum(budget, tenant, |day| together(budget.period, day, of));
                    for (threshold, percent, limit) in [
                        (Threshold::Half, 50, budget.hard.or(budget.soft)),
                        (Threshold::Most, 80, budget.hard.or(budget.soft)),
                        (Threshold::All, 100, budget.hard.or(budget.soft)),
                        (Threshold::Soft, 100, budget.soft.filter(|_| budget.hard.is_some())),
                    ] {
                        let Some(limit) = limit else { continue };
                        let passed = |used: &BigInt| {
                            used * 100 >= BigInt::from(limit) * percent && *used > BigInt::from(0)
                        };
                        if !passed(&used) {
                            continue;
                        }
                        let start = first(budget.period, of);
                        let id = format!("{}/{tenant}/{start}/{}", budget.name, threshold.name());
                        if budget.period == Period::Rolling {
                            let key = format!("{}/{tenant}/{}", budget.name, threshold.name());
                            if self
                                .last
                                .get(&key)
                                .is_none_or(|last| self.again(budget, tenant, *last, today, &passed))
                            {
                                self.last.insert(key, today);
                                ids.push(id);
                            }
                        } else if self.told.insert(id.clone()) {
                            ids.push(id);
                        }
                    }
                }
            }
        }
        ids.sort();
        ids
    }

    /// Returns true if the alert of a rolling threshold, sent on `last`, may be sent again.
    fn again(
        &self,
        budget: &Budget,
        tenant: &str,
        last: Date,
        today: Date,
        passed: &dyn Fn(&BigInt) -> bool,
    ) -> bool {
        if last > today {
            return last >= today + 30.days();
        }
        let mut day = last.max(today - 29.days());
        while day < today {
            day += 1.days();
            let held = self.sum(budget, tenant, |one| one < day && one > day - 30.days());
            if !passed(&held) {
                return true;
            }
        }
        false
    }

    fn used(&self, budget: &Budget, tenant: &str, now_us: i64) -> BigInt {
        self.sum(budget, tenant, |day| together(budget.period, day, date(now_us)))
    }

    fn forecast(&self, budget: &Budget, tenant: &str, now_us: i64) -> Option<BigRational> {
        let today = date(now_us);
        let ratio = |number: BigInt, by: i64| BigRational::new(number, by.into());
        let midnight = |day: Date| day.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_second();
        let now_s = now_us.div_euclid(1_000_000);
        let mut start = first(budget.period, today);
        let mut end = today;
        while together(budget.period, end, today) || (budget.period != Period::Rolling && end < today) {
            end += 1.days();
        }
        let length = midnight(end) - midnight(start);
        if budget.period == Period::Rolling {
            while self.sum(budget, tenant, |day| day == start) == BigInt::from(0) {
                start += 1.days();
                if start > today {
                    return None;
                }
            }
        }
        let elapsed = now_s - midnight(start);
        if elapsed * 20 < length || elapsed < 3600 {
            return None;
        }
        let used = self.used(budget, tenant, now_us);
        let yesterday = self.sum(budget, tenant, |day| day == today - 1.days());
        let lately = ratio(yesterday * (86_400 - (now_s - midnight(today))), 86_400)
            + ratio(self.sum(budget, tenant, |day| day == today), 1);
        let ahead = if budget.period == Period::Rolling { length } else { length - elapsed };
        let ahead = ratio(ahead.into(), 1);
        let half = ratio(1.into(), 2);
        let more =
            (ratio(used.clone(), elapsed) * ahead.clone() + lately * ahead / ratio(86_400.into(), 1)) * half;
        Some(if budget.period == Period::Rolling { more } else { more + ratio(used, 1) })
    }
}

/// Returns the tenants with a limit of their own, or `*` for a shared one.
fn tenant_keys<'a>(budget: &Budget, charges: &[(&'a str, i64, i64)]) -> BTreeSet<&'a str> {
    if budget.shared {
        return BTreeSet::from(["*"]);
    }
    charges.iter().map(|(name, _, _)| *name).filter(|name| budget.covers(name)).collect()
}

fn budgets() -> Vec<Budget> {
    let mut all = vec![
        budget("day", "*", Period::Day, None, Some(40)),
        budget("week", "a,b*", Period::Week, Some(90), Some(120)),
        budget("month", "*", Period::Month, Some(300), None),
        budget("pool", "b*", Period::Month, Some(200), Some(500)),
        budget("roll", "*", Period::Rolling, None, Some(250)),
        budget("rollpool", "a,bb", Period::Rolling, Some(100), Some(600)),
    ];
    all[3].shared = true;
    all[5].shared = true;
    all
}

/// Time steps: mostly forward, sometimes jumps of months.
fn jumps() -> impl Strategy<Value = i64> {
    prop_oneof![
        12 => 0..30_i64 * 3_600,
        4 => -40_i64 * 3_600..0,
        1 => -100_i64 * 86_400..100 * 86_400,
    ]
}

/// Time steps forward.
fn forth() -> impl Strategy<Value = i64> {
    prop_oneof![12 => 0..30_i64 * 3_600, 1 => 0..40_i64 * 86_400]
}

fn steps(jump: impl Strategy<Value = i64>, restarts: bool) -> impl Strategy<Value = Vec<Step>> {
    let late = prop_oneof![3 => Just(0_i64), 2 => 0..40_i64 * 86_400, 1 => -2_i64 * 86_400..0];
    let pico = prop_oneof![
        6 => 0..20_000_000_000_000_i64,
        2 => -30_000_000_000_000_i64..0,
        1 => Just(10_000_000_000_000_i64),
    ];
    let charge = (prop::sample::select(vec!["a", "b", "bb"]), late, pico);
    let restart = prop::bool::weighted(if restarts { 0.3 } else { 0.0 });
    prop::collection::vec((jump, prop::collection::vec(charge, 0..4), restart), 1..60).prop_map(|rounds| {
        let mut now_us = at(10, 7);
        let mut steps = Vec::new();
        for (jump_s, charges, restart) in rounds {
            now_us += jump_s * 1_000_000;
            if restart {
                steps.push(Step::Restart { now_us });
            }
            for (tenant, late_s, pico) in charges {
                steps.push(Step::Charge { tenant, at_us: now_us - late_s * 1_000_000, pico });
            }
            steps.push(Step::Tick { now_us });
        }
        steps
    })
}

fn agree(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let all = budgets();
    let (mut ours, mut twin) = (Budgets::new(all.clone(), "USD"), Twin::default());
    for step in steps {
        match step {
            Step::Charge { tenant, at_us, pico } => {
                ours.charge(tenant, at_us, pico);
                twin.charges.push((tenant, at_us, pico));
            }
            Step::Restart { now_us } => {
                let told = SentAlerts::from_json(&ours.sent_alerts(now_us).to_json()).unwrap();
                ours = Budgets::new(all.clone(), "USD");
                let kept = twin
                    .charges
                    .iter()
                    .filter(|(_, at_us, _)| day_of(&Calendar::default(), *at_us) >= ours.since(now_us));
                let sums = kept.map(|(name, at_us, pico)| {
                    ((*name).into(), day_of(&Calendar::default(), *at_us), i128::from(*pico))
                });
                let sums: Vec<_> = sums.collect();
                ours.restore(now_us, &sums, Some(&told));
            }
            Step::Tick { now_us } => {
                let told = ours.tick(now_us).into_iter();
                let told = told.filter(|notice| notice.threshold != Threshold::Forecast);
                let mut told: Vec<_> = told.map(|notice| notice.id()).collect();
                told.sort();
                prop_assert_eq!(told, twin.tick(&all, now_us));
                for state in ours.states(now_us) {
                    let budget = all.iter().find(|one| one.name == state.budget).unwrap();
                    prop_assert_eq!(BigInt::from(state.used), twin.used(budget, &state.tenant, now_us));
                    let (mine, yours) = (state.forecast, twin.forecast(budget, &state.tenant, now_us));
                    prop_assert_eq!(mine.is_some(), yours.is_some(), "{:?}", state);
                    if let Some((mine, yours)) = mine.zip(yours) {
                        let off = BigRational::from_integer(mine.into()) - yours;
                        let few = BigRational::from_integer(3.into());
                        prop_assert!(off <= few && -off <= few, "{:?}", state);
                    }
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(chance::cases(20))]

    #[test]
    fn budgets_agree_with_their_naive_twin(steps in steps(jumps(), false)) {
        agree(steps)?;
    }

    #[test]
    fn restarts_change_no_alert(steps in steps(forth(), true)) {
        agree(steps)?;
    }

    #[test]
    fn order_of_charges_does_not_matter(charges in prop::collection::vec((0..60_i64, -9_i64..50), 0..40)) {
        let (mut forth, mut back) = (Budgets::new(budgets(), "USD"), Budgets::new(budgets(), "USD"));
        for (day, units) in &charges {
            forth.charge("a", at(0, 0) + day * DAY_US, units * 1_000_000_000_000);
        }
        for (day, units) in charges.iter().rev() {
            back.charge("a", at(0, 0) + day * DAY_US, units * 1_000_000_000_000);
        }
        prop_assert_eq!(forth.tick(at(50, 3)), back.tick(at(50, 3)));
        prop_assert_eq!(forth.states(at(50, 3)), back.states(at(50, 3)));
    }
}
