//! What a reader is told of rows that retention took away before it came for them.

use price::Charge;

use super::{Cursor, Feed, Parcel};
use crate::entry::Entry;
use crate::file::File;
use crate::month;
use crate::report::source::DAY_US;
use crate::retain;
use crate::testing::{NOON_US, Place, row};

/// More than one step of retention takes away.
const ROWS: i64 = 2_500;

/// A month that is over, beside the open one.
fn with_october() -> Place {
    let place = Place::new();
    let october = month::of(NOON_US);
    let mut file = File::create(&place.path("x-2026-10.db"), october, NOON_US, |_| Ok(())).unwrap();
    let rows: Vec<_> = (0..ROWS as u64).map(row).collect();
    let mut entry = Entry::begin(&mut file).unwrap();
    let rates = rows.iter().filter_map(|row| match &row.charge {
        Charge::Priced { rate, .. } => Some(&**rate),
        Charge::Unpriced(_) => None,
    });
    entry.rates(rates).unwrap();
    assert_eq!(entry.exchanges(&rows).unwrap(), ROWS as u64);
    entry.commit().unwrap();
    file.rest().unwrap();
    File::create(&place.ledger(), october + 1, NOON_US, |_| Ok(())).unwrap().rest().unwrap();
    place
}

/// One step of retention, long after.
fn step(place: &Place, now_us: i64) -> retain::Next {
    retain::step(&place.ledger(), 20, &|_| true, "test", now_us).unwrap()
}

fn parcel(place: &Place, exchange: i64) -> Parcel {
    let opened = Feed::of(&place.ledger()).open(&place.path("x-2026-10.db")).unwrap();
    opened.parcel(Cursor { exchange, ..Cursor::default() }, 1_000).unwrap()
}

#[test]
fn what_retention_took_before_it_was_read_is_a_gap() {
    let place = with_october();
    let later = NOON_US + 100 * DAY_US;
    // The clock is believed after a day.
    assert_eq!(step(&place, later - DAY_US), retain::Next::Nothing);
    assert_eq!(parcel(&place, 0).gaps, []);
    assert_eq!(step(&place, later), retain::Next::Step);
    // A reader at so many; lost to it; the first row it still gets; the gap's number.
    let half =
        [(0, 2_000, 2_001, -1), (1_500, 500, 2_001, -1_501), (2_000, 0, 2_001, 0), (2_400, 0, 2_401, 0)];
    for (at, lost, first, number) in half {
        let parcel = parcel(&place, at);
        assert_eq!(parcel.taken, lost, "at {at}");
        assert_eq!(parcel.next.exchange, ROWS);
        assert_eq!(parcel.rows.first().map(|row| row.id), Some(row(first - 1).id), "at {at}");
        let gaps: Vec<_> = parcel.gaps.iter().map(|(seq, gap)| (*seq, gap.lost_rows.unwrap())).collect();
        assert_eq!(gaps, if lost > 0 { vec![(number, lost)] } else { Vec::new() }, "at {at}");
    }
    while step(&place, later) == retain::Next::Step {}
    for (at, lost) in [(0, 2_500), (1_500, 1_000), (2_499, 1), (2_500, 0)] {
        let parcel = parcel(&place, at);
        assert_eq!((parcel.taken, parcel.next.exchange, parcel.rows.len()), (lost, ROWS, 0), "at {at}");
        assert_eq!(parcel.is_empty(), lost == 0, "it is sent once");
        for (_, gap) in parcel.gaps {
            assert!(gap.from_us <= NOON_US && gap.until_us > NOON_US && !gap.totals_kept, "{gap:?}");
        }
    }
}
