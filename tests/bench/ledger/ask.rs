//! Reads of a large ledger: a report, a verification, and a start after its writer was killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ledger::{Plan, Store, now_us, start, verify};
use ledger::{Range, Source};

use crate::rows::Traffic;
use crate::{Failure, quantile, threads};

/// Run time of the writer that is killed.
const WRITES: Duration = Duration::from_secs(3);

/// Runs all three.
pub(crate) fn run(path: &Path, times: u32, tokenmeter: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    println!("- Disk: {}", threads::disk(folder));
    contents(path)?;
    spend(path, times, tokenmeter)?;
    let began = Instant::now();
    let verdicts = verify(path, None)?;
    let rows: u64 = verdicts.iter().map(|verdict| verdict.rows).sum();
    println!("- verify: {rows} rows in {:.1} s", began.elapsed().as_secs_f64());
    if let Some(verdict) = verdicts.iter().find(|verdict| !verdict.differences.is_empty()) {
        return Err(format!("the rows differ from the written ones: {verdict:?}").into());
    }
    crash(path)
}

/// Prints its size. It is read first, so that it is in memory for the later reads: a report is usually made twice.
fn contents(path: &Path) -> Result<(), Failure> {
    let store = Store::open_read(path)?;
    let (mut lines, mut exchanges) = (0_u64, 0);
    store
        .daily_totals(&Range::ALL, &mut |_, line| {
            lines += 1;
            exchanges += line.sums.exchanges;
            Ok(())
        })
        .map_err(|trouble| trouble.to_string())?;
    let bytes: u64 =
        store.months().map(|(_, path)| std::fs::metadata(path).map_or(0, |data| data.len())).sum();
    println!(
        "- {exchanges} exchanges, {lines} lines, {} files of {:.2} GB, {:.0} bytes a row",
        store.months().count(),
        bytes as f64 / 1e9,
        bytes as f64 / exchanges as f64
    );
    Ok(())
}

fn spend(path: &Path, times: u32, tokenmeter: &Path) -> Result<(), Failure> {
    let mut seconds = Vec::new();
    for _ in 0..times {
        let began = Instant::now();
        let output = Command::new(tokenmeter)
            .args(["spend", "--by", "tenant,month", "--ledger"])
            .arg(path)
            .output()
            .map_err(|error| format!("{}: {error}", tokenmeter.display()))?;
        if !output.status.success() {
            return Err(format!("spend: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        seconds.push(began.elapsed().as_secs_f64());
    }
    let mut of = |share| quantile::of(&mut seconds, share).unwrap_or_default();
    println!("- spend --by tenant,month: {:.2} s [{:.2}–{:.2}]", of(0.5), of(0.0), of(1.0));
    Ok(())
}

/// Kills a process that writes, and waits for the next one's first acknowledgement.
fn crash(path: &Path) -> Result<(), Failure> {
    let mut child =
        Command::new(std::env::current_exe()?).arg("enter").arg(path).stdout(Stdio::piped()).spawn()?;
    let out = child.stdout.take().ok_or("no output")?;
    let mut lines = BufReader::new(out).lines();
    let said = lines.next().ok_or("the writer ended early")??;
    println!("- a start after an end in order, to the first row acknowledged: {said} s");
    std::thread::sleep(WRITES);
    child.kill()?;
    child.wait()?;
    let ledger = start(Plan::new(path));
    let traffic = Traffic::new();
    let began = Instant::now();
    ledger.enter(traffic.row(now_us().unsigned_abs(), now_us()));
    let took = acknowledged(&ledger, began)?;
    println!("- a start after a crash, to the first row acknowledged: {took:.2} s");
    ledger.shutdown(Duration::from_secs(60)).then_some(()).ok_or("the ledger did not end well")?;
    Ok(())
}

fn acknowledged(ledger: &ledger::Ledger, began: Instant) -> Result<f64, Failure> {
    while ledger.status().rows_total == 0 {
        if began.elapsed() > Duration::from_secs(120) {
            return Err(format!("no row is acknowledged: {:?}", ledger.status()).into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(began.elapsed().as_secs_f64())
}

/// Opens the ledger, prints the time that took, and enters rows until it is killed.
pub(crate) fn enter(path: &Path) -> Result<(), Failure> {
    let (began, traffic) = (Instant::now(), Traffic::new());
    let ledger = start(Plan::new(path));
    // Numbers that no other run uses.
    let mut number = now_us().unsigned_abs();
    ledger.enter(traffic.row(number, now_us()));
    println!("{:.2}", acknowledged(&ledger, began)?);
    loop {
        for _ in 0..64 {
            number += 1;
            ledger.enter(traffic.row(number, now_us()));
        }
        std::thread::sleep(Duration::from_millis(8));
    }
}
