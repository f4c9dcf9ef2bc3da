//! Charges, alerts, rejections, and the state that survives a restart.

use crate::BudgetsPlan;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};

use budget::{Budget, Calendar, DAY_US, Observed, Period, Rejection, Webhook};
use metrics::{Format, Metrics};

use super::{BudgetThread, Charges, Hooks, QUEUE_MAX_ITEMS, Refuse, Sums, start};
use crate::budget_state_file::BudgetStateFile;

const UNIT: i64 = 1_000_000_000_000;

/// 2026-11-01.
const DAY_1: i64 = 20_758;

fn at(day: i64, hour: i64) -> i64 {
    (DAY_1 - 1 + day) * DAY_US + hour * 3_600_000_000
}

fn tenant(name: &str) -> Arc<str> {
    name.into()
}

fn budget(name: &str, hard: i64) -> Budget {
    Budget {
        name: name.into(),
        tenants: Vec::new(),
        shared: false,
        period: Period::Month,
        soft: None,
        hard: Some((hard * UNIT).into()),
        enforce: true,
        refuse_unpriced: false,
    }
}

/// The tenants of each call of the gate.
type Gate = Arc<Mutex<Vec<Vec<Arc<str>>>>>;

struct Bench {
    thread_state: BudgetThread,
    charges: Charges,
    metrics: Metrics,
    gate: Gate,
}

fn gate() -> (Gate, Refuse) {
    let gate = Gate::default();
    let told = Arc::clone(&gate);
    let refuse = move |refused: HashMap<Arc<str>, Rejection>| {
        let mut names: Vec<_> = refused.into_keys().collect();
        names.sort();
        told.lock().unwrap().push(names);
    };
    (gate, Box::new(refuse))
}

fn bench(budgets: Vec<Budget>, state_file: BudgetStateFile) -> Bench {
    let metrics = Metrics::new(metrics::Options::default());
    let charges = Charges::default();
    let (gate, refuse) = gate();
    let thread_state = BudgetThread {
        budgets: budget::Budgets::new(budgets, "USD"),
        charges: charges.clone(),
        metrics: metrics.clone(),
        webhook: None,
        state_file,
        refuse,
        undelivered: Vec::new(),
        is_unsaved: false,
        has_rejected: false,
        published_us: None,
        warned: false,
    };
    Bench { thread_state, charges, metrics, gate }
}

impl Bench {
    fn restore(&mut self, now_us: i64, sums: Result<Sums, String>) {
        let (ready, waits) = mpsc::sync_channel(1);
        self.thread_state.restore(Box::new(|_| sums), &ready, now_us);
        waits.recv().unwrap();
    }

    fn page(&self) -> String {
        let mut page = Vec::new();
        self.metrics.scrape(Format::accepted("")).write(Format::accepted(""), &mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    /// Returns the number of alerts of each threshold.
    fn alerts(&self, tenant: &str) -> Vec<(String, u64)> {
        let line = format!("tokenmeter_budget_alerts_total{{tenant=\"{tenant}\",");
        let page = self.page();
        let told = page.lines().filter(|one| one.starts_with(&line)).map(|one| {
            let threshold = one.split("threshold=\"").nth(1).unwrap().split('"').next().unwrap();
            (threshold.to_owned(), one.rsplit(' ').next().unwrap().parse().unwrap())
        });
        told.filter(|(_, times)| *times > 0).collect()
    }
}

fn once(thresholds: &[&str]) -> Vec<(String, u64)> {
    thresholds.iter().map(|name| ((*name).to_owned(), 1)).collect()
}

#[test]
fn charges_update_gauges_alerts_and_rejections() {
    let mut bench = bench(vec![budget("b", 10)], BudgetStateFile::none());
    bench.thread_state.evaluate(at(3, 0));
    assert!(bench.gate.lock().unwrap().is_empty(), "a gate that rejects no tenant is not called");
    for _ in 0..6 {
        bench.charges.charge(&tenant("acme"), at(3, 1), UNIT);
    }
    bench.charges.charge(&tenant("late"), at(0, 1), 20 * UNIT);
    bench.thread_state.evaluate(at(3, 1));
    assert_eq!(bench.alerts("acme"), once(&["50"]));
    let used = "tokenmeter_budget_used_usd{tenant=\"acme\",period=\"month\"} 6";
    assert!(bench.page().lines().any(|line| line.starts_with(used)), "{}", bench.page());
    let limit = "tokenmeter_budget_limit_usd{tenant=\"acme\",period=\"month\",limit=\"hard\"} 10";
    assert!(bench.page().lines().any(|line| line.starts_with(limit)), "{}", bench.page());
    bench.charges.charge(&tenant("acme"), at(3, 2), 4 * UNIT);
    bench.thread_state.evaluate(at(3, 2));
    assert_eq!(bench.alerts("acme"), once(&["50", "80", "100"]));
    assert_eq!(
        bench.alerts("late"),
        once(&["50", "80", "100"]),
        "of October, which cannot be rejected any more"
    );
    bench.thread_state.evaluate(at(30, 23));
    bench.thread_state.evaluate(at(31, 0));
    bench.thread_state.evaluate(at(31, 1));
    let gate = bench.gate.lock().unwrap();
    assert_eq!(*gate, [vec![tenant("acme")], vec![tenant("acme")], vec![]]);
}

#[test]
fn observation_of_a_central_store_counts() {
    let mut bench = bench(vec![budget("b", 10)], BudgetStateFile::none());
    let seen = |units: i64| Observed {
        tenant: tenant("acme"),
        day: i32::try_from(DAY_1).unwrap(),
        ours: 0,
        all: (units * UNIT).into(),
    };
    bench.charges.observe(vec![seen(1)]);
    bench.thread_state.evaluate(at(1, 0));
    bench.charges.observe(vec![seen(12)]);
    bench.thread_state.evaluate(at(1, 1));
    assert_eq!(bench.gate.lock().unwrap().last(), Some(&vec![tenant("acme")]));
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenmeter-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn sent_alerts_survive_a_restart() {
    let folder = Folder::new("state_file");
    let ledger = folder.0.join("spend.db");
    let mut before = bench(vec![budget("b", 10)], BudgetStateFile::beside(&ledger));
    before.charges.charge(&tenant("acme"), at(3, 1), 6 * UNIT);
    before.thread_state.evaluate(at(3, 1));
    before.thread_state.end(at(3, 3));
    let file = folder.0.join("spend.db.budgets.json");
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"acme\""));

    let sums = || Ok(vec![(tenant("acme"), i32::try_from(DAY_1).unwrap(), i128::from(9 * UNIT))]);
    let mut after = bench(vec![budget("b", 10)], BudgetStateFile::beside(&ledger));
    after.restore(at(3, 2), sums());
    after.thread_state.evaluate(at(3, 2));
    assert_eq!(after.alerts("acme"), once(&["80"]), "the alert of 50 % was sent, that of 80 % was not");
    after.thread_state.end(at(3, 3));

    // Without the file, no alert counts as sent.
    std::fs::remove_file(&file).unwrap();
    let mut fresh = bench(vec![budget("b", 10)], BudgetStateFile::beside(&ledger));
    fresh.restore(at(3, 2), sums());
    fresh.thread_state.evaluate(at(3, 2));
    assert_eq!(fresh.alerts("acme"), once(&["50", "80"]));
    fresh.thread_state.end(at(3, 3));

    // With a damaged file, crossed thresholds count as sent, so that no alert repeats.
    std::fs::write(&file, "{").unwrap();
    let mut damaged = bench(vec![budget("b", 10)], BudgetStateFile::beside(&ledger));
    damaged.restore(at(3, 2), sums());
    damaged.thread_state.evaluate(at(3, 2));
    assert_eq!(damaged.alerts("acme"), []);
    damaged.thread_state.end(at(3, 3));
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"acme\""), "the file is written again");
    let mut mended = bench(vec![budget("b", 10)], BudgetStateFile::beside(&ledger));
    mended.restore(at(3, 3), sums());
    mended.thread_state.evaluate(at(3, 3));
    assert_eq!(mended.alerts("acme"), [], "so does the next process");
}

#[test]
fn alerts_of_others_survive_a_restart() {
    let folder = Folder::new("others");
    let ledger = folder.0.join("spend.db");
    let seen = |ours: i64, all: i64| Observed {
        tenant: tenant("acme"),
        day: i32::try_from(DAY_1).unwrap(),
        ours: (ours * UNIT).into(),
        all: (all * UNIT).into(),
    };
    let mut before = bench(vec![budget("b", 10)], BudgetStateFile::beside(&ledger));
    before.restore(at(3, 1), Ok(Vec::new()));
    before.charges.observe(vec![seen(0, 6)]);
    before.thread_state.evaluate(at(3, 1));
    assert_eq!(before.alerts("acme"), [], "others sent it");
    before.thread_state.end(at(3, 2));

    // Before the next observation, its own sums cross the same threshold.
    let mut after = bench(vec![budget("b", 10)], BudgetStateFile::beside(&ledger));
    after.restore(at(3, 3), Ok(vec![(tenant("acme"), i32::try_from(DAY_1).unwrap(), i128::from(6 * UNIT))]));
    after.thread_state.evaluate(at(3, 3));
    assert_eq!(after.alerts("acme"), []);
    after.thread_state.end(at(3, 4));
}

#[test]
fn undelivered_alert_is_sent_after_a_restart() {
    let folder = Folder::new("undelivered");
    let ledger = folder.0.join("spend.db");
    let receiver = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", receiver.local_addr().unwrap());
    drop(receiver);
    let endpoint = budget::Endpoint::parse(&url).unwrap();
    let plan = budget::Plan {
        pause: std::time::Duration::from_millis(1),
        through_proxy: false,
        ..budget::Plan::to(endpoint, None)
    };
    let mut before = bench(vec![budget("b", 10)], BudgetStateFile::beside(&ledger));
    before.thread_state.webhook = Some(Webhook::start(plan).unwrap());
    before.charges.charge(&tenant("acme"), at(3, 1), 6 * UNIT);
    before.thread_state.evaluate(at(3, 1));
    before.thread_state.end(at(3, 2));

    let mut after = bench(vec![budget("b", 10)], BudgetStateFile::beside(&ledger));
    let sums = Ok(vec![(tenant("acme"), i32::try_from(DAY_1).unwrap(), i128::from(6 * UNIT))]);
    after.restore(at(3, 3), sums);
    after.thread_state.evaluate(at(3, 3));
    assert_eq!(after.alerts("acme"), once(&["50"]), "its receiver was down, so it is sent again");
    after.thread_state.end(at(3, 4));
}

#[test]
fn unreadable_ledger_does_not_prevent_the_start() {
    let mut bench = bench(vec![budget("b", 10)], BudgetStateFile::none());
    bench.restore(at(3, 2), Err("the disk is gone".to_owned()));
    bench.charges.charge(&tenant("acme"), at(3, 1), 6 * UNIT);
    bench.thread_state.evaluate(at(3, 2));
    assert_eq!(bench.alerts("acme"), once(&["50"]));
}

#[test]
fn late_sums_count_for_earlier_days_only() {
    let mut bench = bench(vec![budget("b", 10)], BudgetStateFile::none());
    let (ready, receiver) = mpsc::sync_channel(0);
    drop(receiver);
    let today = budget::day_of(&Calendar::default(), at(3, 2));
    let sums = vec![
        (tenant("acme"), today - 1, 6 * i128::from(UNIT)),
        (tenant("acme"), today, 3 * i128::from(UNIT)),
    ];
    bench.thread_state.restore(Box::new(|_| Ok(sums)), &ready, at(3, 2));
    // Today's sum may include charges since the start, which are in `charges`.
    bench.charges.charge(&tenant("acme"), at(3, 2), UNIT);
    bench.thread_state.evaluate(at(3, 2));
    let used = bench
        .page()
        .lines()
        .find(|line| line.starts_with("tokenmeter_budget_used_usd{tenant=\"acme\""))
        .map(|line| line.rsplit(' ').next().unwrap().to_owned());
    assert_eq!(used.as_deref(), Some("7.0"));
}

#[test]
fn queue_is_bounded_and_loses_nothing() {
    let charges = Charges::default();
    for number in 0..QUEUE_MAX_ITEMS + 9 {
        charges.charge(&tenant(&format!("t{number}")), at(1, 0), UNIT);
    }
    charges.charge(&tenant("t0"), at(1, 0), UNIT);
    let pending = charges.take();
    assert!(pending.charged.len() <= QUEUE_MAX_ITEMS + 1);
    let day = i32::try_from(DAY_1).unwrap();
    assert_eq!(pending.charged[&(tenant("t0"), day)], i128::from(2 * UNIT));
    assert_eq!(pending.charged[&(tenant(budget::OTHER), day)], i128::from(9 * UNIT));
}

#[test]
fn thread_evaluates_the_last_charges_at_its_end() {
    let (gate, refuse) = gate();
    let metrics = Metrics::new(metrics::Options::default());
    let hooks = Hooks {
        restore: Box::new(|_| Ok(Vec::new())),
        calendar: Calendar::default(),
        state_file: BudgetStateFile::none(),
        refuse,
    };
    let plan = BudgetsPlan { budgets: vec![budget("b", 1)], ..BudgetsPlan::default() };
    let (charges, running) = start(plan, "USD", &metrics, hooks).unwrap();
    charges.charge(&tenant("acme"), super::now_us(), UNIT);
    running.shutdown();
    assert_eq!(gate.lock().unwrap().last(), Some(&vec![tenant("acme")]));
}

#[test]
fn panic_ends_all_rejections() {
    let (gate, refuse) = gate();
    let failing = move |refused: HashMap<Arc<str>, Rejection>| {
        let over = !refused.is_empty();
        refuse(refused);
        assert!(!over, "the panic of the test");
    };
    let metrics = Metrics::new(metrics::Options::default());
    let hooks = Hooks {
        restore: Box::new(|_| Ok(Vec::new())),
        calendar: Calendar::default(),
        state_file: BudgetStateFile::none(),
        refuse: Box::new(failing),
    };
    let plan = BudgetsPlan { budgets: vec![budget("b", 1)], ..BudgetsPlan::default() };
    let (charges, running) = start(plan, "USD", &metrics, hooks).unwrap();
    charges.charge(&tenant("acme"), super::now_us(), UNIT);
    running.shutdown();
    assert_eq!(gate.lock().unwrap().last(), Some(&vec![]));
}
