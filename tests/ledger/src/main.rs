//! A process that writes rows into a ledger and prints the number of acknowledged ones, for tests to kill.
//!
//! usage: scribe LEDGER LIFE ROWS BASE_US [ROWS_PER_MS]
//!
//! It prints `begun` once it runs, `acknowledged N` whenever that has changed, `trouble …` when the ledger reports an
//! error, and at its end `ended N` if everything is on the disk.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use ledger::{Ledger, Plan};
use scribe::rows::Place;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next();
    let mut number = || arguments.next().and_then(|text| text.parse::<i64>().ok());
    let (Some(path), Some(life), Some(rows), Some(base_us)) = (path, number(), number(), number()) else {
        eprintln!("usage: scribe LEDGER LIFE ROWS BASE_US [ROWS_PER_MS]");
        return ExitCode::from(2);
    };
    let pace = number().unwrap_or(20);
    let (Ok(life), Ok(rows)) = (u32::try_from(life), u32::try_from(rows)) else { return ExitCode::from(2) };
    let ledger = ledger::start(Plan::new(path));
    let mut told = Told::default();
    say("begun");
    for index in 0..rows {
        ledger.enter(Place { life, index }.row(base_us));
        if i64::from(index) % pace == pace - 1 {
            std::thread::sleep(Duration::from_millis(1));
            told.tell(&ledger);
        }
    }
    while ledger.status().queued_rows > 0 && told.trouble.is_none() {
        std::thread::sleep(Duration::from_millis(1));
        told.tell(&ledger);
    }
    let whole = ledger.shutdown(Duration::from_secs(10));
    told.tell(&ledger);
    if whole {
        say(&format!("ended {}", ledger.status().rows_total));
    }
    ExitCode::SUCCESS
}

/// The last printed state.
#[derive(Default)]
struct Told {
    rows: u64,
    trouble: Option<String>,
}

impl Told {
    fn tell(&mut self, ledger: &Ledger) {
        let status = ledger.status();
        if status.rows_total != self.rows {
            self.rows = status.rows_total;
            say(&format!("acknowledged {}", self.rows));
        }
        if status.fault_message != self.trouble {
            self.trouble = status.fault_message;
            say(&format!("trouble {}", self.trouble.as_deref().unwrap_or("is over")));
        }
    }
}

fn say(what: &str) {
    let mut out = io::stdout().lock();
    // The test has stopped reading.
    let _ = writeln!(out, "{what}").and_then(|()| out.flush());
}
