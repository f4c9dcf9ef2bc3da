//! Copies of a ledger that is written: what they have, what replaces them, and a ledger restored from them.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{CopyOutcome, MonthCopy, backup};
use crate::running::Ledger;
use crate::source::{DAY_US, Gap, Month, Range, Source};
use crate::testing::{NOON_US, Place, notes, row};
use crate::{Fault, Plan, Row, Store, check, close, files, month, overview, start, verify};

const LONG: Duration = Duration::from_secs(30);

fn october() -> Month {
    month::of(NOON_US)
}

fn november_us() -> i64 {
    month::begin_us(october() + 1) + DAY_US
}

fn written_at(now_us: i64, path: &Path) -> Ledger {
    start(Plan { clock: Arc::new(move || now_us), ..Plan::new(path) })
}

fn acknowledged(ledger: &Ledger, rows: u64) {
    while ledger.status().rows_total < rows {
        assert!(ledger.status().fault_message.is_none(), "{:?}", ledger.status());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn of_november(n: u64) -> Row {
    Row { ended_us: november_us() + i64::try_from(n).unwrap(), ..row(n) }
}

/// A closed October of ten rows, and a November of five that a proxy has open.
fn two_months(place: &Place) -> Ledger {
    let ledger = written_at(NOON_US, &place.ledger());
    (0..10).for_each(|n| ledger.enter(row(n)));
    assert!(ledger.shutdown(LONG));
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let ledger = written_at(november_us(), &place.ledger());
    (100..105).for_each(|n| ledger.enter(of_november(n)));
    acknowledged(&ledger, 5);
    ledger
}

fn copies(place: &Place, folder: &Place) -> Vec<MonthCopy> {
    backup(&place.ledger(), folder.as_ref(), november_us() + 5).unwrap()
}

#[track_caller]
fn all_are(copies: &[MonthCopy], done: CopyOutcome) {
    assert!(copies.iter().all(|copy| copy.done.as_ref() == Ok(&done)), "{copies:#?}");
}

fn differences(path: &Path) -> Vec<String> {
    let verdicts = verify(path, None).unwrap();
    verdicts.iter().flat_map(|verdict| &verdict.differences).map(ToString::to_string).collect()
}

/// Rows by month, and the gaps.
fn contents(path: &Path) -> (Vec<(Month, u64)>, Vec<Gap>) {
    let (store, mut months) = (Store::open_read(path).unwrap(), std::collections::BTreeMap::new());
    store
        .rows(&Range::ALL, &mut |month, _, _| {
            *months.entry(month).or_default() += 1;
            Ok(())
        })
        .unwrap();
    (months.into_iter().collect(), store.gaps(&Range::ALL).unwrap())
}

#[test]
fn backup_beside_a_writer_restores_its_ledger() {
    let (place, folder) = (Place::new(), Place::new());
    let ledger = two_months(&place);
    let (is_over, other) = (Arc::new(AtomicBool::new(false)), ledger.clone());
    let over = Arc::clone(&is_over);
    let writer = std::thread::spawn(move || {
        let mut rows = 1_000..;
        while !over.load(Ordering::Relaxed) {
            rows.by_ref().take(20).for_each(|n| other.enter(of_november(n)));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let first = copies(&place, &folder);
    all_are(&first, CopyOutcome::Copied);
    acknowledged(&ledger, first[1].rows + 50);
    let second = copies(&place, &folder);
    is_over.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(
        second.iter().map(|copy| copy.done.clone()).collect::<Vec<_>>(),
        [Ok(CopyOutcome::Unchanged), Ok(CopyOutcome::Copied)]
    );
    assert!(first[0].rows == 10 && second[1].rows > first[1].rows, "{first:?} {second:?}");
    assert_eq!(folder.names(), ["x-2026-10.db", "x-2026-10.json", "x.db", "x.db.lock"]);
    let copy = folder.ledger();
    assert_eq!(differences(&copy), Vec::<String>::new());
    assert!(fs::metadata(folder.path("x-2026-10.db")).unwrap().permissions().readonly());
    // The disk is lost.
    drop((ledger, place));
    let place = Place::new();
    for name in folder.names() {
        fs::copy(folder.path(&name), place.path(&name)).unwrap();
    }
    let at_backup = contents(&place.ledger());
    assert_eq!(at_backup, (vec![(october(), 10), (october() + 1, second[1].rows)], Vec::new()));
    let ledger = written_at(november_us() + 60, &place.ledger());
    ledger.enter(of_november(7));
    acknowledged(&ledger, 1);
    assert!(ledger.shutdown(LONG));
    let (rows, gaps) = contents(&place.ledger());
    assert_eq!(rows, [(october(), 10), (october() + 1, second[1].rows + 1)]);
    let gaps: Vec<_> = gaps.iter().map(|gap| (gap.from_us, gap.until_us, &*gap.why)).collect();
    assert_eq!(
        gaps,
        [(november_us(), november_us() + 60, "restored")],
        "what was entered after the backup is missing"
    );
    assert_eq!(differences(&place.ledger()), Vec::<String>::new());
}

#[test]
fn copy_without_its_log_is_reported() {
    let (place, folder) = (Place::new(), Place::new());
    let ledger = two_months(&place);
    for name in ["x-2026-10.db", "x-2026-10.json", "x.db"] {
        fs::copy(place.path(name), folder.path(name)).unwrap();
    }
    // Twice: reading makes an empty log.
    for _ in 0..2 {
        let found = differences(&folder.ledger());
        assert!(found.contains(&check::LACKS_LOG.to_owned()), "{found:?}");
        let lacks = |place: &Place| {
            let files = overview(&place.ledger()).unwrap().files;
            files.into_iter().map(|part| part.facts.unwrap().lacks_log).collect::<Vec<_>>()
        };
        assert_eq!((lacks(&folder), lacks(&place)), (vec![false, true], vec![false, false]));
    }
    let copied = copies(&folder, &Place::new());
    assert!(copied[0].done.is_ok() && copied[1].done.is_err(), "{copied:?}");
    assert_eq!(differences(&place.ledger()), Vec::<String>::new(), "the ledger itself has its log");
    // With its log it is whole, also after a command wrote that back.
    let crashed = place.copy();
    assert_eq!(differences(&crashed.ledger()), Vec::<String>::new());
    let amendment = crate::Amendment {
        what: "looked",
        who: "ann",
        detail: "{}",
        at_us: november_us(),
        rates: &[],
        corrections: &[],
    };
    crate::LedgerFolder::open(&crashed.ledger()).amend(&amendment).unwrap();
    assert_eq!(files::length(&crashed.path("x.db-wal")), 0);
    assert_eq!(differences(&crashed.ledger()), Vec::<String>::new());
    assert!(ledger.shutdown(LONG));
}

#[test]
fn copy_is_replaced_only_by_a_complete_one() {
    let (place, folder) = (Place::new(), Place::new());
    let ledger = two_months(&place);
    let early = Place::new();
    all_are(&copies(&place, &early), CopyOutcome::Copied);
    (200..300).for_each(|n| ledger.enter(of_november(n)));
    acknowledged(&ledger, 105);
    all_are(&copies(&place, &folder), CopyOutcome::Copied);
    assert!(ledger.shutdown(LONG));
    let good = fs::read(folder.ledger()).unwrap();
    let refused = |message: &str| {
        let copies = copies(&place, &folder);
        assert_eq!(copies[0].done, Ok(CopyOutcome::Unchanged));
        let error = copies[1].done.clone().unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert_eq!(fs::read(folder.ledger()).unwrap(), good);
        assert_eq!(folder.names(), ["x-2026-10.db", "x-2026-10.json", "x.db", "x.db.lock"]);
    };
    let whole = fs::read(place.ledger()).unwrap();
    let mut damaged = whole.clone();
    damaged[4096 * 3..4096 * 8].fill(0xa5);
    fs::write(place.ledger(), damaged).unwrap();
    refused("");
    // An earlier state, put back: it has fewer rows, and then others.
    fs::copy(early.ledger(), place.ledger()).unwrap();
    refused("it has 105 rows of the table exchange, and the ledger has 5");
    let ledger = written_at(november_us() + 60, &place.ledger());
    (400..600).for_each(|n| ledger.enter(of_november(n)));
    acknowledged(&ledger, 200);
    assert!(ledger.shutdown(LONG));
    refused("its row 105 of the table exchange differs");
    // Another file.
    fs::remove_file(place.ledger()).unwrap();
    let ledger = written_at(november_us() + 60, &place.ledger());
    ledger.enter(of_november(1));
    acknowledged(&ledger, 1);
    assert!(ledger.shutdown(LONG));
    refused("it is the copy of another file of the same month");
    // A copy that is damaged is no copy.
    fs::write(place.ledger(), &whole).unwrap();
    fs::write(folder.ledger(), "this is none").unwrap();
    assert!(matches!(copies(&place, &folder)[1].done, Ok(CopyOutcome::Replaced(_))));
    assert_eq!(differences(&folder.ledger()), Vec::<String>::new());
}

#[test]
fn damaged_copy_is_quarantined_and_replaced() {
    let (place, folder) = (Place::new(), Place::new());
    assert!(two_months(&place).shutdown(LONG));
    all_are(&copies(&place, &folder), CopyOutcome::Copied);
    let whole = fs::read(folder.ledger()).unwrap();
    for pages in [3..8, 8..whole.len() / 4096, 1..whole.len() / 4096] {
        let mut damaged = fs::read(folder.ledger()).unwrap();
        damaged[pages.start * 4096..pages.end * 4096].fill(0xa5);
        fs::write(folder.ledger(), &damaged).unwrap();
        let done = copies(&place, &folder)[1].done.clone();
        let Ok(CopyOutcome::Replaced(quarantined)) = done else { panic!("{done:?}") };
        assert_eq!(fs::read(quarantined).unwrap(), damaged);
        assert_eq!(differences(&folder.ledger()), [""; 0]);
    }
    // A damaged ledger replaces nothing.
    let mut damaged = fs::read(folder.ledger()).unwrap();
    damaged[4096 * 3..4096 * 8].fill(0xa5);
    for path in [folder.ledger(), place.ledger()] {
        fs::write(path, &damaged).unwrap();
    }
    assert!(copies(&place, &folder)[1].done.is_err());
    assert_eq!(fs::read(folder.ledger()).unwrap(), damaged);
}

#[test]
fn other_ledgers_folder_is_refused_unwritten() {
    let place = Place::new();
    assert!(two_months(&place).shutdown(LONG));
    let (stopped, its_copies, fork) = (Place::new(), Place::new(), Place::new());
    let ledger = written_at(NOON_US, &stopped.ledger());
    ledger.enter(row(1));
    assert!(ledger.shutdown(LONG));
    let two = Place::new();
    assert!(two_months(&two).shutdown(LONG));
    all_are(&copies(&two, &its_copies), CopyOutcome::Copied);
    all_are(&copies(&place, &fork), CopyOutcome::Copied);
    let ledger = written_at(november_us() + 60, &fork.ledger());
    ledger.enter(of_november(200));
    assert!(ledger.shutdown(LONG));
    fs::remove_file(fork.path("x-2026-10.db")).unwrap();
    for folder in [&stopped, &its_copies, &fork] {
        let before: Vec<_> = folder.names().iter().map(|name| fs::read(folder.path(name)).unwrap()).collect();
        let names = folder.names();
        let message = backup(&place.ledger(), folder.as_ref(), november_us() + 90).unwrap_err().message;
        let id = |path: &Path| {
            let file = crate::file::File::open_read(path).unwrap();
            crate::digest::hex(&crate::file::bytes(&file.connection, "instance").unwrap().unwrap())
        };
        let ids = files::list(&folder.ledger()).unwrap().iter().any(|path| message.contains(&id(path)));
        assert!(ids && message.contains(&id(&place.ledger())), "{message}");
        assert_eq!(folder.names(), names);
        for (name, before) in names.iter().zip(before) {
            assert!(fs::read(folder.path(name)).unwrap() == before, "{name} is as it was");
        }
    }
}

#[test]
fn copy_without_its_original_is_kept_and_named() {
    let (place, folder) = (Place::new(), Place::new());
    assert!(two_months(&place).shutdown(LONG));
    all_are(&copies(&place, &folder), CopyOutcome::Copied);
    for name in ["x-2026-10.db", "x-2026-10.json"] {
        fs::remove_file(place.path(name)).unwrap();
    }
    let copy = folder.path("x-2026-10.db");
    let kept = copies(&place, &folder).pop().unwrap();
    assert_eq!(
        kept,
        MonthCopy { path: copy.clone(), month: Some(october()), rows: 10, done: Ok(CopyOutcome::Kept) },
        "the copy of October"
    );
    close::read_only(&copy, false).unwrap();
    let mut damaged = fs::read(&copy).unwrap();
    damaged[4096 * 8..].fill(0xa5);
    fs::write(&copy, damaged).unwrap();
    let message = copies(&place, &folder).pop().unwrap().done.unwrap_err().message;
    assert!(message.contains("no longer has a file of this month, and its copy is damaged"), "{message}");
}

#[test]
fn restored_ledger_notes_the_gap_in_earlier_months() {
    let (place, folder) = (Place::new(), Place::new());
    let ledger = two_months(&place);
    all_are(&copies(&place, &folder), CopyOutcome::Copied);
    assert!(ledger.shutdown(LONG));
    let noted = |place: &Place, month| notes(&place.ledger(), month, "(restored)");
    assert_eq!(noted(&folder, october()), [""; 0], "it is a copy");
    assert!(written_at(november_us() + 60, &folder.ledger()).shutdown(LONG));
    let gap = "gap (restored) from 2026-11";
    assert_eq!(noted(&folder, october()), [gap]);
    assert_eq!(noted(&folder, october() + 1), [gap]);
    assert_eq!(noted(&folder, october() + 2), [""; 0]);
    assert!(written_at(november_us() + 90, &folder.ledger()).shutdown(LONG));
    assert_eq!(noted(&folder, october()).len(), 1, "once");
    // A process that was killed lost no file.
    let ledger = written_at(november_us() + 60, &place.ledger());
    ledger.enter(of_november(300));
    acknowledged(&ledger, 1);
    let killed = place.copy();
    assert!(written_at(november_us() + 90, &killed.ledger()).shutdown(LONG));
    assert_eq!(contents(&killed.ledger()).1.len(), 1);
    assert_eq!(notes(&killed.ledger(), october(), "gap"), [""; 0]);
    assert!(ledger.shutdown(LONG));
}

#[test]
fn restored_past_month_has_a_gap() {
    let (place, folder) = (Place::new(), Place::new());
    let ledger = written_at(NOON_US, &place.ledger());
    (0..10).for_each(|n| ledger.enter(row(n)));
    assert!(ledger.shutdown(LONG));
    assert!(written_at(november_us(), &place.ledger()).shutdown(LONG));
    all_are(&copies(&place, &folder), CopyOutcome::Copied);
    fs::copy(folder.path("x-2026-10.db"), place.path("x-2026-10.db")).unwrap();
    let closed = place.copy();
    close(&closed.ledger(), october(), "ann", november_us() + 60).unwrap();
    assert_eq!(notes(&closed.ledger(), october(), "(restored)").len(), 1);
    let ledger = written_at(november_us() + 60, &place.ledger());
    ledger.enter(of_november(1));
    acknowledged(&ledger, 1);
    assert_eq!(ledger.status().gaps_total, 1);
    assert!(ledger.shutdown(LONG));
    assert_eq!(notes(&place.ledger(), october(), "(restored)").len(), 1);
    assert_eq!(notes(&place.ledger(), october() + 1, "gap"), [""; 0]);
    assert_eq!(differences(&place.ledger()), [""; 0]);
}

#[test]
fn copy_without_its_log_is_noted() {
    let (place, folder) = (Place::new(), Place::new());
    let ledger = two_months(&place);
    for name in ["x-2026-10.db", "x-2026-10.json", "x.db"] {
        fs::copy(place.path(name), folder.path(name)).unwrap();
    }
    let lacks = |place: &Place, month| notes(&place.ledger(), month, check::LACKS_LOG).len();
    assert_eq!([0, 1, 2].map(|later| lacks(&folder, october() + later)), [1, 1, 0]);
    assert_eq!([0, 1].map(|later| lacks(&place, october() + later)), [0, 0], "it has its log");
    assert!(ledger.shutdown(LONG));
    assert_eq!(lacks(&place, october() + 1), 0, "it needs none");
    // Its proxy enters the gap.
    assert!(written_at(november_us() + 60, &folder.ledger()).shutdown(LONG));
    assert_eq!(lacks(&folder, october() + 1), 0);
    assert_eq!(notes(&folder.ledger(), october(), "(restored)").len(), 1);
}

#[test]
fn report_beside_a_new_proxy_has_no_note() {
    let place = Place::new();
    let ledger = written_at(november_us(), &place.ledger());
    let mut reports = 0;
    while ledger.status().rows_total == 0 {
        if place.ledger().exists() {
            assert_eq!(notes(&place.ledger(), october() + 1, "-wal"), [""; 0]);
            reports += 1;
        }
        if reports == 10 {
            ledger.enter(of_november(1));
        }
    }
    assert_eq!(notes(&place.ledger(), october() + 1, "-wal"), [""; 0]);
    assert!(ledger.shutdown(LONG));
}

#[test]
fn amended_copy_without_its_log_still_lacks_it() {
    let (place, folder) = (Place::new(), Place::new());
    let ledger = two_months(&place);
    fs::copy(place.ledger(), folder.ledger()).unwrap();
    let amendment = crate::Amendment {
        what: "looked",
        who: "ann",
        detail: "{}",
        at_us: november_us(),
        rates: &[],
        corrections: &[],
    };
    crate::LedgerFolder::open(&folder.ledger()).amend(&amendment).unwrap();
    assert!(differences(&folder.ledger()).contains(&check::LACKS_LOG.to_owned()));
    assert!(ledger.shutdown(LONG));
}

#[test]
fn copy_is_renamed_when_its_month_ends() {
    let (place, folder) = (Place::new(), Place::new());
    let ledger = written_at(NOON_US, &place.ledger());
    (0..10).for_each(|n| ledger.enter(row(n)));
    acknowledged(&ledger, 10);
    all_are(&copies(&place, &folder), CopyOutcome::Copied);
    assert!(ledger.shutdown(LONG));
    fs::remove_file(place.ledger()).unwrap();
    let ledger = written_at(november_us(), &place.ledger());
    ledger.enter(of_november(1));
    acknowledged(&ledger, 1);
    let done: Vec<_> = copies(&place, &folder).into_iter().map(|copy| copy.done).collect();
    assert_eq!(done, [Ok(CopyOutcome::Copied), Ok(CopyOutcome::Kept)]);
    assert_eq!(folder.names(), ["x-2026-10.db", "x.db", "x.db.lock"]);
    assert_eq!(contents(&folder.ledger()).0, [(october(), 10), (october() + 1, 1)]);
    assert!(ledger.shutdown(LONG));
}

#[test]
fn folder_that_cannot_be_the_backups_is_refused() {
    let place = Place::new();
    let refused = |path: &Path, folder: &Path| backup(path, folder, NOON_US).unwrap_err();
    assert!(refused(&place.ledger(), &place.path("nowhere")).message.contains("create or mount it"));
    assert!(refused(&place.ledger(), place.as_ref()).message.contains("name another one"));
    assert!(refused(&place.ledger(), Place::new().as_ref()).message.contains("check the path"));
    let ledger = two_months(&place);
    let other = Place::new();
    let writer = written_at(NOON_US, &other.ledger());
    writer.enter(row(1));
    acknowledged(&writer, 1);
    assert_eq!(refused(&place.ledger(), other.as_ref()).fault, Fault::Locked, "it is written");
    assert!(writer.shutdown(LONG) && ledger.shutdown(LONG));
}

/// A month that began beside a file that another program was reading had a name of its own until then.
#[test]
fn copy_under_a_former_name_is_removed() {
    let (place, folder) = (Place::new(), Place::new());
    assert!(two_months(&place).shutdown(LONG));
    let former = files::of_month(&folder.ledger(), october() + 1);
    fs::copy(place.ledger(), &former).unwrap();
    all_are(&copies(&place, &folder), CopyOutcome::Copied);
    assert!(!former.exists());
    assert_eq!(differences(&folder.ledger()), [""; 0]);
    assert_eq!(contents(&folder.ledger()).0, contents(&place.ledger()).0);
}

#[test]
fn one_file_under_two_names_is_no_ledger() {
    let place = Place::new();
    assert!(two_months(&place).shutdown(LONG));
    let twice = files::of_month(&place.ledger(), october() + 1);
    fs::copy(place.ledger(), &twice).unwrap();
    let message = Store::open_read(&place.ledger()).err().unwrap().message;
    assert!(message.contains("the same ledger file as") && message.contains("count twice"), "{message}");
    assert!(differences(&place.ledger()).iter().any(|text| text.contains("the same ledger file as")));
}

#[test]
fn restored_copy_of_stopped_ledger_has_gap() {
    let (place, folder) = (Place::new(), Place::new());
    assert!(two_months(&place).shutdown(LONG));
    all_are(&copies(&place, &folder), CopyOutcome::Copied);
    assert_eq!(differences(&folder.ledger()), [""; 0]);
    let restored = written_at(november_us() + DAY_US, &folder.ledger());
    restored.enter(of_november(7));
    acknowledged(&restored, 1);
    assert!(restored.shutdown(LONG));
    let gaps = contents(&folder.ledger()).1;
    assert_eq!(gaps.iter().map(|gap| &*gap.why).collect::<Vec<_>>(), ["restored"]);
}
