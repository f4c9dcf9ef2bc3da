//! A new process repeats no alert of the previous one, and sends those that it missed.

use std::sync::Arc;

use budget::{Budgets, Period, SentAlerts, SentAlertsError};

use super::{UNIT, at, budget, day, dollars, ids, tenant};

fn new(hard: i64) -> Budgets {
    dollars(vec![
        budget("month", "*", Period::Month, None, Some(hard)),
        budget("30d", "*", Period::Rolling, None, Some(hard)),
    ])
}

fn sums() -> Vec<(Arc<str>, i32, i128)> {
    vec![
        (tenant("a"), day(-3), i128::from(9 * UNIT)),
        (tenant("a"), day(2), i128::from(5 * UNIT)),
        (tenant("a"), day(3), i128::from(3 * UNIT)),
    ]
}

#[test]
fn sums_are_needed_from_the_previous_period() {
    let month = dollars(vec![budget("month", "*", Period::Month, None, Some(1))]);
    assert_eq!(month.since(at(15, 3)), day(-30), "the first of October");
    assert_eq!(new(1).since(at(15, 3)), day(-43), "thirty days before the last thirty");
    let week = dollars(vec![budget("week", "*", Period::Week, None, Some(1))]);
    assert_eq!(week.since(at(4, 3)), day(-5), "Monday the 26th of October");
    assert_eq!(dollars(Vec::new()).since(at(4, 3)), day(4));
}

#[test]
fn without_state_file_crossed_thresholds_count_as_sent() {
    let mut budgets = new(10);
    budgets.restore(at(3, 5), &sums(), None);
    assert_eq!(ids(&budgets.tick(at(3, 5))), [""; 0]);
    assert_eq!(budgets.states(at(3, 5))[0].used, i128::from(8 * UNIT));
    budgets.charge("a", at(3, 6), 2 * UNIT);
    assert_eq!(ids(&budgets.tick(at(3, 6))), ["month/a/2026-11-01/100"]);
    assert_eq!(ids(&budgets.tick(at(30, 23))), [""; 0]);
}

#[test]
fn without_state_file_high_forecast_counts_as_sent() {
    // 8 of 20 units in two days.
    let mut budgets = dollars(vec![budget("month", "*", Period::Month, None, Some(20))]);
    budgets.restore(at(3, 5), &sums(), None);
    assert!(budgets.states(at(3, 5))[0].forecast > Some(i128::from(20 * UNIT)));
    for hour in 5..9 {
        assert_eq!(budgets.tick(at(3, hour)), []);
    }
}

#[test]
fn with_state_file_only_its_alerts_count() {
    let mut before = new(10);
    before.restore(at(2, 0), &sums()[..2], Some(&SentAlerts::default()));
    assert_eq!(
        ids(&before.tick(at(2, 5))),
        [
            "30d/a/2026-10-04/50",
            "30d/a/2026-10-04/80",
            "30d/a/2026-10-04/100",
            "month/a/2026-10-01/50",
            "month/a/2026-10-01/80",
            "month/a/2026-11-01/50",
        ]
    );
    let kept = SentAlerts::from_json(&before.sent_alerts(at(3, 5)).to_json()).unwrap();
    assert_eq!(kept, before.sent_alerts(at(3, 5)));
    // The process ended before it evaluated the third day.
    let mut after = new(10);
    after.restore(at(3, 1), &sums(), Some(&kept));
    assert_eq!(ids(&after.tick(at(3, 1))), ["month/a/2026-11-01/80"]);
    assert_eq!(ids(&after.tick(at(3, 2))), [""; 0]);
}

/// Returns the `100` alerts of a rolling limit of 20, with a new process on each day of `restarts`.
fn spent_on(spent: &[(i64, i64)], restarts: impl Iterator<Item = i64>) -> Vec<String> {
    let new = || dollars(vec![budget("30d", "*", Period::Rolling, None, Some(20))]);
    let (mut budgets, mut told) = (new(), SentAlerts::default());
    let mut all = Vec::new();
    for on in restarts {
        let kept = spent.iter().filter(|(of, _)| *of <= on && day(*of) >= budgets.since(at(on, 1)));
        let sums: Vec<_> =
            kept.map(|(of, units)| (tenant("a"), day(*of), i128::from(units * UNIT))).collect();
        budgets = new();
        budgets.restore(at(on, 1), &sums, Some(&told));
        all.extend(ids(&budgets.tick(at(on, 2))).into_iter().filter(|id| id.ends_with("/100")));
        told = SentAlerts::from_json(&budgets.sent_alerts(at(on, 3)).to_json()).unwrap();
    }
    all
}

#[test]
fn constantly_full_rolling_period_alerts_once_across_restarts() {
    // On the 11th the sum needs charges from before the last thirty days of the 31st.
    let spent = [(0, 15), (10, 10), (12, 12)];
    assert_eq!(spent_on(&spent, [10, 31].into_iter()), ["30d/a/2026-10-12/100"]);
    // An alert sent more than thirty days ago is not forgotten either.
    let spent: Vec<_> = (1..=90).map(|on| (on, 20)).collect();
    assert_eq!(spent_on(&spent, 1..=90), ["30d/a/2026-10-03/100"]);
}

#[test]
fn only_alerts_of_open_periods_are_kept() {
    let mut budgets = dollars(vec![
        budget("day", "a", Period::Day, None, Some(1)),
        budget("30d", "a", Period::Rolling, None, Some(20)),
    ]);
    for on in 1..=12 {
        budgets.charge("a", at(on, 1), UNIT);
        budgets.tick(at(on, 2));
    }
    let kept = budgets.sent_alerts(at(12, 3)).to_json();
    let dates = |name: &str| kept.split(name).skip(1).count();
    assert_eq!(dates("\"day\""), 2, "{kept}");
    assert_eq!(dates("\"30d\""), 1, "{kept}");
    assert!(
        kept.contains("2026-11-11") && kept.contains("2026-11-12") && kept.contains("2026-11-10"),
        "{kept}"
    );
}

#[test]
fn alerts_of_a_tenant_without_sums_are_kept() {
    let month = || dollars(vec![budget("month", "*", Period::Month, None, Some(10))]);
    let mut before = month();
    before.charge("a", at(3, 0), 6 * UNIT);
    assert_eq!(ids(&before.tick(at(3, 1))), ["month/a/2026-11-01/50"]);
    let mut after = month();
    after.restore(at(3, 2), &[], Some(&before.sent_alerts(at(3, 2))));
    after.charge("a", at(3, 3), 6 * UNIT);
    assert_eq!(ids(&after.tick(at(3, 4))), [""; 0]);
}

#[test]
fn changed_limit_sends_alerts_anew() {
    let mut before = new(16);
    before.restore(at(3, 5), &sums(), None);
    let mut after = new(10);
    after.restore(at(3, 6), &sums(), Some(&before.sent_alerts(at(3, 5))));
    let told = ids(&after.tick(at(3, 6)));
    assert!(told.contains(&"month/a/2026-11-01/50".to_owned()), "{told:?}");
    assert!(told.contains(&"month/a/2026-11-01/80".to_owned()), "{told:?}");
}

#[test]
fn foreign_text_is_rejected() {
    for text in
        ["", "{}", "[]", "{\"version\":2,\"alerts\":[]}", "{\"version\":1,\"alerts\":[{\"budget\":\"b\"}]}"]
    {
        assert!(SentAlerts::from_json(text).is_err(), "{text}");
    }
    assert_eq!(SentAlerts::from_json("{\"version\":1,\"alerts\":[]}"), Ok(SentAlerts::default()));
    assert_eq!(SentAlertsError.to_string(), "the file of sent budget alerts cannot be parsed");
}

#[test]
fn undelivered_notices_are_not_kept() {
    // On the first day the month's alerts have the date of the rolling period's.
    for on in [1, 3] {
        let spent = ["a", "b"].map(|name| (tenant(name), day(on), i128::from(9 * UNIT)));
        let mut budgets = new(10);
        budgets.restore(at(on, 1), &spent, Some(&SentAlerts::default()));
        let notices = budgets.tick(at(on, 1));
        assert_eq!(notices.len(), 8, "{notices:?}");
        let all = budgets.sent_alerts(at(on, 1));
        for undelivered in &notices {
            let kept = all.clone().without(std::slice::from_ref(undelivered));
            assert_ne!(kept, all);
            let mut after = new(10);
            after.restore(at(on, 2), &spent, Some(&kept));
            assert_eq!(ids(&after.tick(at(on, 2))), [undelivered.id()]);
        }
        assert_eq!(all.without(&notices), SentAlerts::default());
    }
}

#[test]
fn threshold_that_is_kept_twice_is_kept() {
    let text = |sent: &str| {
        let entry =
            format!(r#"{{"budget":"b","form":"f","tenant":"a","at":"2026-11-01","thresholds":[{sent}]}}"#);
        SentAlerts::from_json(&format!(r#"{{"version":1,"alerts":[{entry}]}}"#)).unwrap()
    };
    assert_eq!(text(r#""50","50""#), text(r#""50""#));
}
