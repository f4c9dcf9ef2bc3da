//! A large ledger of several months, written by the ledger's own writer with a clock that follows the rows, so that it
//! equals the result of years of traffic.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use ledger::{Ledger, Plan, month, now_us, start};

use crate::Failure;
use crate::rows::Traffic;

/// Maximum rows that wait.
const WAITING: u64 = 32_768;

/// Makes it: this number of rows, evenly over whole months up to the current one.
pub(crate) fn run(path: &Path, rows: u64, months: u64) -> Result<(), Failure> {
    if path.exists() {
        return Err(format!("{} is there already", path.display()).into());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let now = now_us();
    let last = month::of(now);
    let first = last - i32::try_from(months)? + 1;
    let time = Arc::new(AtomicI64::new(month::begin_us(first)));
    let clock = Arc::clone(&time);
    let ledger = start(Plan { clock: Arc::new(move || clock.load(Ordering::Relaxed)), ..Plan::new(path) });
    let traffic = Traffic::new();
    let (began, mut number) = (Instant::now(), 0);
    for each in first..=last {
        // All rows of a month are on the disk before the next begins, as with real traffic.
        settle(&ledger, number)?;
        let from = month::begin_us(each);
        let until = month::begin_us(each + 1).min(now);
        let share = rows / months;
        for n in 0..share {
            let at = from + ((until - from) as i128 * i128::from(n) / i128::from(share)) as i64;
            time.store(at, Ordering::Relaxed);
            if number.is_multiple_of(256) {
                while ledger.status().queued_rows > WAITING {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            ledger.enter(traffic.row(number, at));
            number += 1;
            if number.is_multiple_of(1_000_000) {
                eprintln!("{number} rows, {:.0} a second", number as f64 / began.elapsed().as_secs_f64());
            }
        }
    }
    settle(&ledger, number)?;
    time.store(now_us(), Ordering::Relaxed);
    if !ledger.shutdown(Duration::from_secs(60)) {
        return Err(format!("the ledger did not end well: {:?}", ledger.status()).into());
    }
    println!("{number} rows in {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn settle(ledger: &Ledger, number: u64) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let status = ledger.status();
        if status.shed_rows_total > 0 {
            return Err(format!("the ledger could not keep up: {status:?}").into());
        }
        if status.rows_total == number {
            return Ok(());
        }
        if began.elapsed() > Duration::from_secs(120) {
            return Err(format!("{number} rows were entered, and the ledger says {status:?}").into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
