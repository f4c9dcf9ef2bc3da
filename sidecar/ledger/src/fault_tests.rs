//! Disks that are full, that must not be written, that hang: traffic's calls return at once, nothing is
//! lost that is not counted, and when the disk is well again everything is entered, once.
//!
//! The disks are real ones: small file systems in memory, which this test mounts and which therefore
//! need a process that may mount.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::queue::QUEUE_MAX_ITEMS;
use crate::running::Ledger;
use crate::source::{Gap, Range, Source, Used};
use crate::testing::{NOON_US, Place, row};
use crate::{Class, EnergyRow, Fault, Plan, Status, Store, start, verify};

pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A file system of its own.
pub(crate) struct Disk {
    pub(crate) place: Place,
}

impl Disk {
    pub(crate) fn new(kilobytes: u32) -> Self {
        let disk = Self { place: Place::new() };
        run(&["mount", "-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "tmpfs"], &disk.root());
        disk
    }

    fn root(&self) -> PathBuf {
        self.place.as_ref().to_owned()
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.place.ledger()
    }

    pub(crate) fn remount(&self, options: &str) {
        run(&["mount", "-o", &format!("remount,{options}")], &self.root());
    }

    /// To the last byte.
    pub(crate) fn fill(&self) {
        let mut filler = fs::File::create(self.place.path("filler")).unwrap();
        while filler.write(&[0; 4_096]).is_ok() {}
    }

    pub(crate) fn free(&self) {
        fs::remove_file(self.place.path("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.root()).status();
    }
}

#[track_caller]
fn run(command: &[&str], last: &std::path::Path) {
    let done = Command::new(command[0]).args(&command[1..]).arg(last).output().unwrap();
    let output = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{command:?} failed ({output}): these tests mount file systems and need to be root"
    );
}

#[track_caller]
pub(crate) fn until(what: &str, ledger: &Ledger, holds: impl Fn(&Status) -> bool) {
    let end = Instant::now() + LONG;
    while !holds(&ledger.status()) {
        assert!(Instant::now() < end, "it never came that {what}: {:?}", ledger.status());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Exchanges, tokens and money by tenant and model, and the same of what was shed.
fn totals(ledger: &std::path::Path, class: Option<Class>) -> Vec<(String, u64, u64, i128)> {
    let mut sums = std::collections::BTreeMap::<String, (u64, u64, i128)>::new();
    let store = Store::open_read(ledger).unwrap();
    store
        .daily_totals(&Range::ALL, &mut |_, line| {
            if class.is_none_or(|class| class == line.key.class) {
                let sum = sums.entry(format!("{} {}", line.key.tenant, line.key.model)).or_default();
                sum.0 += line.sums.exchanges;
                sum.1 += line.sums.tokens.iter().sum::<u64>();
                sum.2 += line.sums.cost_pico;
            }
            Ok(())
        })
        .unwrap();
    sums.into_iter().map(|(key, (count, tokens, cost))| (key, count, tokens, cost)).collect()
}

fn expected(numbers: impl Iterator<Item = u64>) -> Vec<(String, u64, u64, i128)> {
    let mut sums = std::collections::BTreeMap::<String, (u64, u64, i128)>::new();
    for row in numbers.map(row) {
        let sum = sums.entry(format!("{} {}", row.tenant, row.model)).or_default();
        sum.0 += 1;
        sum.1 += row.tokens.by_type.iter().sum::<u64>();
        sum.2 += row.charge.cost().map_or(0, i128::from);
    }
    sums.into_iter().map(|(key, (count, tokens, cost))| (key, count, tokens, cost)).collect()
}

fn gaps(ledger: &std::path::Path) -> Vec<Gap> {
    Store::open_read(ledger).unwrap().gaps(&Range::ALL).unwrap()
}

#[track_caller]
fn well(ledger: &std::path::Path) {
    for verdict in verify(ledger, None).unwrap() {
        assert_eq!(verdict.differences, []);
    }
}

fn fault(status: &Status, fault: Fault) -> u64 {
    status.faults_total[fault as usize]
}

#[test]
#[ignore = "needs a process that may mount"]
fn writer_waits_for_a_full_disk() {
    let disk = Disk::new(1_024);
    let ledger = start(Plan::new(disk.ledger()));
    (0..100).for_each(|n| ledger.enter(row(n)));
    until("the first are there", &ledger, |status| status.rows_total == 100);
    disk.fill();
    (100..500).for_each(|n| ledger.enter(row(n)));
    until("it is full", &ledger, |status| fault(status, Fault::Full) > 0 && !status.up);
    let status = ledger.status();
    assert!(status.fault_message.unwrap().contains("full"));
    assert!(status.commit_lag > Duration::ZERO);
    disk.free();
    until("the rest is there", &ledger, |status| status.rows_total == 500 && status.up);
    assert!(ledger.shutdown(LONG));
    assert_eq!(totals(&disk.ledger(), None), expected(0..500));
    assert_eq!(gaps(&disk.ledger()), [], "nothing was given up");
    well(&disk.ledger());
}

/// More rows than fit into memory and twice as many as the disk ever takes: detail is given up, totals
/// are not.
#[test]
#[ignore = "needs a process that may mount"]
fn rows_beyond_the_queue_are_in_totals() {
    let disk = Disk::new(1_024);
    let ledger = start(Plan::new(disk.ledger()));
    (0..10).for_each(|n| ledger.enter(row(n)));
    until("the first are there", &ledger, |status| status.rows_total == 10);
    disk.fill();
    let all = QUEUE_MAX_ITEMS as u64 + 5_010;
    (10..all).for_each(|n| ledger.enter(row(n)));
    let status = ledger.status();
    assert_eq!((status.queued_rows, status.shed_rows_total), (QUEUE_MAX_ITEMS as u64, 5_000));
    until("it is full", &ledger, |status| fault(status, Fault::Full) > 0);
    disk.free();
    disk.remount("size=200m");
    until("all is there", &ledger, |status| status.queued_rows == 0 && status.rows_total == all - 5_000);
    assert!(ledger.shutdown(LONG));
    assert_eq!(ledger.status().lost_rows_total, 0);
    assert_eq!(totals(&disk.ledger(), None), expected(0..all));
    assert_eq!(totals(&disk.ledger(), Some(Class::Shed)), expected(all - 5_000..all));
    let found: Vec<_> = gaps(&disk.ledger())
        .into_iter()
        .map(|gap| (gap.why.to_string(), gap.lost_rows, gap.totals_kept))
        .collect();
    assert_eq!(found, [("shed".to_owned(), Some(5_000), true)]);
    well(&disk.ledger());
}

#[test]
#[ignore = "needs a process that may mount"]
fn writer_waits_for_a_read_only_disk() {
    let disk = Disk::new(4_096);
    let ledger = start(Plan::new(disk.ledger()));
    (0..10).for_each(|n| ledger.enter(row(n)));
    until("the first are there", &ledger, |status| status.rows_total == 10);
    assert!(ledger.shutdown(LONG));
    disk.remount("ro");
    // Read where nothing can be written.
    assert_eq!(totals(&disk.ledger(), None), expected(0..10));
    let ledger = start(Plan::new(disk.ledger()));
    (10..20).for_each(|n| ledger.enter(row(n)));
    until("it cannot be written", &ledger, |status| fault(status, Fault::ReadOnly) > 0);
    disk.remount("rw");
    until("it can", &ledger, |status| status.rows_total == 10);
    assert!(ledger.shutdown(LONG));
    assert_eq!(totals(&disk.ledger(), None), expected(0..20));
    well(&disk.ledger());
}

/// The disk never comes back: the end is not held up, and what is lost is counted.
#[test]
#[ignore = "needs a process that may mount"]
fn rows_lost_at_the_end_are_counted() {
    let disk = Disk::new(1_024);
    disk.fill();
    let ledger = start(Plan::new(disk.ledger()));
    (0..30).for_each(|n| ledger.enter(row(n)));
    (0..20).for_each(|n| ledger.energy(EnergyRow::of(&row(n), Used::default())));
    until("it is full", &ledger, |status| !status.up && status.fault_message.is_some());
    let began = Instant::now();
    assert!(!ledger.shutdown(Duration::from_millis(200)));
    assert!(began.elapsed() < Duration::from_secs(10));
    until("they are counted", &ledger, |status| {
        (status.lost_rows_total, status.lost_energies_total, status.rows_total) == (30, 20, 0)
    });
}

/// A start on a disk that filled up since: nothing could be opened to say it in.
#[test]
#[ignore = "needs a process that may mount"]
fn rows_lost_before_first_open_leave_gap() {
    let disk = Disk::new(4_096);
    let at = |us: i64| start(Plan { clock: Arc::new(move || us), ..Plan::new(disk.ledger()) });
    assert!(at(NOON_US).shutdown(LONG));
    let later = NOON_US + 60_000_000;
    for rows in [0, 30] {
        disk.fill();
        let ledger = at(NOON_US);
        until("it is full", &ledger, |status| !status.up && status.fault_message.is_some());
        (0..rows).for_each(|n| ledger.enter(row(n)));
        let is_whole = ledger.shutdown(Duration::from_millis(100));
        assert!(!is_whole || rows == 0, "rows are lost");
        // On a busy machine the thread may still run.
        ledger.shutdown(LONG);
        assert_eq!(ledger.status().lost_rows_total, rows, "without rows nothing is lost");
        disk.free();
        assert!(at(later).shutdown(LONG));
        let found: Vec<_> = gaps(&disk.ledger())
            .into_iter()
            .map(|gap| (gap.why, gap.from_us, gap.until_us, gap.lost_rows))
            .collect();
        let lost = ("lost".into(), NOON_US, NOON_US + 29, Some(30));
        assert_eq!(found, if rows == 0 { vec![] } else { vec![lost] }, "{rows} rows");
    }
}
