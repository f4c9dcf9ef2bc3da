//! Each threshold is sent once per period, whatever the order of charges, the
//! corrections, and the clock.

use budget::{Notice, Period, Threshold};
use serde_json::json;

use super::{UNIT, at, budget, dollars, ids};

#[test]
fn each_threshold_is_sent_once_per_period() {
    let mut budgets = dollars(vec![budget("gold", "acme", Period::Month, None, Some(10))]);
    assert_eq!(ids(&budgets.tick(at(3, 0))), [""; 0]);
    budgets.charge("acme", at(3, 1), 5 * UNIT - 1);
    assert_eq!(ids(&budgets.tick(at(3, 1))), [""; 0]);
    budgets.charge("acme", at(3, 2), 1);
    assert_eq!(ids(&budgets.tick(at(3, 2))), ["gold/acme/2026-11-01/50"]);
    assert_eq!(ids(&budgets.tick(at(3, 3))), [""; 0]);
    budgets.charge("acme", at(4, 0), 20 * UNIT);
    assert_eq!(ids(&budgets.tick(at(4, 0))), ["gold/acme/2026-11-01/80", "gold/acme/2026-11-01/100"]);
    // Corrected and spent again.
    budgets.charge("acme", at(4, 0), -24 * UNIT);
    assert_eq!(ids(&budgets.tick(at(4, 1))), [""; 0]);
    budgets.charge("acme", at(5, 0), 24 * UNIT);
    assert_eq!(ids(&budgets.tick(at(5, 1))), [""; 0]);
    // December begins with nothing spent.
    budgets.charge("acme", at(31, 0), 5 * UNIT);
    assert_eq!(ids(&budgets.tick(at(31, 1))), ["gold/acme/2026-12-01/50"]);
}

#[test]
fn clock_jumps_repeat_no_alert() {
    for period in Period::ALL {
        let mut budgets = dollars(vec![budget("gold", "acme", period, None, Some(10))]);
        budgets.charge("acme", at(20, 1), 9 * UNIT);
        assert_eq!(ids(&budgets.tick(at(20, 2))).len(), 2, "{period:?}");
        for now in [at(500, 0), at(20, 3), at(-500, 0), at(20, 4), at(21, 0), at(20, 5)] {
            assert_eq!(ids(&budgets.tick(now)), [""; 0], "{period:?} {now}");
        }
        assert_eq!(budgets.states(at(20, 6))[0].used, i128::from(9 * UNIT));
    }
}

#[test]
fn late_charges_count_and_alert_in_their_period() {
    let mut budgets = dollars(vec![budget("gold", "acme", Period::Month, None, Some(10))]);
    budgets.charge("acme", at(31, 0), UNIT);
    budgets.charge("acme", at(30, 23), 6 * UNIT);
    let told = budgets.tick(at(31, 0));
    assert_eq!(ids(&told), ["gold/acme/2026-11-01/50"]);
    assert_eq!((told[0].used, told[0].refusing), (i128::from(6 * UNIT), false));
    assert_eq!(budgets.states(at(31, 0))[0].used, i128::from(UNIT));
    // Older periods send no alerts any more.
    budgets.charge("acme", at(0, 0), 60 * UNIT);
    assert_eq!(ids(&budgets.tick(at(31, 1))), [""; 0]);
}

#[test]
fn soft_limit_is_a_threshold_of_its_own() {
    let mut budgets = dollars(vec![
        budget("both", "acme", Period::Day, Some(6), Some(10)),
        budget("soft", "acme", Period::Day, Some(6), None),
    ]);
    budgets.charge("acme", at(3, 1), 7 * UNIT);
    let told = budgets.tick(at(3, 2));
    let expected = ["both/acme/2026-11-03/50", "both/acme/2026-11-03/soft"];
    assert_eq!(ids(&told)[..2], expected);
    let expected = ["soft/acme/2026-11-03/50", "soft/acme/2026-11-03/80", "soft/acme/2026-11-03/100"];
    assert_eq!(ids(&told)[2..], expected);
}

#[test]
fn rolling_alert_repeats_after_the_sum_fell() {
    let mut budgets = dollars(vec![budget("gold", "acme", Period::Rolling, None, Some(10))]);
    budgets.charge("acme", at(1, 1), 6 * UNIT);
    assert_eq!(ids(&budgets.tick(at(1, 2))), ["gold/acme/2026-10-03/50"]);
    for day in 2..=30 {
        assert_eq!(ids(&budgets.tick(at(day, 2))), [""; 0], "{day}");
    }
    // The 1st of November has left the period, and the same is spent again.
    assert_eq!(budgets.states(at(31, 2))[0].used, 0);
    budgets.charge("acme", at(31, 3), 6 * UNIT);
    assert_eq!(ids(&budgets.tick(at(31, 4))), ["gold/acme/2026-11-02/50"]);
    assert_eq!(ids(&budgets.tick(at(32, 4))), [""; 0]);
}

#[test]
fn rolling_alert_repeats_not_at_steady_spend() {
    let mut budgets = dollars(vec![budget("gold", "acme", Period::Rolling, None, Some(10))]);
    for day in 1..=90 {
        budgets.charge("acme", at(day, 1), UNIT / 4);
        let told = budgets.tick(at(day, 2));
        // 20 of its days are half of the limit, and 30 never reach 80 %.
        assert_eq!(ids(&told).len(), usize::from(day == 20), "{day}");
    }
}

#[test]
fn webhook_body_matches_the_schema() {
    let mut budgets = dollars(vec![budget("gold", "*", Period::Month, Some(8), Some(10))]);
    budgets.charge("<!channel>&", at(21, 12), 8 * UNIT + 50_000_000_000);
    let told = budgets.tick(at(21, 12));
    assert_eq!(
        told[1].json(),
        json!({
            "version": 1,
            "id": "gold/<!channel>&/2026-11-01/80",
            "text": "Tenant `&lt;!channel&gt;&amp;` has reached 80 % of the limit of 10.00 USD of the month from \
                     2026-11-01 (budget `gold`): 8.05 USD.",
            "budget": "gold",
            "tenant": "<!channel>&",
            "period": "month",
            "period_start": "2026-11-01T00:00:00Z",
            "period_end": "2026-12-01T00:00:00Z",
            "threshold": "80",
            "used": "8.05",
            "limit": "10.00",
            "soft_limit": "8.00",
            "hard_limit": "10.00",
            "forecast": "48.152743902439",
            "currency": "USD",
            "refusing": false,
            "at": "2026-11-21T12:00:00Z",
        })
    );
}

#[test]
fn sentences_describe_each_threshold() {
    let sentences = |notices: &[Notice]| notices.iter().map(Notice::sentence).collect::<Vec<_>>();
    let mut rolling = budget("both", "*", Period::Rolling, Some(6), Some(10));
    (rolling.shared, rolling.enforce) = (true, true);
    let mut budgets = dollars(vec![rolling, budget("day", "b", Period::Day, Some(20), None)]);
    budgets.charge("a", at(3, 1), 10 * UNIT);
    budgets.charge("b", at(3, 1), 10 * UNIT);
    assert_eq!(
        sentences(&budgets.tick(at(3, 1))),
        [
            "All of budget `both` has reached 50 % of the limit of 10.00 USD of the last 30 days: 20.00 USD.",
            "All of budget `both` has reached 80 % of the limit of 10.00 USD of the last 30 days: 20.00 USD.",
            "All of budget `both` has reached the limit of 10.00 USD of the last 30 days: 20.00 USD. Requests \
             are refused from now on.",
            "All of budget `both` has reached the soft limit of 6.00 USD of the last 30 days: 20.00 USD.",
            "Tenant `b` has reached 50 % of the soft limit of 20.00 USD of the day from 2026-11-03 (budget \
             `day`): 10.00 USD.",
        ]
    );
    let mut told = dollars(vec![budget("only", "c", Period::Day, None, Some(10))]);
    told.charge("c", at(3, 1), 10 * UNIT);
    let told = told.tick(at(3, 1));
    assert_eq!(
        told[2].sentence(),
        "Tenant `c` has reached the limit of 10.00 USD of the day from 2026-11-03 (budget `only`): 10.00 USD. No \
         request is refused because of it."
    );
    assert!(told.iter().all(|notice| !notice.refusing));
}

#[test]
fn thresholds_match_the_metric_labels() {
    assert_eq!(Threshold::ALL.map(Threshold::name), ["50", "80", "100", "soft", "forecast"]);
}

#[test]
fn limit_of_zero_alerts_only_after_spend() {
    let mut budgets = dollars(vec![budget("none", "acme", Period::Day, None, Some(0))]);
    assert_eq!(ids(&budgets.tick(at(3, 1))), [""; 0]);
    budgets.charge("acme", at(3, 1), 1);
    assert_eq!(ids(&budgets.tick(at(3, 2))).len(), 3);
}

#[test]
fn label_is_the_tenant_or_the_shared_limit() {
    let mut shared = budget("all", "*", Period::Day, None, Some(2));
    shared.shared = true;
    let mut budgets = dollars(vec![budget("each", "*", Period::Day, None, Some(2)), shared]);
    budgets.charge("acme", at(3, 1), UNIT);
    let labels: Vec<_> = budgets.tick(at(3, 1)).iter().map(Notice::label).collect();
    assert_eq!(labels.iter().map(|label| &**label).collect::<Vec<_>>(), ["_shared:all", "acme"]);
}

/// A clock that goes back finds the alerts of 128 periods, of which the oldest makes room for the next.
#[test]
fn alerts_of_128_periods_are_remembered() {
    let mut budgets = dollars(vec![budget("day", "acme", Period::Day, None, Some(1))]);
    let spend = |budgets: &mut budget::Budgets, day| {
        budgets.charge("acme", at(day, 0), UNIT);
        assert_eq!(ids(&budgets.tick(at(day, 1))).len(), 3, "{day}");
    };
    (1..=128).for_each(|day| spend(&mut budgets, day));
    assert_eq!(ids(&budgets.tick(at(1, 2))), [""; 0]);
    spend(&mut budgets, 129);
    assert_eq!(ids(&budgets.tick(at(3, 2))), [""; 0]);
}

/// Older sums are not read: after a restart they may be missing.
#[test]
fn rolling_alert_depends_on_the_last_thirty_days() {
    let mut budgets = dollars(vec![budget("gold", "acme", Period::Rolling, None, Some(10))]);
    budgets.charge("acme", at(1, 1), 6 * UNIT);
    assert_eq!(ids(&budgets.tick(at(1, 2))), ["gold/acme/2026-10-03/50"]);
    // Nothing evaluates until the 80th day, of which the 51st is the first of the last thirty.
    budgets.charge("acme", at(51, 1), 6 * UNIT);
    assert_eq!(ids(&budgets.tick(at(80, 2))), [""; 0]);
}

#[test]
fn rolling_alert_of_a_far_future_day_is_ignored() {
    for (ahead, told) in [(29, &[][..]), (30, &["gold/acme/2026-10-05/50"])] {
        let mut budgets = dollars(vec![budget("gold", "acme", Period::Rolling, None, Some(10))]);
        budgets.charge("acme", at(3 + ahead, 1), 6 * UNIT);
        assert_eq!(ids(&budgets.tick(at(3 + ahead, 2))).len(), 1);
        budgets.charge("acme", at(3, 1), 6 * UNIT);
        assert_eq!(ids(&budgets.tick(at(3, 2))), told, "{ahead}");
    }
}
