//! A fleet: five ledgers and one store, two of them killed and never restarted, one restored from a backup, one late by
//! days. The months closed at the store plus the late rows are the sum of all entered rows, except those that the
//! killed ones had not shipped, which the reports name as gaps.

use std::collections::BTreeMap;

use ledger::source::{Gap, Month, Range, Source};
use ledger::{Row, Zone};
use proptest::prelude::*;

use super::closing::{
    MONTHS, WAIT_TIMEOUT, address, adjust, adjustment, billed, number, reprice, shipped, well,
};
use super::ledgers::TestLedger;
use super::resend::{backup, central, follow_remedies, no_file_waits};
use super::server::{shared, until};
use crate::{close, schema};

/// Returns the counted exchanges of these rows in a ledger of a time zone, and their cost.
fn added_up(zone: &Zone, rows: impl Iterator<Item = u64>) -> (u64, i128) {
    let rows: Vec<Row> = rows.map(|number| TestLedger::row_of(zone, number)).collect();
    let exchanges = rows.iter().filter(|row| row.role.is_counted()).count() as u64;
    (exchanges, rows.iter().map(|row| i128::from(row.charge.cost().unwrap_or(0))).sum())
}

fn total(database: &str) -> (u64, i128) {
    billed(database).values().fold((0, 0), |sum, month| (sum.0 + month.0, sum.1 + month.1))
}

#[test]
#[ignore = "needs PostgreSQL"]
fn closed_months_sum_to_all_entered_rows() {
    months_sum_to_all_entered_rows("UTC");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn closed_months_of_berlin_sum_to_all_entered_rows() {
    months_sum_to_all_entered_rows("Europe/Berlin");
}

fn months_sum_to_all_entered_rows(zone: &str) {
    let zone = &Zone::named(zone).unwrap();
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let [mut healthy, mut restored, mut killed, mut also_killed, mut late] =
        [0, 1, 2, 3, 4].map(|at| TestLedger::of_beginning_at(zone.clone(), at * 10_000));

    // Of two, some rows are never shipped.
    for (book, lost) in [(&mut killed, 50), (&mut also_killed, 7)] {
        book.enter(200);
        let shipper = book.ship(&url, 64);
        shipped(&shipper, 200);
        assert!(shipper.shutdown(WAIT_TIMEOUT));
        book.enter(lost);
    }
    drop((killed, also_killed));

    healthy.enter(300);
    let healthy_shipper = healthy.ship(&url, 100);
    shipped(&healthy_shipper, 300);

    restored.enter(150);
    let files = ledger::export::ExportReader::of(&restored.path()).files().unwrap();
    restored.meanwhile(|_| {
        for file in &files {
            assert!(std::fs::copy(file, backup(file)).unwrap() > 0);
        }
    });
    restored.enter(100);
    let shipper = restored.ship(&url, 100);
    shipped(&shipper, 250);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    restored.meanwhile(|_| {
        for file in &files {
            let _ = std::fs::remove_file(file);
            std::fs::copy(backup(file), file).unwrap();
        }
    });
    // Rows 150 to 249 are in the store only; it goes on with others.
    restored.enter(60);
    let restored_shipper = restored.ship(&url, 100);
    until("it is reported", || restored_shipper.status().error.is_some());
    follow_remedies(&mut owner, &restored_shipper);
    until("all files are sent again", || no_file_waits(&mut owner));
    shipped(&restored_shipper, 150 + 60);

    late.enter(120);
    let known = |late: u64| {
        let rows = (0..300).chain(10_000..10_310).chain(20_000..20_200).chain(30_000..30_200);
        added_up(zone, rows.chain(40_000..40_000 + late))
    };
    for name in MONTHS {
        close(&address(&database), number(name), "finance").unwrap();
    }
    let closed = billed(&database);
    assert_eq!(total(&database), known(0));
    well(&database);

    let late_shipper = late.ship(&url, 50);
    shipped(&late_shipper, 120);
    healthy.enter(10);
    shipped(&healthy_shipper, 310);
    let after = billed(&database);
    for name in MONTHS {
        assert_eq!(after[&number(name)], closed[&number(name)], "{name}");
    }
    let (exchanges, pico) = added_up(zone, (300..310).chain(40_000..40_120));
    assert_eq!(after[&number("2026-11")], (exchanges, pico));
    let (all, later) = (known(120), added_up(zone, 300..310));
    assert_eq!(total(&database), (all.0 + later.0, all.1 + later.1));
    well(&database);

    // Its processes end in order, and the store knows it.
    for (book, shipper) in [(&healthy, healthy_shipper), (&restored, restored_shipper), (&late, late_shipper)]
    {
        assert!(book.end());
        assert!(shipper.shutdown(WAIT_TIMEOUT));
    }
    let mut gaps = central(&database).gaps(&Range::ALL).unwrap();
    gaps.retain(|gap| &*gap.why == Gap::UNSHIPPED);
    assert_eq!(gaps.len(), 2, "of the killed: {gaps:?}");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Exchanges of one of two ledgers.
    Enter(usize, u64),
    Ship(usize),
    /// The next month in order, of those that are over.
    Close,
    /// One of the past months.
    Forget(usize),
    SendAgain,
    Reprice(u32),
    Adjust(usize),
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..2_usize, 1..40_u64).prop_map(|(book, rows)| Step::Enter(book, rows)),
        5 => (0..2_usize).prop_map(Step::Ship),
        3 => Just(Step::Close),
        1 => (0..2_usize).prop_map(Step::Forget),
        2 => Just(Step::SendAgain),
        2 => prop_oneof![Just(4), Just(9)].prop_map(Step::Reprice),
        1 => (0..3_usize).prop_map(Step::Adjust),
    ];
    prop::collection::vec(step, 4..14)
}

proptest! {
    #![proptest_config(chance::cases(3))]

    /// Whatever arrives, is sent again, corrected or forgotten.
    #[test]
    #[ignore = "needs PostgreSQL"]
    fn closed_month_never_changes(
        history in history(),
        zone in prop::sample::select(&["UTC", "Europe/Berlin", "Pacific/Pago_Pago"][..]),
    ) {
        let zone = &Zone::named(zone).unwrap();
        let database = shared().database();
        let (url, at) = (shared().url(&database), address(&database));
        let mut owner = shared().client(&database).unwrap();
        schema::ensure(&mut owner).unwrap();
        let mut books = [0, 1].map(|book| TestLedger::of_beginning_at(zone.clone(), book * 10_000));
        let mut sent = [0_u64; 2];
        let mut closed: BTreeMap<Month, (u64, i128)> = BTreeMap::new();
        let first = [Step::Enter(0, 30), Step::Enter(1, 30), Step::Ship(0), Step::Ship(1)];
        let last = [Step::Enter(0, 20), Step::SendAgain, Step::Ship(0), Step::Ship(1)];
        for step in first.into_iter().chain(history).chain(last) {
            match step {
                Step::Enter(book, rows) => books[book].enter(rows),
                Step::Ship(book) => {
                    let entered = books[book].entered() - book as u64 * 10_000;
                    let shipper = books[book].ship(&url, 16);
                    shipped(&shipper, entered);
                    assert!(shipper.shutdown(WAIT_TIMEOUT));
                    sent[book] = entered;
                }
                Step::Close => {
                    // Late rows make a month of their own, August.
                    for name in ["2026-07", "2026-08", "2026-09", "2026-10"].map(number) {
                        if closed.last_key_value().is_some_and(|(last, _)| *last >= name) {
                            continue;
                        }
                        match close(&at, name, "ann") {
                            Ok(_) => drop(closed.insert(name, billed(&database).remove(&name).unwrap_or_default())),
                            Err(error) if error.to_string().contains("no ledger file of it") => continue,
                            Err(error) => assert!(error.to_string().contains("is being sent again"), "{error}"),
                        }
                        break;
                    }
                }
                Step::Forget(month) => {
                    let forget = format!("SELECT tokenmeter.forget('{}')", MONTHS[month]);
                    owner.batch_execute(&forget).unwrap();
                }
                Step::SendAgain => owner
                    .batch_execute("SELECT tokenmeter.send_again(instance) FROM tokenmeter.file WHERE late_of IS NULL AND NOT is_central")
                    .unwrap(),
                Step::Reprice(price) => {
                    reprice(&at, price).unwrap();
                    assert_eq!(reprice(&at, price).unwrap(), 0);
                }
                Step::Adjust(month) => drop(adjust(&at, &adjustment("outage", MONTHS[month])).unwrap()),
            }
            let now = billed(&database);
            for (month, sums) in &closed {
                assert_eq!(&now.get(month).copied().unwrap_or_default(), sums, "{step:?}");
            }
            let rows = sent.iter().zip([0, 10_000]).flat_map(|(sent, first)| first..first + sent);
            let exchanges: u64 = now.values().map(|(exchanges, _)| exchanges).sum();
            // Corrections count an exchange that got its first price once more.
            let of_usage = "SELECT coalesce(sum(exchanges), 0)::bigint FROM tokenmeter.line WHERE class = 'usage'";
            let counted: i64 = owner.query_one(of_usage, &[]).unwrap().get(0);
            assert_eq!(counted as u64, added_up(zone, rows).0, "{step:?}");
            assert!(exchanges >= counted as u64);
            well(&database);
        }
    }
}
