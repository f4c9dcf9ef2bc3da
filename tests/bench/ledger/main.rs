//! The ledger alone: rows per second, the cost of a row, and the times of reports, verifications and a start after a
//! crash with a large ledger.
//!
//! `tests/bench/run ledger …` builds and runs it; `tests/bench/performance.md` explains the numbers.

mod ask;
mod fill;
#[path = "../proxy/quantile.rs"]
mod quantile;
mod reprice;
mod rows;
mod threads;
mod write;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// An error for people; no code depends on its kind.
type Failure = Box<dyn std::error::Error>;

const HELP: &str = "\
bench-ledger write [--folder DIR] [--seconds N] [--rate ROWS]
bench-ledger fill FILE.db [--rows N] [--months N]
bench-ledger ask FILE.db [--times N] [--tokenmeter PATH]
bench-ledger reprice FILE.db

  write  rows as fast as they are taken, then at an even rate; a new ledger in DIR, removed at the end
           --folder DIR   on the disk to be measured (default: here)
           --seconds N    of each of the two (default 20)
           --rate ROWS    the even rate, a second (default 20000)
  fill   makes a ledger, through the ledger's own writer
           --rows N       (default 10000000)
           --months N     the last of which is the present one (default 4)
  ask    of a large ledger: spend by tenant and month, verify, and a start after a crash
           --times N      how often spend is asked (default 5)
           --tokenmeter PATH  (default: the one beside this one)
  reprice  all of a large ledger by another price file, twice: time and memory";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["write", options @ ..] => write(options),
        ["fill", path, options @ ..] => fill(path, options),
        ["ask", path, options @ ..] => ask(path, options),
        ["reprice", path] => reprice::run(Path::new(path)),
        // One of the two.
        ["charge", path] => reprice::charge(Path::new(path)),
        // The part that is killed.
        ["enter", path] => ask::enter(Path::new(path)),
        _ => Err(HELP.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench-ledger: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn write(options: &[&str]) -> Result<(), Failure> {
    let (mut folder, mut seconds, mut rate) = (PathBuf::from("."), 20, 20_000);
    each(options, |option, value| {
        match option {
            "--folder" => folder = value.into(),
            "--seconds" => seconds = value.parse()?,
            "--rate" => rate = value.parse()?,
            _ => return Err(HELP.into()),
        }
        Ok(())
    })?;
    write::run(&folder, seconds, rate)
}

fn fill(path: &str, options: &[&str]) -> Result<(), Failure> {
    let (mut rows, mut months) = (10_000_000, 4);
    each(options, |option, value| {
        match option {
            "--rows" => rows = value.parse()?,
            "--months" => months = value.parse()?,
            _ => return Err(HELP.into()),
        }
        Ok(())
    })?;
    fill::run(Path::new(path), rows, months)
}

fn ask(path: &str, options: &[&str]) -> Result<(), Failure> {
    let (mut times, mut tokenmeter) = (5, std::env::current_exe()?.with_file_name("tokenmeter"));
    each(options, |option, value| {
        match option {
            "--times" => times = value.parse()?,
            "--tokenmeter" => tokenmeter = value.into(),
            _ => return Err(HELP.into()),
        }
        Ok(())
    })?;
    ask::run(Path::new(path), times, &tokenmeter)
}

fn each(options: &[&str], mut take: impl FnMut(&str, &str) -> Result<(), Failure>) -> Result<(), Failure> {
    for pair in options.chunks(2) {
        let [option, value] = pair else { return Err(HELP.into()) };
        take(option, value).map_err(|failure| format!("{option} {value}: {failure}"))?;
    }
    Ok(())
}
