//! Rows and energies of one transaction, counted, and the daily totals that they are added to.

use crate::energy::EnergyRow;
use crate::file::File;
use crate::month;
use crate::source::Used;
use crate::testing::{NOON_US, Place, row};
use crate::txn::Txn;
use crate::{Class, Row};

/// Returns the class of each energy in a file, by the number of the row.
fn classes(file: &File) -> Vec<String> {
    let mut statement = file.connection.prepare("SELECT class FROM energy ORDER BY seq").unwrap();
    statement.query_map([], |found| found.get(0)).unwrap().map(Result::unwrap).collect()
}

/// The row of the first exchange is here, that of the second was never written, that of the third is in the file of
/// another month.
#[test]
fn energy_without_row_is_shed_in_its_month() {
    let place = Place::new();
    let mut file = File::create(&place.ledger(), month::of(NOON_US), NOON_US, |_| Ok(())).unwrap();
    let earlier = Row { ended_us: month::begin_us(month::of(NOON_US)) - 1, ..row(3) };
    let energies =
        [row(1), row(2), earlier].map(|row| EnergyRow::of(&row, Used { gpu_ns: Some(5), ..Used::default() }));
    let mut txn = Txn::begin(&mut file).unwrap();
    let unpriced = Row { charge: price::Charge::Unpriced(price::Unpriced::Model), ..row(1) };
    txn.exchanges([&unpriced]).unwrap();
    assert_eq!(txn.energies(&energies).unwrap(), 3);
    txn.commit().unwrap();
    let (usage, shed) = (Class::Usage.name(), Class::Shed.name());
    assert_eq!(classes(&file), [usage, shed, usage]);
}

#[test]
fn repeated_rows_are_not_new() {
    let place = Place::new();
    let mut file = File::create(&place.ledger(), month::of(NOON_US), NOON_US, |_| Ok(())).unwrap();
    let unpriced = |n| Row { charge: price::Charge::Unpriced(price::Unpriced::Model), ..row(n) };
    let rows = [unpriced(1), unpriced(2), unpriced(3)];
    let energies = rows.clone().map(|row| EnergyRow::of(&row, Used::default()));
    for new in [3, 0] {
        let mut txn = Txn::begin(&mut file).unwrap();
        assert_eq!(txn.exchanges(&rows).unwrap(), new);
        assert_eq!(txn.energies(&energies).unwrap(), new);
        txn.commit().unwrap();
    }
}
