//! Rows as fast as the ledger accepts them, then at a constant rate: their number, the cost of one, and the time until
//! one is acknowledged.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ledger::{Ledger, Plan, now_us, start};

use crate::rows::Traffic;
use crate::{Failure, quantile, threads};

/// Maximum rows that wait: beyond twice as many the ledger keeps totals only.
const WAITING: u64 = 32_768;

/// Rows entered between two readings of the clock.
const BURST: u64 = 64;

/// Rows before the measurement, until the ledger is open and its file has some length.
const WARM_UP: Duration = Duration::from_secs(2);

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // An error here loses nothing of value.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs both, one after the other.
pub(crate) fn run(within: &Path, seconds: u64, rate: u64) -> Result<(), Failure> {
    let folder = Folder(within.join(format!("bench-ledger-{}", std::process::id())));
    fs::create_dir_all(&folder.0)?;
    println!("- Disk: {}; a commit each 256 rows or 50 ms, each with its fsync", threads::disk(&folder.0));
    println!(
        "\n| | rows/s | CPU µs/row | bytes/row | rows/commit | ms/commit | lag p50 ms | lag p99 ms | most ms |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    let so_long = Duration::from_secs(seconds);
    phase(&folder.0.join("full.db"), "as fast as taken", None, so_long)?;
    phase(&folder.0.join("even.db"), &format!("{rate} a second"), Some(rate), so_long)
}

fn phase(path: &Path, name: &str, rate: Option<u64>, so_long: Duration) -> Result<(), Failure> {
    let traffic = Traffic::new();
    let ledger = start(Plan::new(path));
    let mut marks = Marks::default();
    let mut number = enter(&ledger, &traffic, rate, 0, WARM_UP, &mut marks);
    marks.lags.clear();
    let (began, before, cpu) = (Instant::now(), ledger.status(), threads::on_cpu_ns("ledger"));
    number = enter(&ledger, &traffic, rate, number, so_long, &mut marks);
    let (took, after) = (began.elapsed(), ledger.status());
    let cpu = threads::on_cpu_ns("ledger") - cpu;
    if !ledger.shutdown(Duration::from_secs(60)) {
        return Err(format!("the ledger did not end well: {:?}", ledger.status()).into());
    }
    let end = ledger.status();
    if end.rows_total != number || end.shed_rows_total != 0 {
        return Err(format!("{number} rows were entered, and the ledger says {end:?}").into());
    }
    let rows = (after.rows_total - before.rows_total) as f64;
    let commits = (after.commits_total - before.commits_total).max(1) as f64;
    let spent = (after.commit_time - before.commit_time).as_secs_f64();
    let bytes = fs::metadata(path)?.len() as f64 / number as f64;
    let ms = |lag: Option<f64>| lag.map_or("–".to_owned(), |lag| format!("{:.0}", lag * 1e3));
    println!(
        "| {name} | {:.0} | {:.1} | {bytes:.0} | {:.0} | {:.1} | {} | {} | {} |",
        rows / took.as_secs_f64(),
        cpu as f64 / 1e3 / rows,
        rows / commits,
        spent * 1e3 / commits,
        ms(quantile::of(&mut marks.lags, 0.5)),
        ms(quantile::of(&mut marks.lags, 0.99)),
        ms(quantile::of(&mut marks.lags, 1.0)),
    );
    Ok(())
}

/// Rows that wait to be acknowledged, one of each burst, and the times of those acknowledged.
#[derive(Default)]
struct Marks {
    waiting: VecDeque<(u64, Instant)>,
    lags: Vec<f64>,
}

impl Marks {
    fn look(&mut self, acknowledged: u64) {
        while let Some((number, since)) = self.waiting.front()
            && *number < acknowledged
        {
            self.lags.push(since.elapsed().as_secs_f64());
            self.waiting.pop_front();
        }
    }
}

/// Enters rows for this time, from a number on; returns the number after the last.
fn enter(
    ledger: &Ledger,
    traffic: &Traffic,
    rate: Option<u64>,
    first: u64,
    so_long: Duration,
    marks: &mut Marks,
) -> u64 {
    let (began, mut number) = (Instant::now(), first);
    while began.elapsed() < so_long {
        let status = ledger.status();
        marks.look(status.rows_total);
        let due = rate.map_or(u64::MAX, |rate| first + (began.elapsed().as_secs_f64() * rate as f64) as u64);
        if number + BURST > due || status.queued_rows > WAITING {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        marks.waiting.push_back((number, Instant::now()));
        for _ in 0..BURST {
            ledger.enter(traffic.row(number, now_us()));
            number += 1;
        }
    }
    number
}
