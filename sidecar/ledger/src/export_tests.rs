//! Rows that retention deleted before the reader had them.

use std::collections::BTreeSet;

use price::Charge;

use super::{Cursor, ExportReader, ShipBatch};
use crate::file::File;
use crate::month;
use crate::retain;
use crate::source::DAY_US;
use crate::testing::{NOON_US, Place, row};
use crate::txn::Txn;

/// More than one step of retention takes away.
const ROWS: i64 = 2_500;

/// A month that is over, beside the open one.
fn with_october() -> Place {
    let place = Place::new();
    let october = month::of(NOON_US);
    let mut file = File::create(&place.path("x-2026-10.db"), october, NOON_US, |_| Ok(())).unwrap();
    let rows: Vec<_> = (0..ROWS as u64).map(row).collect();
    let mut txn = Txn::begin(&mut file).unwrap();
    let rates = rows.iter().filter_map(|row| match &row.charge {
        Charge::Priced { rate, .. } => Some(&**rate),
        Charge::Unpriced(_) => None,
    });
    txn.rates(rates).unwrap();
    assert_eq!(txn.exchanges(&rows).unwrap(), ROWS as u64);
    txn.commit().unwrap();
    file.rest().unwrap();
    File::create(&place.ledger(), october + 1, NOON_US, |_| Ok(())).unwrap().rest().unwrap();
    place
}

/// One step of retention, long after.
fn step(place: &Place, now_us: i64) -> retain::Next {
    retain::step(&place.ledger(), &crate::Calendar::default(), 20, &|_| true, "test", now_us).unwrap()
}

fn batch(place: &Place, exchange: i64) -> ShipBatch {
    let opened = ExportReader::of(&place.ledger()).open(&place.path("x-2026-10.db")).unwrap();
    opened.batch(Cursor { exchange, ..Cursor::default() }, 1_000, &BTreeSet::new()).unwrap()
}

#[test]
fn rows_deleted_before_export_leave_gap() {
    let place = with_october();
    let later = NOON_US + 100 * DAY_US;
    // The clock is trusted after a day.
    assert_eq!(step(&place, later - DAY_US), retain::Next::Nothing);
    assert_eq!(batch(&place, 0).gaps, []);
    assert_eq!(step(&place, later), retain::Next::Step);
    // Some are still there, and in the totals too.
    for (at, lost) in [(0, 2_500), (1_500, 1_000), (2_400, 100)] {
        assert_eq!(batch(&place, at).taken, lost, "at {at}");
    }
    while step(&place, later) == retain::Next::Step {}
    for (at, lost) in [(0, 2_500), (1_500, 1_000), (2_499, 1), (2_500, 0)] {
        let batch = batch(&place, at);
        assert_eq!((batch.taken, batch.next.exchange, batch.rows.len()), (lost, ROWS, 0), "at {at}");
        assert_eq!(batch.is_empty(), lost == 0, "it is sent once");
        let totals: u64 = batch.usage.iter().map(|line| line.sums.exchanges).sum();
        assert_eq!(totals, if lost > 0 { ROWS as u64 } else { 0 }, "at {at}");
        assert_eq!(batch.rates.len(), if lost > 0 { 2 } else { 0 }, "what the totals name");
        assert_eq!(batch.gaps.len(), usize::from(lost > 0));
        for (number, gap) in batch.gaps {
            assert_eq!((number, gap.lost_rows), (-1 - at, Some(lost)));
            assert!(gap.from_us <= NOON_US && gap.until_us > NOON_US && gap.totals_kept, "{gap:?}");
        }
    }
    // Nothing is entered in a month that is so long over; if it were, it would come by itself.
    let mut file = File::open(&place.path("x-2026-10.db")).unwrap();
    let mut txn = Txn::begin(&mut file).unwrap();
    assert_eq!(txn.exchanges(&[row(ROWS as u64 + 6)]).unwrap(), 1);
    txn.commit().unwrap();
    let late = batch(&place, 0);
    assert_eq!((late.rows.len(), late.usage.len(), late.next.exchange), (1, 0, ROWS + 1));
    assert!(!late.gaps[0].1.totals_kept);
}
