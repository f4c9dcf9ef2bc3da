//! Repricing of a large ledger by another price file, twice: the time, and the maximum memory.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ledger::Range;
use ledger::now_us;
use price::Book;
use report::Reprice;

use crate::Failure;

/// Another price for every row that has tokens.
const PRICES: &str = "\
version: again
currency: USD
unit: per_million
models:
  - {pattern: '*', input: 0.2, cached_input: 0.01, output: 0.9}
";

/// Runs twice, each in a process of its own: the second reads every correction of the first.
pub(crate) fn run(path: &Path) -> Result<(), Failure> {
    for what in ["reprice", "reprice again"] {
        let output = Command::new(std::env::current_exe()?).arg("charge").arg(path).output()?;
        if !output.status.success() {
            return Err(format!("{what}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        println!("- {what}: {}", String::from_utf8_lossy(&output.stdout).trim());
    }
    Ok(())
}

/// Reprices all of it once, and prints the cost.
pub(crate) fn charge(path: &Path) -> Result<(), Failure> {
    let (book, _) = Book::read(PRICES).map_err(|problems| format!("{problems:?}"))?;
    let asked = Reprice {
        range: Range::ALL,
        filters: &[],
        unpriced_only: false,
        book: &book,
        who: "bench",
        at_us: now_us(),
    };
    let began = Instant::now();
    let done = report::reprice(path, &asked).map_err(|trouble| trouble.to_string())?;
    println!(
        "{} exchanges, {} corrections in {:.1} s, {:.0} MiB at most",
        done.exchanges,
        done.entered,
        began.elapsed().as_secs_f64(),
        peak_mib()?
    );
    Ok(())
}

/// The maximum memory of this process, `VmHWM`.
fn peak_mib() -> Result<f64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}
