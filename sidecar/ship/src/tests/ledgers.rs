//! Ledgers to ship, and the one check at the end of each test: store and ledger agree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ledger::source::{Correction, DAY_US, DeviceTotal, Range, Share, Source, Used};
use ledger::{Calendar, DailyTotal, EnergyRow, GpuSums, Ledger, Row, Store, TotalKey, Zone, month};
use meter::TokenType;

use super::rows::{NOON_US, at, energy, leg, row};
use super::server::{Place, until};
use crate::{Address, Central, Plan, Shipper, start};

/// A ledger that is being written, in a place of its own.
pub(crate) struct TestLedger {
    ledger: Ledger,
    entered: u64,
    /// Rows entered before the last start.
    before: u64,
    place: Place,
    zone: Zone,
    now_us: Arc<AtomicI64>,
}

impl TestLedger {
    pub(crate) fn new() -> Self {
        Self::of(Zone::UTC)
    }

    /// Returns a ledger of a time zone.
    pub(crate) fn of(zone: Zone) -> Self {
        let place = Place::new().unwrap();
        // The end of October, unless a test sets it.
        let now_us = Arc::new(AtomicI64::new(NOON_US + 10 * DAY_US));
        let ledger = opened(&place.path("x.db"), &zone, &now_us);
        Self { ledger, entered: 0, before: 0, place, zone, now_us }
    }

    /// Sets the ledger's clock.
    pub(crate) fn set_now(&self, now_us: i64) {
        self.now_us.store(now_us, Ordering::Relaxed);
    }

    /// Restarts the ledger with another time zone.
    pub(crate) fn change_zone(&mut self, zone: Zone) {
        self.zone = zone;
        self.meanwhile(|_| {});
    }

    /// Returns a ledger of a time zone whose first row has this number, so that it shares no row with others.
    pub(crate) fn of_beginning_at(zone: Zone, number: u64) -> Self {
        let mut book = Self::of(zone);
        (book.entered, book.before) = (number, number);
        book
    }

    /// Stops it, has something done to the file of its open month, and starts it again.
    pub(crate) fn meanwhile(&mut self, done: impl FnOnce(&Path)) {
        assert!(self.ledger.shutdown(Duration::from_secs(60)));
        done(&self.path());
        self.ledger = opened(&self.path(), &self.zone, &self.now_us);
        self.before = self.entered;
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.place.path("x.db")
    }

    /// The row of a number that is entered: every fourth is of one of two months before, some are legs.
    pub(crate) fn row(number: u64) -> Row {
        let mut row = row(number);
        if number.is_multiple_of(4) {
            row.ended_us -= 40 * DAY_US * (1 + number as i64 % 3 / 2);
        }
        if number % 7 == 3 { leg(row) } else { row }
    }

    /// Returns the row of a number in a ledger of a time zone. For UTC it is [`Self::row`]. For another zone, two of
    /// three rows are at the beginning or the end of their month in that zone, where the month of UTC may be another
    /// one.
    pub(crate) fn row_of(zone: &Zone, number: u64) -> Row {
        let row = Self::row(number);
        if zone.is_utc() {
            return row;
        }
        let calendar = Calendar::of(zone.clone());
        let month = month::of(row.ended_us);
        at(
            row,
            match number % 3 {
                0 => calendar.month_begin_us(month) + number as i64,
                1 => calendar.month_begin_us(month + 1) - 1_000_000 + number as i64,
                _ => month::begin_us(month) + DAY_US + number as i64,
            },
        )
    }

    /// Enters rows, and waits until they are on the disk.
    pub(crate) fn enter_rows(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            self.ledger.enter(row.clone());
            if let Some(energy) = energy(&row, self.entered) {
                self.ledger.energy(EnergyRow::of(&row, energy.used));
            }
            self.entered += 1;
        }
        until("the rows are on the disk", || {
            let status = self.ledger.status();
            status.rows_total == self.entered - self.before && status.queued_rows == 0
        });
    }

    /// Returns the number of rows entered.
    pub(crate) fn entered(&self) -> u64 {
        self.entered
    }

    /// Enters so many more rows, energy among them; waits until they are on the disk.
    pub(crate) fn enter(&mut self, rows: u64) {
        let device = DeviceTotal {
            day: (NOON_US / DAY_US) as i32,
            hw_id: "GPU-1".into(),
            share: Share::Idle,
            sums: GpuSums { energy_nj: 1_000_000_007, gpu_ns: 5, gpu_hours_pico: 3, gpu_energy_pico: 2 },
        };
        self.ledger.device(vec![device]);
        let zone = self.zone.clone();
        self.enter_rows((self.entered..self.entered + rows).map(|number| Self::row_of(&zone, number)));
    }

    /// Enters the GPU use of an exchange whose row was lost, and GPU use of its day without an exchange.
    pub(crate) fn enter_energy_of_lost(&self, number: u64) {
        let row = Self::row(number);
        let used = Used { gpu_ns: Some(number), energy_nj: Some(7), gpu_hours_pico: 5, gpu_energy_pico: 3 };
        self.ledger.energy(EnergyRow::of(&row, used));
        self.ledger.device(vec![DeviceTotal {
            day: (row.ended_us / DAY_US) as i32,
            hw_id: "GPU-2".into(),
            share: Share::Unattributed,
            sums: GpuSums { energy_nj: 11, gpu_ns: 13, gpu_hours_pico: 17, gpu_energy_pico: 19 },
        }]);
        until("the energy is on the disk", || self.ledger.status().queued_rows == 0);
    }

    /// Ends the process that writes it.
    pub(crate) fn end(&self) -> bool {
        self.ledger.shutdown(Duration::from_secs(60))
    }

    /// Starts shipping with short intervals.
    pub(crate) fn ship(&self, url: &str, batch: usize) -> Shipper {
        start(self.plan(url, batch)).unwrap()
    }

    /// Returns a plan with short intervals.
    pub(crate) fn plan(&self, url: &str, batch: usize) -> Plan {
        let plan = Plan::new(&self.path(), Address::parse(url).unwrap(), "host");
        let hurry = Duration::from_millis(5);
        Plan { poll_interval: hurry, retry_delay: hurry, batch_max_rows: batch, ..plan }
    }
}

fn opened(path: &Path, zone: &Zone, now_us: &Arc<AtomicI64>) -> Ledger {
    let (now_us, time_zone) = (Arc::clone(now_us), Some(zone.clone()));
    let clock = Arc::new(move || now_us.load(Ordering::Relaxed));
    ledger::start(ledger::Plan { clock, time_zone, ..ledger::Plan::new(path) })
}

impl Drop for TestLedger {
    fn drop(&mut self) {
        self.ledger.shutdown(Duration::from_secs(10));
    }
}

/// Waits until all is shipped, and the store has what the ledger has.
pub(crate) fn arrives(book: &TestLedger, shipper: &Shipper, url: &str) {
    until("all is shipped", || {
        let status = shipper.status();
        status.up && !status.files.is_empty() && status.files.iter().all(|file| file.complete) && {
            let reached: i64 = status.files.iter().map(|file| file.shipped.exchange).sum();
            reached as u64 == book.entered
        }
    });
    same(&book.path(), url);
}

/// All that a report can read, in one value.
#[derive(Debug, Default, PartialEq)]
struct Everything {
    lines: BTreeMap<String, [i128; 7 + TokenType::ALL.len()]>,
    rows: BTreeMap<[u8; 16], (i32, Row, Option<Used>)>,
    corrections: BTreeMap<[u8; 16], (i32, Correction)>,
    devices: Vec<DeviceTotal>,
    gaps: usize,
    rates: usize,
}

/// Compares every single value of both sides.
pub(crate) fn same(ledger: &Path, url: &str) {
    let local = everything(&Store::open_read(ledger).unwrap());
    let central = everything(&Central::open(&Address::parse(url).unwrap()).unwrap());
    assert_eq!(local.lines, central.lines);
    assert!(local == central, "lines are the same, but not all else");
}

fn everything(source: &dyn Source) -> Everything {
    let mut all = Everything::default();
    source
        .daily_totals(&Range::ALL, &mut |month, line| {
            let sums = all.lines.entry(key(month, line)).or_default();
            let tokens = line.sums.tokens.iter().map(|count| i128::from(*count));
            let values = [
                line.sums.exchanges.into(),
                line.sums.cost_pico,
                line.sums.energy_exchanges.into(),
                line.sums.gpu.energy_nj,
                line.sums.gpu.gpu_ns,
                line.sums.gpu.gpu_hours_pico,
                line.sums.gpu.gpu_energy_pico,
            ];
            for (sum, value) in sums.iter_mut().zip(values.into_iter().chain(tokens)) {
                *sum += value;
            }
            Ok(())
        })
        .unwrap();
    source
        .rows(&Range::ALL, &mut |month, row, used| {
            let before = all.rows.insert(row.id.0, (month, row.clone(), used.copied()));
            assert!(before.is_none(), "a row comes twice");
            Ok(())
        })
        .unwrap();
    source
        .corrections(&Range::ALL, &mut |month, correction| {
            all.corrections.insert(correction.id.0, (month, correction.clone()));
            Ok(())
        })
        .unwrap();
    all.devices = source.devices(&Range::ALL).unwrap();
    all.devices.sort_by_key(|device| (device.day, device.hw_id.clone(), device.share));
    all.gaps = source.gaps(&Range::ALL).unwrap().len();
    all.rates = source.rates().unwrap().len();
    all
}

fn key(month: i32, line: &DailyTotal) -> String {
    let TotalKey { day, tenant, principal, upstream, provider, model, ending, .. } = &line.key;
    let known = (line.key.input_provenance, line.key.output_provenance, line.key.rate, line.key.class);
    format!("{month} {day} {tenant} {principal:?} {upstream} {provider} {model} {ending} {known:?}")
}
