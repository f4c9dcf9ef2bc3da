//! Two sidecars that share a budget through a real PostgreSQL.

#[allow(
    dead_code,
    unreachable_pub,
    reason = "the test server of another crate, of which not everything is used here"
)]
#[path = "../../ship/src/tests/server.rs"]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use budget::{Budget, Budgets, DAY_US, Observed, Period};
use ledger::{Ledger, Row};
use meter::{ExchangeId, Provenance, TokenType, Tokens};
use price::{Charge, Currency};
use ship::{Address, Plan, Shipper};

use super::{Fleet, OnObserved, start};
use server::{Place, Server, shared, until};

const UNIT: i64 = 1_000_000_000_000;

/// The 15th of October 2026, noon.
const NOON_US: i64 = 1_792_065_600_000_000;

const LONG: Duration = Duration::from_secs(60);

fn budget(hard: i64) -> Budget {
    Budget {
        name: "b".into(),
        tenants: Vec::new(),
        shared: false,
        period: Period::Month,
        soft: None,
        hard: Some((hard * UNIT).into()),
        enforce: true,
        refuse_unpriced: false,
    }
}

/// A sidecar with a shipped ledger and budgets.
struct Sidecar {
    ledger: Ledger,
    shipper: Shipper,
    plan: Plan,
    budgets: Budgets,
    fleet: Fleet,
    entered: u64,
    now_us: i64,
    _place: Place,
}

impl Sidecar {
    fn new(url: &str, now_us: i64) -> Self {
        let place = Place::new().unwrap();
        let path = place.path("x.db");
        let plan = ledger::Plan::new(&path);
        let ledger = ledger::start(ledger::Plan { clock: Arc::new(move || now_us), ..plan });
        let hurry = Duration::from_millis(5);
        let plan = Plan::new(&path, Address::parse(url).unwrap(), "host");
        let plan = Plan { poll_interval: hurry, retry_delay: hurry, ..plan };
        let fleet = Fleet::new(&plan, vec![budget(10)], Currency::USD);
        let budgets = Budgets::new(vec![budget(10)], "USD");
        let shipper = ship::start(plan.clone()).unwrap();
        Self { ledger, shipper, plan, budgets, fleet, entered: 0, now_us, _place: place }
    }

    /// Adds an exchange of `acme` with this cost, and waits until the store has it.
    fn charge(&mut self, units: i64, currency: Currency) {
        self.entered += 1;
        self.ledger.enter(row(units * UNIT, currency, self.now_us));
        if currency == Currency::USD {
            self.budgets.charge("acme", NOON_US, units * UNIT);
        }
        until("it is shipped", || {
            let files = self.shipper.status().files;
            files.iter().map(|file| file.shipped.exchange).sum::<i64>() as u64 == self.entered
        });
    }

    /// Queries the store; returns the spend, and true if `acme` is rejected.
    fn look(&mut self) -> (i128, bool) {
        let all = self.fleet.query(NOON_US).unwrap();
        self.budgets.observe(NOON_US, &all);
        let used = self.budgets.states(NOON_US)[0].used;
        (used / i128::from(UNIT), self.budgets.rejections(NOON_US).contains_key("acme"))
    }
}

fn row(cost: i64, currency: Currency, ended_us: i64) -> Row {
    let mut rate = crate::test_rates::rate(currency, cost);
    rate.id = rate.identify();
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Row {
        id: ExchangeId::new(NOON_US.unsigned_abs() * 1000, number.into()),
        started_us: ended_us - 1,
        ended_us,
        tenant: "acme".into(),
        upstream: "default".into(),
        provider: "vllm".into(),
        dialect: "openai_chat".into(),
        model: "m".into(),
        ending: "complete".into(),
        status: 200,
        streamed: false,
        tokens: Tokens {
            by_type: [0; TokenType::ALL.len()],
            input_provenance: Provenance::Reported,
            output_provenance: Provenance::Reported,
        },
        duration_us: 1,
        charge: Charge::Priced { rate: Arc::new(rate), cost },
        ..Row::default()
    }
}

#[test]
fn two_sidecars_share_a_budget_without_double_counting() {
    let mut server = Server::start();
    let url = server.url(&server.database());
    let (mut one, mut two) = (Sidecar::new(&url, NOON_US), Sidecar::new(&url, NOON_US));
    one.charge(6, Currency::USD);
    assert_eq!((one.look(), two.look()), ((6, false), (6, false)));
    two.charge(3, Currency::USD);
    assert_eq!((one.look(), two.look()), ((9, false), (9, false)));
    two.charge(5, Currency(*b"EUR"));
    assert_eq!((one.look(), two.look()), ((9, false), (9, false)), "currencies are not converted");
    // Spend that is not shipped counts in its own process.
    one.budgets.charge("acme", NOON_US, UNIT);
    assert_eq!((one.look(), two.look()), ((10, true), (9, false)));
    one.ledger.enter(row(UNIT, Currency::USD, NOON_US));
    one.entered += 1;
    one.charge(0, Currency::USD);
    assert_eq!((one.look(), two.look()), ((10, true), (10, true)));

    // An unreachable store changes nothing; a quarantined file still belongs to its process.
    server.down();
    assert!(one.fleet.query(NOON_US).is_err());
    assert_eq!(one.budgets.states(NOON_US)[0].used, i128::from(10 * UNIT));
    server.up();
    assert!(one.ledger.shutdown(LONG));
    std::fs::rename(&one.plan.ledger, one.plan.ledger.with_extension("db.corrupt-then")).unwrap();
    assert_eq!(one.look(), (10, true));
}

#[test]
fn thread_delivers_results_until_it_is_dropped() {
    let url = shared().url(&shared().database());
    let now_us = ledger::now_us();
    let mut sidecar = Sidecar::new(&url, now_us);
    sidecar.charge(6, Currency::USD);
    let (hears, heard) = mpsc::channel();
    let on_observed = Box::new(move |all| hears.send(all).unwrap());
    let running = start(&sidecar.plan, vec![budget(10)], Currency::USD, on_observed).unwrap();
    let (day, six) = ((now_us / DAY_US) as i32, i128::from(6 * UNIT));
    let all: Vec<Observed> = heard.recv_timeout(LONG).unwrap();
    assert_eq!(all, [Observed { tenant: "acme".into(), day, ours: six, all: six }]);
    drop(running);
    assert_eq!(heard.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn panic_does_not_end_the_thread() {
    let url = shared().url(&shared().database());
    let mut sidecar = Sidecar::new(&url, ledger::now_us());
    sidecar.charge(6, Currency::USD);
    let (hears, heard) = mpsc::channel();
    let (stop, stopped) = mpsc::channel();
    let times = AtomicU32::new(0);
    let on_observed: OnObserved = Box::new(move |_| {
        assert!(times.fetch_add(1, Ordering::Relaxed) > 0, "the panic of the test");
        hears.send(()).unwrap();
    });
    let mut fleet = Fleet::new(&sidecar.plan, vec![budget(10)], Currency::USD);
    fleet.every = Duration::from_millis(1);
    let thread = std::thread::spawn(move || {
        fleet.until(&stopped, &on_observed);
        fleet.trouble
    });
    assert_eq!(heard.recv_timeout(LONG), Ok(()));
    drop(stop);
    assert_eq!(thread.join().unwrap(), None);
}
