//! The ledger against a model that is a map in memory: whatever is done to it in whatever order, nothing
//! that was acknowledged is lost, nothing is there twice, and the sums are those of the rows.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::running::Ledger;
use crate::source::{DAY_US, Range, Source, Used};
use crate::testing::{NOON_US, Place, row};
use crate::{Clock, EnergyRow, Plan, Row, Store, start, verify};

const LONG: Duration = Duration::from_secs(60);

/// One step of a history.
#[derive(Clone, Debug)]
enum Action {
    /// Rows of these numbers are entered, and what they used.
    Enter(Vec<u64>),
    /// All is acknowledged.
    Wait,
    /// The process is gone, and another one starts on what is on the disk.
    Crash,
    /// It ends in order and starts again.
    Restart,
    /// The disk is gone while rows are entered, and comes back.
    Lose(Vec<u64>),
    /// Time goes on, or back, by days.
    Days(i64),
}

fn action() -> impl Strategy<Value = Action> {
    let rows = || prop::collection::vec(0_u64..200, 1..40);
    prop_oneof![
        6 => rows().prop_map(Action::Enter),
        2 => Just(Action::Wait),
        2 => Just(Action::Crash),
        1 => Just(Action::Restart),
        1 => rows().prop_map(Action::Lose),
        2 => prop_oneof![Just(20_i64), Just(40), Just(-35)].prop_map(Action::Days),
    ]
}

/// The ledger and the model side by side.
struct Both {
    place: Place,
    hands: Arc<AtomicI64>,
    ledger: Ledger,
    /// Every row that was ever entered, and whether it has to be there.
    rows: BTreeMap<u64, (Row, bool)>,
    entered: u64,
    crashes: usize,
}

impl Both {
    fn new() -> Self {
        let (place, hands) = (Place::new(), Arc::new(AtomicI64::new(NOON_US)));
        let ledger = Self::start(&place, &hands);
        Self { place, hands, ledger, rows: BTreeMap::new(), entered: 0, crashes: 0 }
    }

    fn start(place: &Place, hands: &Arc<AtomicI64>) -> Ledger {
        let hands = Arc::clone(hands);
        let clock: Clock = Arc::new(move || hands.load(Ordering::SeqCst));
        let ledger = start(Plan { clock, ..Plan::new(place.ledger()) });
        until(&ledger, |ledger| ledger.status().up);
        ledger
    }

    fn enter(&mut self, numbers: &[u64]) {
        for &n in numbers {
            let now_us = self.hands.load(Ordering::SeqCst);
            let fresh = Row { ended_us: now_us + i64::try_from(n).unwrap(), ..row(n) };
            let (row, _) = self.rows.entry(n).or_insert((fresh, false));
            self.ledger.enter(row.clone());
            self.ledger.energy(EnergyRow::of(row, used(n)));
            self.entered += 1;
        }
    }

    fn wait(&mut self) {
        let entered = self.entered;
        until(&self.ledger, |ledger| {
            let status = ledger.status();
            status.rows_total == entered && status.queued_rows == 0
        });
        self.rows.values_mut().for_each(|(_, sure)| *sure = true);
    }

    fn again(&mut self, place: Option<Place>) {
        if let Some(place) = place {
            self.place = place;
        }
        self.ledger = Self::start(&self.place, &self.hands);
        self.entered = 0;
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Enter(numbers) => self.enter(numbers),
            Action::Wait => self.wait(),
            Action::Crash => {
                self.ledger.abandon();
                let left = self.place.copy();
                self.crashes += 1;
                self.again(Some(left));
                self.compare();
            }
            Action::Restart => {
                assert!(self.ledger.shutdown(LONG), "{:?}", self.ledger.status());
                self.rows.values_mut().for_each(|(_, sure)| *sure = true);
                self.again(None);
                self.compare();
            }
            Action::Lose(numbers) => {
                let away = self.place.as_ref().with_extension("away");
                fs::rename(self.place.as_ref(), &away).unwrap();
                self.enter(numbers);
                until(&self.ledger, |ledger| !ledger.status().up);
                fs::rename(&away, self.place.as_ref()).unwrap();
            }
            Action::Days(days) => {
                self.hands.fetch_add(days * DAY_US, Ordering::SeqCst);
            }
        }
    }

    /// Compares the disk with the rows that must be and those that may be there. Rows that were not acknowledged count
    /// from now on as they were found.
    fn compare(&mut self) {
        let mut found: BTreeMap<u64, (Row, Option<Used>)> = BTreeMap::new();
        let store = Store::open_read(&self.place.ledger()).unwrap();
        store
            .rows(&Range::ALL, &mut |_, row, used| {
                let n = number(row);
                assert!(found.insert(n, (row.clone(), used.copied())).is_none(), "row {n} is there twice");
                Ok(())
            })
            .unwrap();
        let (mut count, mut tokens, mut cost, mut gpu_ns, mut energies) = (0, 0, 0, 0, 0);
        store
            .daily_totals(&Range::ALL, &mut |_, line| {
                count += line.sums.exchanges;
                tokens += line.sums.tokens.iter().sum::<u64>();
                cost += line.sums.cost_pico;
                gpu_ns += line.sums.gpu.gpu_ns;
                energies += line.sums.energy_exchanges;
                Ok(())
            })
            .unwrap();
        for (n, (row, sure)) in &self.rows {
            match found.get(n) {
                Some((read, read_used)) => {
                    assert_eq!(read, row);
                    assert!(*read_used == Some(used(*n)) || read_used.is_none() && !sure, "energy of {n}");
                }
                None => assert!(!sure, "row {n} was acknowledged and is not there"),
            }
        }
        let rows = || found.values().map(|(row, _)| row);
        assert_eq!(count, found.len() as u64);
        assert_eq!(tokens, rows().map(|row| row.tokens.by_type.iter().sum::<u64>()).sum::<u64>());
        assert_eq!(cost, rows().filter_map(|row| row.charge.cost()).map(i128::from).sum::<i128>());
        let known = || found.values().filter_map(|(_, used)| *used);
        assert_eq!(energies, known().count() as u64);
        assert_eq!(gpu_ns, known().map(|used| i128::from(used.gpu_ns.unwrap())).sum::<i128>());
        let crashes = store.gaps(&Range::ALL).unwrap().iter().filter(|gap| &*gap.why == "crash").count();
        assert_eq!(crashes, self.crashes, "each crash leaves a gap and nothing else does");
        for verdict in verify(&self.place.ledger(), None).unwrap() {
            assert_eq!(verdict.differences, [], "{}", verdict.path.display());
        }
        // Whether the energy of one that was found came too is not known; entered again, both are.
        self.rows.retain(|n, (_, sure)| *sure || found.contains_key(n));
    }
}

fn used(n: u64) -> Used {
    Used { gpu_ns: Some(n + 1), gpu_hours_pico: 7, ..Used::default() }
}

/// The number that a row was made of.
fn number(row: &Row) -> u64 {
    row.response_id.as_ref().unwrap().strip_prefix("chatcmpl-").unwrap().parse().unwrap()
}

#[track_caller]
fn until(ledger: &Ledger, holds: impl Fn(&Ledger) -> bool) {
    let end = Instant::now() + LONG;
    while !holds(ledger) {
        assert!(Instant::now() < end, "{:?}", ledger.status());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn any_history_has_the_sums_of_its_rows() {
    TestRunner::new(chance::cases(16))
        .run(&prop::collection::vec(action(), 1..25), |actions| {
            let mut both = Both::new();
            actions.iter().for_each(|action| both.act(action));
            both.act(&Action::Wait);
            both.compare();
            both.act(&Action::Restart);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}
