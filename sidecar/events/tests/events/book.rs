//! A ledger that is being written, and a sender with short intervals.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use events::{Endpoint, Plan, Sender, StatusReader, start};
use ledger::source::DAY_US;
use ledger::testing::{NOON_US, Place, row};
use ledger::{Ledger, Row};
use meter::Role;

use crate::receiver::Receiver;

pub(crate) struct Book {
    ledger: Ledger,
    entered: u64,
    /// Rows entered before the last start.
    before: u64,
    pub(crate) place: Place,
}

impl Book {
    pub(crate) fn new() -> Self {
        let place = Place::new();
        Self { ledger: opened(&place.ledger()), entered: 0, before: 0, place }
    }

    /// The row of a number: every fourth is of the month before, every tenth is a prefill leg.
    pub(crate) fn row(number: u64) -> Row {
        let mut row = row(number);
        if number.is_multiple_of(4) {
            row.ended_us -= 40 * DAY_US;
        }
        if number % 10 == 7 {
            row.role = Role::Prefill;
        }
        row
    }

    /// Enters this many more rows, and waits until they are on the disk.
    pub(crate) fn enter(&mut self, rows: u64) {
        (self.entered..self.entered + rows).for_each(|number| self.ledger.enter(Self::row(number)));
        self.entered += rows;
        until("the rows are on the disk", || self.ledger.status().rows_total == self.entered - self.before);
    }

    /// Stops the writer, changes the file of the open month by a function, and starts it again.
    pub(crate) fn meanwhile(&mut self, done: impl FnOnce(&Path)) {
        assert!(self.ledger.shutdown(Duration::from_secs(60)));
        done(&self.place.ledger());
        self.ledger = opened(&self.place.ledger());
        self.before = self.entered;
    }

    /// The ids of the events that a receiver must have.
    pub(crate) fn ids(&self) -> BTreeSet<String> {
        Self::ids_of(0..self.entered)
    }

    pub(crate) fn ids_of(numbers: std::ops::Range<u64>) -> BTreeSet<String> {
        let rows = numbers.map(Self::row).filter(|row| row.role.is_counted());
        rows.map(|row| row.id.to_string()).collect()
    }

    pub(crate) fn plan(&self, url: &str) -> Plan {
        Plan {
            through_proxy: false,
            attempt_timeout: Duration::from_secs(60),
            poll_interval: Duration::from_millis(5),
            retry_delay: Duration::from_millis(2),
            ..Plan::new(&self.place.ledger(), Endpoint::parse(url).unwrap())
        }
    }

    /// Starts sending to a receiver.
    pub(crate) fn send(&self, receiver: &Receiver) -> Sender {
        start(self.plan(&receiver.url())).unwrap()
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        self.ledger.shutdown(Duration::from_secs(10));
    }
}

fn opened(path: &Path) -> Ledger {
    let plan = ledger::Plan::new(path);
    // The clock stays at the end of October.
    ledger::start(ledger::Plan { clock: Arc::new(|| NOON_US + 10 * DAY_US), ..plan })
}

/// Waits until every event is accepted.
pub(crate) fn arrives(book: &Book, reader: &StatusReader, receiver: &Receiver) {
    until("all events arrive", || {
        let status = reader.status();
        status.up && status.pending == 0 && receiver.seen().events.len() == book.ids().len()
    });
    assert_eq!(receiver.seen().events.into_keys().collect::<BTreeSet<_>>(), book.ids());
}

pub(crate) fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
