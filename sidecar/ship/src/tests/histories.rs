//! Random histories of one ledger and its store: exchanges, shipping, months that are forgotten, backups that are put
//! back, charging again by either of two price books, closing, and questions in between. After each step both say
//! what the oracle has, which knows the exchanges and nothing of files, places or totals.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ledger::source::{DAY_US, Month, Range, Source};
use ledger::{Calendar, Class, Row, Store, Zone, month};
use meter::TokenType;
use postgres::Client;
use proptest::prelude::*;

use super::ledgers::TestLedger;
use super::resend::{backup, central, follow_remedies, no_file_waits, reprice};
use super::rows::NOON_US;
use super::server::{shared, until};

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(u64),
    Worker,
    /// One of the past months.
    Forget(usize),
    Backup,
    Restore,
    Reprice(u32),
    Close,
    SendAgain,
}

/// The past months that [`TestLedger::enter`] enters exchanges of, in order.
const PAST: [&str; 2] = ["2026-07", "2026-09"];

const OPEN: &str = "2026-10";

fn history() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1u64..60).prop_map(Step::Enter),
        4 => Just(Step::Worker),
        1 => (0..PAST.len()).prop_map(Step::Forget),
        2 => Just(Step::Backup),
        2 => Just(Step::Restore),
        3 => prop_oneof![Just(4), Just(9)].prop_map(Step::Reprice),
        1 => Just(Step::Close),
        1 => Just(Step::SendAgain),
    ];
    prop::collection::vec(step, 4..16)
}

proptest! {
    #![proptest_config(chance::cases(6))]

    #[test]
    #[ignore = "needs PostgreSQL"]
    fn store_and_ledger_agree_on_spend(
        history in history(),
        zone in prop::sample::select(&["UTC", "Europe/Berlin", "Pacific/Kiritimati"][..]),
    ) {
        let mut life = Life::begin(Zone::named(zone).unwrap());
        // Something is there, and every month.
        for step in [Step::Enter(30), Step::Worker].into_iter().chain(history).chain([Step::Worker]) {
            life.take(step);
            life.check(step);
        }
    }
}

/// The sums of one source: exchanges, first charge and tokens, by line.
type Sums = BTreeMap<Key, [i128; 2 + TokenType::ALL.len()]>;

/// The file, the day and the names of a line.
type Key = (Month, i32, [String; 4], Option<[u8; 16]>);

#[derive(Debug, PartialEq)]
struct Totals {
    usage: Sums,
    /// By tenant.
    corrections_pico: BTreeMap<String, i128>,
}

/// The contents of a ledger: its exchanges with the file of each, and the price that each was charged again by.
#[derive(Clone, Default)]
struct Held {
    rows: BTreeMap<u64, Month>,
    again: BTreeMap<u64, u32>,
    closed: usize,
}

struct Life {
    zone: Zone,
    book: TestLedger,
    database: String,
    owner: Client,
    file: Held,
    backup: Option<Held>,
    /// The contents of the store: every exchange that was ever shipped, and the corrections of the last time.
    shipped: Held,
    /// Months without rows in the store, and the totals that it has of them instead.
    forgotten: BTreeSet<Month>,
    totals: Sums,
}

impl Life {
    fn begin(zone: Zone) -> Self {
        let database = shared().database();
        let owner = shared().client(&database).unwrap();
        let (file, shipped, totals) = Default::default();
        Self {
            book: TestLedger::of(zone.clone()),
            zone,
            database,
            owner,
            file,
            backup: None,
            shipped,
            forgotten: BTreeSet::new(),
            totals,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Enter(count) => {
                let from = self.book.entered();
                self.book.enter(count);
                for number in from..from + count {
                    let of = month::of(TestLedger::row(number).ended_us);
                    let is_closed = PAST[..self.file.closed].iter().any(|closed| named(closed) == of);
                    self.file.rows.insert(number, if is_closed { named(OPEN) } else { of });
                }
            }
            Step::Worker => self.ship(),
            Step::Forget(which) => {
                let month = named(PAST[which]);
                let before: Sums = self.of_forgotten(&self.shipped.rows, Some(month));
                let done = self.owner.batch_execute(&format!("SELECT tokenmeter.forget('{}')", PAST[which]));
                if done.is_ok() && self.forgotten.insert(month) {
                    self.totals.extend(before);
                }
            }
            Step::Backup => {
                self.book.meanwhile(|path| copy(&folder(path), &backup_folder(path)));
                self.backup = Some(self.file.clone());
            }
            Step::Restore => {
                if let Some(held) = &self.backup {
                    self.book.meanwhile(|path| copy(&backup_folder(path), &folder(path)));
                    self.file = held.clone();
                }
            }
            Step::Reprice(price) => {
                reprice(&self.book, price);
                let counted = self.file.rows.keys().copied().filter(|number| is_counted(*number));
                // A charge that is right already stays as it is.
                let differing: Vec<_> =
                    counted.filter(|number| self.standing(*number) != charge(*number, price)).collect();
                self.file.again.extend(differing.into_iter().map(|number| (number, price)));
            }
            Step::Close => {
                let has_file = |month: &&&str| self.file.rows.values().any(|of| *of == named(month));
                if let Some(next) = PAST.get(self.file.closed).filter(has_file) {
                    ledger::close(&self.book.path(), named(next), "finance", NOON_US + 9 * DAY_US).unwrap();
                    self.file.closed += 1;
                }
            }
            Step::SendAgain => {
                let all = "SELECT tokenmeter.send_again(instance) FROM tokenmeter.file";
                self.owner.batch_execute(all).unwrap();
            }
        }
    }

    fn ship(&mut self) {
        let shipper = self.book.ship(&shared().url(&self.database), 25);
        until("all is shipped", || {
            let status = shipper.status();
            if status.error.as_ref().is_some_and(|error| error.contains("send_again")) {
                follow_remedies(&mut self.owner, &shipper);
                return false;
            }
            let complete = !status.files.is_empty() && status.files.iter().all(|file| file.complete);
            status.up && complete && no_file_waits(&mut self.owner)
        });
        assert!(shipper.shutdown(Duration::from_secs(30)));
        for (number, file) in &self.file.rows {
            self.shipped.rows.entry(*number).or_insert(*file);
        }
        self.shipped.again = self.file.again.clone();
        for (key, sums) in self.of_forgotten(&self.file.rows, None) {
            let totals = self.totals.entry(key).or_default();
            totals.iter_mut().zip(sums).for_each(|(total, sum)| *total = (*total).max(sum));
        }
    }

    /// The sums of the rows of one month, or of all that are forgotten.
    fn of_forgotten(&self, rows: &BTreeMap<u64, Month>, month: Option<Month>) -> Sums {
        let is_asked = |number: u64| {
            let of = month::of(TestLedger::row(number).ended_us);
            month.map_or_else(|| self.forgotten.contains(&of), |month| month == of)
        };
        usage(&self.zone, rows.iter().filter(|(number, _)| is_asked(**number)))
    }

    /// Returns the present cost of an exchange of the file, pico-units; `None` without a price.
    fn standing(&self, number: u64) -> Option<i128> {
        match self.file.again.get(&number) {
            Some(price) => charge(number, *price),
            None => TestLedger::row(number).charge.cost().map(i128::from),
        }
    }

    fn check(&self, step: Step) {
        let local = totals_of(&Store::open_read(&self.book.path()).unwrap());
        let expected = Totals {
            usage: usage(&self.zone, &self.file.rows),
            corrections_pico: corrections(&self.file.again),
        };
        assert_eq!(local, expected, "the ledger, after {step:?}");
        let is_forgotten =
            |number: u64| self.forgotten.contains(&month::of(TestLedger::row(number).ended_us));
        let mut expected = Totals {
            usage: usage(&self.zone, self.shipped.rows.iter().filter(|(number, _)| !is_forgotten(**number))),
            corrections_pico: corrections(&self.shipped.again),
        };
        expected.usage.extend(self.totals.clone());
        if self.shipped.rows.is_empty() {
            return;
        }
        assert_eq!(totals_of(&central(&self.database)), expected, "the store, after {step:?}");
    }
}

fn named(name: &str) -> Month {
    month::read(name).unwrap()
}

fn is_counted(number: u64) -> bool {
    TestLedger::row(number).role.is_counted()
}

/// Returns the cost of an exchange by a book that has one price for every type of token, pico-units.
fn charge(number: u64, price: u32) -> Option<i128> {
    let tokens: u64 = TestLedger::row(number).tokens.by_type.iter().sum();
    Some(i128::from(tokens) * i128::from(price) * 1_000_000)
}

fn usage<'r>(zone: &Zone, rows: impl IntoIterator<Item = (&'r u64, &'r Month)>) -> Sums {
    let (mut sums, calendar) = (Sums::new(), Calendar::of(zone.clone()));
    for (&number, &file) in rows {
        let Row { ended_us, tenant, model, ending, principal, charge, tokens, .. } =
            TestLedger::row_of(zone, number);
        if !is_counted(number) {
            continue;
        }
        let names = [&*tenant, &*model, &*ending, principal.as_deref().unwrap_or("")].map(str::to_owned);
        let rate = match &charge {
            price::Charge::Priced { rate, .. } => Some(rate.id),
            price::Charge::Unpriced(_) => None,
        };
        let of = sums.entry((file, calendar.day(ended_us), names, rate)).or_default();
        let values = [1, charge.cost().unwrap_or(0).into()].into_iter().chain(tokens.by_type.map(i128::from));
        of.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    sums
}

fn corrections(again: &BTreeMap<u64, u32>) -> BTreeMap<String, i128> {
    let mut sums = BTreeMap::new();
    for (number, price) in again {
        let row = TestLedger::row(*number);
        let first = row.charge.cost().unwrap_or(0);
        *sums.entry(row.tenant.to_string()).or_default() +=
            charge(*number, *price).unwrap_or(0) - i128::from(first);
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

fn totals_of(source: &dyn Source) -> Totals {
    let mut totals = Totals { usage: Sums::new(), corrections_pico: BTreeMap::new() };
    source
        .daily_totals(&Range::ALL, &mut |month, line| {
            if line.key.class == Class::Correction {
                *totals.corrections_pico.entry(line.key.tenant.to_string()).or_default() +=
                    line.sums.cost_pico;
                return Ok(());
            }
            let names = [
                &*line.key.tenant,
                &*line.key.model,
                &*line.key.ending,
                line.key.principal.as_deref().unwrap_or(""),
            ];
            let of = totals
                .usage
                .entry((month, line.key.day, names.map(str::to_owned), line.key.rate))
                .or_default();
            let values = [line.sums.exchanges.into(), line.sums.cost_pico]
                .into_iter()
                .chain(line.sums.tokens.map(i128::from));
            of.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            Ok(())
        })
        .unwrap();
    // Legs have energy and nothing else.
    totals.usage.retain(|_, sums| sums.iter().any(|sum| *sum != 0));
    totals.corrections_pico.retain(|_, sum| *sum != 0);
    totals
}

fn folder(path: &Path) -> PathBuf {
    path.parent().unwrap().to_owned()
}

fn backup_folder(path: &Path) -> PathBuf {
    backup(&folder(path))
}

/// The files of one folder instead of those of another.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::create_dir(to);
    let files = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files(to).filter(|file| file.is_file()).for_each(|file| std::fs::remove_file(file).unwrap());
    for file in files(from).filter(|file| file.is_file()) {
        std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}
