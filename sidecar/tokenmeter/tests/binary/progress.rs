//! Long commands: their progress on a terminal, and Ctrl-C.
//!
//! A FIFO in the place of a file makes a command wait for as long as the test needs.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use ledger::source::{Month, Used};
use ledger::testing::{Contents, Place, row, write_month};
use ledger::{Row, month};
use meter::ExchangeId;
use rusqlite::Connection;

use crate::child::{PATIENCE, finished, output, tokenmeter};
use crate::screen::Screen;

/// January 2020. The ledger has this month and the next one, and the one after that is open.
const FIRST: Month = 600;

/// Exchanges of each month, all without a price.
const ROWS: u64 = 300;

/// More time than passes before progress is shown.
const LONG: Duration = Duration::from_millis(1_500);

const PRICES: &str = "version: v\ncurrency: USD\nmodels:\n- {pattern: '*', input: 3, output: 11}\n";

struct Ledger {
    folder: Place,
    path: String,
}

impl Ledger {
    fn new() -> Self {
        let folder = Place::new();
        for of in [FIRST, FIRST + 1] {
            let rows: Vec<(Month, Row, Option<Used>)> =
                (0..ROWS).map(|n| (of, unpriced(of, n), None)).collect();
            write_month(
                &folder.ledger(),
                of,
                false,
                &Contents { rows: rows.iter().collect(), ..Contents::default() },
            );
        }
        write_month(&folder.ledger(), FIRST + 2, true, &Contents::default());
        fs::write(folder.path("prices.yaml"), PRICES).unwrap();
        let path = folder.ledger().to_str().unwrap().to_owned();
        Self { folder, path }
    }

    fn verify(&self) -> (Option<i32>, String, String) {
        output(&["ledger", "verify", "--ledger", &self.path])
    }

    fn reprice_with(&self, prices: &str) -> Command {
        let prices = self.folder.path(prices);
        let range = ["--since", "2020-01", "--until", "2020-03", "--who", "a"];
        let mut command = tokenmeter(&["ledger", "reprice", "--ledger", &self.path, "--prices"]);
        command.arg(prices).args(range);
        command
    }

    /// Returns the charges of a report.
    fn spend(&self) -> String {
        let flags = ["--by", "month,model,unpriced", "--format", "csv"];
        let (code, stdout, stderr) = output(&[&["spend", "--ledger", &self.path][..], &flags].concat());
        assert_eq!(code, Some(0), "{stderr}");
        stdout
    }
}

fn unpriced(of: Month, n: u64) -> Row {
    let ended_us = month::begin_us(of) + 1_000_000 + i64::try_from(n).unwrap();
    let id = ExchangeId::new(ended_us.unsigned_abs() * 1_000, n.into());
    // Each seventh row has no price.
    Row { id, started_us: ended_us - 5_000, ended_us, ..row(7 * n) }
}

/// A file whose reader waits until it is written.
struct Fifo(PathBuf);

impl Fifo {
    fn new(path: PathBuf) -> Self {
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success(), "mkfifo {}", path.display());
        Self(path)
    }

    fn write(&self, text: &str) {
        fs::write(&self.0, text).unwrap();
    }
}

/// Starts a command on a terminal, below a shell that prints the exit code as `status 0`.
fn on_terminal(command: &Command, variables: &[(&str, &str)]) -> Screen {
    // A test runner in the background ignores SIGINT, and a shell below it could not trap it.
    let mut shell = Command::new("env");
    shell.args(["--default-signal=INT", "sh", "-c", "trap : INT; \"$0\" \"$@\"; echo \"status $?\""]);
    shell.arg(command.get_program()).args(command.get_args());
    Screen::open(&shell, variables, 24, 100)
}

/// A ledger whose first month is closed, with a FIFO in the place of the sign-off, and the text of that.
fn with_waiting_sign_off() -> (Ledger, Fifo, String) {
    let ledger = Ledger::new();
    let (code, _, stderr) = output(&["ledger", "close", "2020-01", "--ledger", &ledger.path]);
    assert_eq!(code, Some(0), "{stderr}");
    let signed = ledger.folder.path("x-2020-01.json");
    let text = fs::read_to_string(&signed).unwrap();
    fs::remove_file(&signed).unwrap();
    (ledger, Fifo::new(signed), text)
}

fn verify(ledger: &Ledger) -> Command {
    tokenmeter(&["ledger", "verify", "--ledger", &ledger.path])
}

#[test]
fn progress_of_verify_is_removed_at_its_end() {
    let (ledger, sign_off, text) = with_waiting_sign_off();
    let screen = on_terminal(&verify(&ledger), &[]);
    screen.shows("2020-01: reading rows [");
    screen.shows("300 of 300");
    sign_off.write(&text);
    let ended = screen.shows("status 0");
    assert_eq!(ended.matches("  ok  ").count(), 3, "{ended}");
    assert!(!ended.contains("reading"), "{ended}");
}

#[test]
fn import_of_prices_shows_progress() {
    let folder = Place::new();
    let map = Fifo::new(folder.path("map.json"));
    let mut import = tokenmeter(&["prices", "import-litellm"]);
    import.arg(&map.0).arg("--out").arg(folder.path("prices.yaml"));
    let screen = on_terminal(&import, &[]);
    screen.shows("reading (");
    map.write(r#"{"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}"#);
    let ended = screen.shows("status 0");
    assert!(!ended.contains("reading") && !ended.contains("importing ("), "{ended}");
    assert!(fs::read_to_string(folder.path("prices.yaml")).unwrap().contains("name: \"m\""));
}

#[test]
fn interrupted_verify_exits_130() {
    let (ledger, sign_off, text) = with_waiting_sign_off();
    let mut screen = on_terminal(&verify(&ledger), &[("NO_COLOR", "1")]);
    screen.shows("300 of 300");
    screen.press("\x03");
    screen.shows("status 130");
    fs::remove_file(&sign_off.0).unwrap();
    fs::write(&sign_off.0, text).unwrap();
    let (code, stdout, stderr) = ledger.verify();
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
}

#[test]
fn pipe_and_dumb_terminal_have_no_progress() {
    let (ledger, sign_off, text) = with_waiting_sign_off();
    let mut piped = verify(&ledger);
    let piped = piped.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(LONG);
    sign_off.write(&text);
    let (code, stdout, stderr) = finished(piped.wait_with_output().unwrap());
    assert_eq!((code, &*stderr), (Some(0), ""));
    let screen = on_terminal(&verify(&ledger), &[("TERM", "dumb")]);
    thread::sleep(LONG);
    sign_off.write(&text);
    screen.shows("status 0");
    let shown = String::from_utf8(screen.bytes()).unwrap();
    assert_eq!(shown.replace("\r\n", "\n"), stdout + "status 0\n");
}

#[test]
fn interrupted_reprice_is_completed_by_repetition() {
    let undisturbed = Ledger::new();
    let (code, _, stderr) = finished(undisturbed.reprice_with("prices.yaml").output().unwrap());
    assert_eq!(code, Some(0), "{stderr}");
    let ledger = Ledger::new();
    interrupt_in_second_month(&ledger);
    let (code, stdout, stderr) = ledger.verify();
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    let (code, stdout, stderr) = finished(ledger.reprice_with("prices.yaml").output().unwrap());
    assert_eq!((code, &*stderr), (Some(0), ""));
    assert!(stdout.contains("300 corrections were entered"), "the first month has its own already: {stdout}");
    assert_eq!(ledger.spend(), undisturbed.spend());
    let (code, stdout, stderr) = ledger.verify();
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
}

/// Interrupts a repricing that waits for the file of the second month, which another process writes.
fn interrupt_in_second_month(ledger: &Ledger) {
    let prices = Fifo::new(ledger.folder.path("fifo.yaml"));
    let second = Connection::open(ledger.folder.path("x-2020-02.db")).unwrap();
    second.execute_batch("BEGIN IMMEDIATE").unwrap();
    let end = Instant::now() + PATIENCE;
    loop {
        let mut screen = on_terminal(&ledger.reprice_with("fifo.yaml"), &[]);
        // It is shown after a second: from then on every step is.
        screen.shows("reading (");
        prices.write(PRICES);
        let shown = screen.until(|text| text.contains("corrections 300") || text.contains("status"));
        screen.press("\x03");
        let ended = screen.shows("status");
        if ended.contains("status 130") {
            break;
        }
        // It does not wait for long.
        assert!(ended.contains("locked") && Instant::now() < end, "{shown}\n{ended}");
    }
    second.execute_batch("ROLLBACK").unwrap();
    fs::remove_file(&prices.0).unwrap();
}
