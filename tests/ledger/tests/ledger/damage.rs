//! A ledger whose writer was killed, damaged before the next start, with its log still beside it. A report sums the
//! existing rows or returns an error; the next writer records by a gap that rows may be missing.

use std::collections::BTreeMap;
use std::fs;

use chance::Chance;
use ledger::Store;
use ledger::{Range, Source, SourceError};

use crate::life::Desk;

const PAGE: usize = 4096;

/// The files after the kill: the database and its log.
type Files = [Vec<u8>; 2];

const NAMES: [&str; 2] = ["ledger.db", "ledger.db-wal"];

#[test]
fn damage_after_a_kill_is_detected() {
    let mut desk = Desk::new("damage");
    let mut scribe = desk.begin(&[], 1_000_000, 5);
    let enough = |rows: &str| rows.parse::<u32>().is_ok_and(|rows| rows >= 500);
    scribe.hear_until(|said| said.strip_prefix("acknowledged ").is_some_and(enough));
    scribe.kill_after(std::time::Duration::ZERO);
    desk.over(scribe);
    let left: Files =
        NAMES.map(|name| fs::read(desk.folder().join(name)).expect("the file exists after the kill"));
    assert!(left[1].len() > 4 * PAGE, "there is a log: {} bytes", left[1].len());
    let whole = desk.audit().rows;
    let life = desk.lives.clone();

    let (mut noticed, mut shortened) = (0, 0);
    for (what, files) in damages(&left) {
        restore(&desk, &files);
        match sums(&desk) {
            Ok([lines, rows]) => {
                assert_eq!(lines, rows, "{what}: totals are not the sums of their rows");
                shortened += u32::from(rows[0] < i128::from(whole));
            }
            Err(_) => noticed += 1,
        }
        restore(&desk, &files);
        // The audit finds the existing rows; the gap records missing ones.
        desk.lives.clone_from(&life);
        desk.lives[0].acknowledged = 0;
        let said = desk.live(&[], 10, 10);
        assert_eq!(said.last().map(String::as_str), Some("ended 10"), "{what}: {said:?}");
        match desk.try_audit() {
            Ok(found) => assert!(found.gaps > 0, "{what}: {found:?} of {whole}, without a gap"),
            // If the damage was not read yet, a report must return an error.
            Err(wrong) => assert!(sums(&desk).is_err(), "{what}: {wrong}, and no report fails"),
        }
    }
    assert!(noticed > 0, "pages of rows and lines are among those damaged");
    assert!(shortened > 0, "a truncated log is valid up to its end");
}

/// Each page of the database and of the log, single bits of both, and truncated logs; a seeded tenth in an ordinary
/// run.
fn damages(left: &Files) -> Vec<(String, Files)> {
    let mut chance = Chance::new(20_261_123);
    let mut damages = Vec::new();
    let part = if chance::is_long() { 1 } else { 10 };
    for (at, name) in NAMES.iter().enumerate() {
        let mut damage = |what: String, change: &dyn Fn(&mut Vec<u8>)| {
            if chance.below(part) == 0 {
                let mut files = left.clone();
                change(&mut files[at]);
                damages.push((format!("{name}: {what}"), files));
            }
        };
        for page in 0..left[at].len() / PAGE {
            damage(format!("page {page}"), &|file| file[page * PAGE..(page + 1) * PAGE].fill(0xa5));
            if at == 1 {
                damage(format!("ends at page {page}"), &|file| file.truncate(page * PAGE));
            }
        }
        let mut places = Chance::new(20_261_124);
        for _ in 0..100 {
            let bit = places.place(left[at].len() * 8);
            damage(format!("bit {bit}"), &|file| file[bit / 8] ^= 1 << (bit % 8));
        }
    }
    damages
}

/// Replaces the ledger's files by these.
fn restore(desk: &Desk, files: &Files) {
    for entry in fs::read_dir(desk.folder()).expect("the folder") {
        fs::remove_file(entry.expect("an entry").path()).expect("it can be removed");
    }
    for (name, content) in NAMES.iter().zip(files) {
        fs::write(desk.folder().join(name), content).expect("it can be written");
    }
}

/// Exchanges and money, by the daily totals and by the rows.
fn sums(desk: &Desk) -> Result<[[i128; 2]; 2], SourceError> {
    let store = Store::open_read(&desk.ledger())?;
    let mut sums = [[0; 2]; 2];
    store.daily_totals(&Range::ALL, &mut |_, line| {
        sums[0][0] += i128::from(line.sums.exchanges);
        sums[0][1] += line.sums.cost_pico;
        Ok(())
    })?;
    let mut seen = BTreeMap::new();
    store.rows(&Range::ALL, &mut |_, row, _| {
        sums[1][0] += 1;
        sums[1][1] += i128::from(row.charge.cost().unwrap_or(0));
        *seen.entry(row.id.0).or_insert(0) += 1;
        Ok(())
    })?;
    assert_eq!(seen.len() as i128, sums[1][0], "a row is duplicated");
    Ok(sums)
}
