//! A full, a read-only and a missing disk: no request fails, every row is counted at any time, and the totals are exact
//! once the disk is back.
//!
//! The disks are small file systems in memory, which the tests mount: they need that permission.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::audit::audit;
use super::client::{Ask, Bill};
use super::place::{NOTES, Place, Rows, is_up, server};
use crate::meter_page::{Page, get};
use crate::proxy::{DEADLINE, Proxy};

/// A folder with a subfolder `disk` that is a file system of its own.
struct Disk(Place);

impl Disk {
    fn new() -> Self {
        let disk = Self(Place::new());
        std::fs::create_dir(disk.0.path("disk")).expect("a folder");
        disk.mount(&["-t", "tmpfs", "-o", "size=1024k", "tmpfs"]);
        disk
    }

    #[track_caller]
    fn mount(&self, how: &[&str]) {
        let done = Command::new("mount").args(how).arg(self.0.path("disk")).output().expect("mount runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success(),
            "mount {how:?}: {said}: this test mounts a file system: run it as root"
        );
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path("disk")).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a process that may mount"]
async fn full_disk_affects_the_ledger_only() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let disk = Disk::new();
        let proxy = disk.0.start(server.addr(), "disk/x.db", &[]);
        let mut bill = Bill::default();
        ask(&proxy, &mut bill, 20);
        proxy.page_when("all is on the disk", |page| Rows::of(page).acknowledged == 20);
        fill(&disk.0.path("disk/filler"));
        ask(&proxy, &mut bill, 300);
        in_trouble(&proxy, "full", bill.exchanges());
        std::fs::remove_file(disk.0.path("disk/filler")).expect("it was there");
        well_again(&proxy, &bill);
        drop(proxy);
        exact(&disk.0, "disk/x.db", &bill);
    });
}

/// The process ends while the disk is full, by either signal: the next one has a gap with the times of all that is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a process that may mount"]
async fn exchanges_lost_on_a_full_disk_are_in_a_gap() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        for is_killed in [false, true] {
            let disk = Disk::new();
            let mut proxy = disk.0.start(server.addr(), "disk/x.db", &[]);
            let mut ended_us = Vec::new();
            for exchanges in 1..=320 {
                if exchanges == 20 {
                    proxy.page_when("all is on the disk", |page| Rows::of(page).acknowledged == 19);
                    fill(&disk.0.path("disk/filler"));
                }
                ask(&proxy, &mut Bill::default(), 1);
                ended_us.push(ledger::now_us());
            }
            in_trouble(&proxy, "full", 320);
            if is_killed {
                proxy.kill();
            } else {
                proxy.terminate();
                assert_eq!(proxy.ended(DEADLINE).code(), Some(0), "the loss is noted");
                assert!(proxy.log().contains("the next start enters a gap"), "{}", proxy.log());
            }
            std::fs::remove_file(disk.0.path("disk/filler")).expect("it was there");
            let proxy = disk.0.start(server.addr(), "disk/x.db", &[]);
            proxy.page_when("it is open", is_up);
            drop(proxy);
            // They were sent one after the other, and the first ones are there.
            let first = usize::try_from(audit(&disk.0.path("disk/x.db")).rows()).expect("a few");
            assert!((19..320).contains(&first), "nothing was lost, so this tests nothing: {first}");
            let found = gaps(&disk.0, "disk/x.db");
            let covers =
                |gap: &&(String, i64, i64, Option<i64>)| gap.1 <= ended_us[first] && ended_us[318] <= gap.2;
            let gap = found.iter().find(covers).unwrap_or_else(|| panic!("{first} {ended_us:?} {found:?}"));
            let lost = i64::try_from(320 - first).ok();
            let expected = if is_killed { ("crash", None) } else { ("lost", lost) };
            assert_eq!((&*gap.0, gap.3), expected, "{found:?}");
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a process that may mount"]
async fn ledger_waits_for_a_read_only_disk() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let disk = Disk::new();
        disk.mount(&["-o", "remount,ro"]);
        let proxy = disk.0.start(server.addr(), "disk/x.db", &[]);
        let mut bill = Bill::default();
        ask(&proxy, &mut bill, 100);
        in_trouble(&proxy, "read_only", bill.exchanges() + NOTES);
        disk.mount(&["-o", "remount,rw"]);
        well_again(&proxy, &bill);
        drop(proxy);
        exact(&disk.0, "disk/x.db", &bill);
    });
}

/// A process lives while nothing can be written, not even a note. After a process that was killed, the gap of that one
/// covers what it lost; else only its log and its exit code tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a process that may mount"]
async fn loss_on_a_read_only_disk_fails_the_process() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        for is_killed in [false, true] {
            let disk = Disk::new();
            let mut proxy = disk.0.start(server.addr(), "disk/x.db", &[]);
            ask(&proxy, &mut Bill::default(), 5);
            proxy.page_when("all is on the disk", |page| Rows::of(page).acknowledged == 5);
            if is_killed {
                proxy.kill();
            } else {
                proxy.terminate();
                assert_eq!(proxy.ended(DEADLINE).code(), Some(0));
            }
            disk.mount(&["-o", "remount,ro"]);
            let mut proxy = disk.0.start(server.addr(), "disk/x.db", &[]);
            let began_us = ledger::now_us();
            ask(&proxy, &mut Bill::default(), 7);
            proxy.page_when("it waits", |page| !is_up(page) && Rows::of(page).queued >= 7);
            let ended_us = ledger::now_us();
            proxy.terminate();
            assert_eq!(proxy.ended(DEADLINE).code(), Some(1), "{}", proxy.log());
            assert!(proxy.log().contains("this cannot be noted"), "{}", proxy.log());
            disk.mount(&["-o", "remount,rw"]);
            let proxy = disk.0.start(server.addr(), "disk/x.db", &[]);
            proxy.page_when("it is open", is_up);
            drop(proxy);
            let gaps = gaps(&disk.0, "disk/x.db");
            let is_covered = gaps.iter().any(|gap| gap.1 <= began_us && ended_us <= gap.2);
            assert_eq!(is_covered, is_killed, "{gaps:?}");
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a process that may mount"]
async fn ledger_waits_for_a_missing_folder() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let place = Place::new();
        std::fs::create_dir(place.path("gone")).expect("a folder");
        let proxy = place.start(server.addr(), "gone/x.db", &[]);
        let (mut before, mut bill) = (Bill::default(), Bill::default());
        ask(&proxy, &mut before, 20);
        proxy.page_when("all is on the disk", |page| Rows::of(page).acknowledged == 20);
        std::fs::remove_dir_all(place.path("gone")).expect("it was there");
        ask(&proxy, &mut bill, 100);
        proxy.page_when("it is noticed", |page| !is_up(page) && Rows::of(page).all() == 120);
        impaired(&proxy);
        std::fs::create_dir(place.path("gone")).expect("a folder");
        let page = proxy.page_when("it goes on", |page| is_up(page) && Rows::of(page).queued == 0);
        let rows = Rows { acknowledged: 120, queued: 0, shed: 0, lost: 0 };
        assert_eq!(Rows::of(&page), rows);
        drop(proxy);
        // The folder's files are lost with it, and the new file records that.
        exact(&place, "gone/x.db", &bill);
        assert_eq!(said(&place, "gone/x.db"), [("replaced".to_owned(), None)]);
    });
}

/// Exchanges that end faster than the control plane polls, and an outbox for one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a process that may mount"]
async fn full_outbox_loses_no_exchange() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let place = Place::new();
        let proxy = place.start(server.addr(), "x.db", &["--outbox-records", "1"]);
        let mut bill = Bill::default();
        // How many end between two polls depends on the machine.
        let end = Instant::now() + DEADLINE;
        while proxy.page().sum("tokenmeter_dropped_total", &[("what", "record")]) == 0.0 {
            assert!(Instant::now() < end, "the outbox was never full, so this tests nothing");
            ask(&proxy, &mut bill, 100);
        }
        let all = bill.exchanges();
        let page = proxy.page_when("each is entered", |page| Rows::of(page).acknowledged == all);
        assert_eq!(Rows::of(&page), Rows { acknowledged: all, queued: 0, shed: 0, lost: 0 });
        drop(proxy);
        exact(&place, "x.db", &bill);
        assert!(said(&place, "x.db").iter().all(|(why, _)| why == "crash"));
    });
}

/// The gaps: the reason, and the number of lost rows.
fn said(place: &Place, ledger: &str) -> Vec<(String, Option<i64>)> {
    gaps(place, ledger).into_iter().map(|(why, _, _, lost)| (why, lost)).collect()
}

/// The gaps: the reason, the times, and the number of lost rows.
fn gaps(place: &Place, ledger: &str) -> Vec<(String, i64, i64, Option<i64>)> {
    let file = rusqlite::Connection::open(place.path(ledger)).expect("it is there");
    let mut gaps = file
        .prepare("SELECT why, from_us, until_us, lost_rows FROM gap ORDER BY seq")
        .expect("it is a ledger");
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let gaps = gaps.query_map([], read).expect("it is read");
    gaps.collect::<Result<_, _>>().expect("it is read")
}

/// Fills the rest of a disk, to the last page.
fn fill(path: &Path) {
    let mut filler = std::fs::File::create(path).expect("a file");
    while filler.write(&[0; 512]).is_ok() {}
}

/// Sends this number of exchanges of several tenants and models; none may fail.
fn ask(proxy: &Proxy, bill: &mut Bill, exchanges: u64) {
    for number in 0..exchanges {
        let tenant = ["acme", "beta", "gamma"][number as usize % 3];
        let model = ["small", "large"][number as usize % 2];
        bill.ask(proxy.data, Ask { output: 1 + number % 40, ..Ask::of(tenant, model) });
    }
}

/// Checks that the fault is detected, logged and counted, and that no row is missing from the count.
fn in_trouble(proxy: &Proxy, fault: &str, all: u64) -> Page {
    let page = proxy.page_when("it is noticed", |page| {
        let faults = page.sum("tokenmeter_ledger_faults_total", &[("fault", fault)]);
        !is_up(page) && faults > 0.0 && Rows::of(page).all() == all
    });
    assert_eq!(Rows::of(&page).lost, 0);
    impaired(proxy);
    page
}

/// Checks that it is ready, with a line about the ledger.
pub(crate) fn impaired(proxy: &Proxy) -> String {
    let answer = get(proxy.admin, "/readyz").expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\nledger: "), "{answer}");
    answer
}

fn well_again(proxy: &Proxy, bill: &Bill) {
    let page = proxy.page_when("it goes on", |page| is_up(page) && Rows::of(page).queued == 0);
    let rows = Rows::of(&page);
    assert_eq!((rows.acknowledged + rows.shed, rows.lost), (bill.exchanges(), 0), "{rows:?}");
    let answer = get(proxy.admin, "/readyz").expect("it answers");
    assert!(answer.ends_with("\r\n\r\nok\n"), "{answer}");
}

fn exact(place: &Place, ledger: &str, bill: &Bill) {
    assert_eq!(Bill::of_report(&place.spend(ledger, "tenant,model")), *bill);
    let found = audit(&place.path(ledger));
    assert_eq!(found.rows() + found.shed, bill.exchanges());
}
