//! A process that closes, reprices, adjusts or backs up a month of a ledger, for tests to kill.
//!
//! usage: clerk close|reprice|adjust|backup LEDGER FOLDER

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use ledger::source::Range;
use scribe::months::{CLOSED, NOW_US};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [command, ledger, folder] = arguments.as_slice() else {
        eprintln!("usage: clerk close|reprice|adjust|backup LEDGER FOLDER");
        return ExitCode::from(2);
    };
    match run(command, Path::new(ledger), Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, ledger: &Path, folder: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
    match command {
        "close" => ledger::close(ledger, CLOSED, "clerk", NOW_US).map(drop)?,
        "reprice" => {
            let text = "version: again\ncurrency: USD\nmodels:\n- {pattern: '*', input: 3, output: 11}\n";
            let (book, _) = price::Book::read(text).map_err(|wrong| format!("{wrong:?}"))?;
            let again = report::Reprice {
                range: Range::ALL,
                filters: &[],
                unpriced_only: false,
                book: &book,
                who: "clerk",
                at_us: NOW_US,
            };
            report::reprice(ledger, &again)?;
        }
        "adjust" => {
            let credit = ledger::Adjustment::new(
                "tenant-1",
                -50_000_000_000_000,
                price::Currency::USD,
                CLOSED,
                "outage",
            )?;
            ledger::adjust(ledger, &credit, "clerk", NOW_US)?;
        }
        "backup" => {
            for copy in ledger::backup(ledger, folder, NOW_US)? {
                copy.done?;
            }
        }
        other => return Err(format!("no command: {other}").into()),
    }
    Ok(())
}
