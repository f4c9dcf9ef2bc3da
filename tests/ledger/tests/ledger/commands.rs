//! Closing, repricing, adjusting and backups, killed at each system call and at random, and repeated: the result equals
//! that of an uninterrupted run. Needs strace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use chance::Chance;
use ledger::source::{Range, Source};
use ledger::{Class, Difference, Store};
use scribe::months;

use crate::syscalls::CALLS;

/// Rows of each month.
const ROWS: u32 = 100;

/// Positions of each system call that an ordinary run tries, spread over all.
const SOME: u32 = 8;

#[test]
#[ignore = "needs strace"]
fn close_killed_anywhere_is_completed_by_repetition() {
    killed_at_each_call("close");
}

#[test]
#[ignore = "needs strace"]
fn reprice_killed_anywhere_charges_once() {
    killed_at_each_call("reprice");
}

#[test]
#[ignore = "needs strace"]
fn adjust_killed_anywhere_charges_once() {
    killed_at_each_call("adjust");
}

#[test]
#[ignore = "needs strace"]
fn backup_that_is_killed_anywhere_leaves_whole_copies() {
    killed_at_each_call("backup");
}

#[test]
#[ignore = "needs strace"]
fn commands_killed_at_random_are_completed_by_repetition() {
    let mut chance = Chance::new(20_261_123);
    let times = if chance::is_long() { 300 } else { 12 };
    let all = Folder::new("random");
    months::write(&all.ledger(), ROWS);
    for command in ["close", "reprice", "adjust", "backup"] {
        let expected = undisturbed(&all, command);
        for _ in 0..times {
            let folder = all.copied();
            let mut clerk = folder.clerk(&[], command).spawn().expect("the clerk can be started");
            std::thread::sleep(Duration::from_micros(chance.below(40_000)));
            // It may have ended.
            let _ = clerk.kill();
            clerk.wait().expect("it was a child");
            finished(&folder, command, &expected, command);
        }
    }
}

fn killed_at_each_call(command: &str) {
    assert!(
        Command::new("strace").arg("-V").output().is_ok(),
        "strace is not installed: apt-get install strace"
    );
    let all = Folder::new(command);
    months::write(&all.ledger(), ROWS);
    let expected = undisturbed(&all, command);
    let mut chance = Chance::new(20_261_124);
    let mut killed = 0;
    for (call, times) in counted(&all, command) {
        let step = if chance::is_long() { 1 } else { times.div_ceil(SOME) };
        let first = 1 + u32::try_from(chance.below(step.into())).expect("it is below a u32");
        for at in (first..=times).step_by(step as usize) {
            let folder = all.copied();
            let inject = format!("inject={call}:signal=KILL:when={at}");
            let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
            let ended = folder.clerk(&strace, command).status().expect("strace can be started");
            killed += u32::from(!ended.success());
            finished(&folder, command, &expected, &format!("{command} {call} {at}"));
        }
    }
    assert!(killed > 10, "only {killed} were killed");
}

/// The number of each system call of an undisturbed clerk.
fn counted(all: &Folder, command: &str) -> BTreeMap<&'static str, u32> {
    let folder = all.copied();
    let log = folder.0.join("strace");
    let trace = format!("trace={}", CALLS.join(","));
    let name = log.to_str().expect("it is UTF-8");
    let strace = ["strace", "-f", "-qq", "-o", name, "-e", &trace];
    assert!(folder.clerk(&strace, command).status().expect("strace can be started").success());
    let mut counts = BTreeMap::new();
    for line in std::fs::read_to_string(&log).expect("strace wrote it").lines() {
        let said = line.split_whitespace().nth(1).unwrap_or_default();
        if let Some(call) = CALLS.into_iter().find(|name| said.starts_with(&format!("{name}("))) {
            *counts.entry(call).or_default() += 1;
        }
    }
    counts
}

/// The contents of a ledger or of its backup.
#[derive(Debug, PartialEq)]
struct Said {
    /// Exchanges, tokens and pico-units by month, day, tenant, model and class.
    lines: BTreeMap<(i32, i32, String, String, Class), [i128; 3]>,
    corrections: usize,
    closed: Vec<Option<String>>,
}

fn undisturbed(all: &Folder, command: &str) -> Said {
    let folder = all.copied();
    assert!(folder.clerk(&[], command).status().expect("the clerk can be started").success());
    said(&folder.outcome(command))
}

fn finished(folder: &Folder, command: &str, expected: &Said, place: &str) {
    // Before the repetition, a reader finds whole files, each of which verifies.
    let copies = folder.outcome(command);
    if !scribe::audit::files(&copies).is_empty() {
        verifies(&copies, place);
    }
    let again = folder.clerk(&[], command).output().expect("the clerk can be started");
    assert!(again.status.success(), "{place}: {}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(&said(&copies), expected, "{place}");
    verifies(&copies, place);
    if command == "backup" {
        verifies(&folder.ledger(), place);
    }
}

fn verifies(ledger: &Path, place: &str) {
    for verdict in ledger::verify(ledger, None).unwrap_or_else(|failure| panic!("{place}: {failure}")) {
        // A close that was cut short is completed by closing again.
        let differs = |found: &&Difference| !matches!(found, Difference::SignOff { .. });
        let differences: Vec<_> = verdict.differences.iter().filter(differs).collect();
        assert!(differences.is_empty(), "{place}: {} {differences:?}", verdict.path.display());
    }
}

fn said(ledger: &Path) -> Said {
    let store = Store::open_read(ledger).expect("it is a ledger");
    let mut said = Said { lines: BTreeMap::new(), corrections: 0, closed: Vec::new() };
    let mut add = |month, line: &ledger::DailyTotal| {
        let names = (line.key.tenant.to_string(), line.key.model.to_string());
        let sums: &mut [i128; 3] =
            said.lines.entry((month, line.key.day, names.0, names.1, line.key.class)).or_default();
        let tokens: u64 = line.sums.tokens.iter().sum();
        let values = [line.sums.exchanges.into(), tokens.into(), line.sums.cost_pico];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        Ok(())
    };
    store.daily_totals(&Range::ALL, &mut add).expect("the lines can be read");
    let mut count = |_, _: &_| {
        said.corrections += 1;
        Ok(())
    };
    store.corrections(&Range::ALL, &mut count).expect("the corrections can be read");
    let folder = ledger.parent().expect("the file is in a folder");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("it can be read")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    for name in names.iter().filter(|name| name.extension().is_some_and(|extension| extension == "json")) {
        said.closed.push(std::fs::read_to_string(name).ok());
    }
    said
}

/// A ledger in a folder, with another folder for its backup; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tokenmeter-clerk-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("backup")).expect("a folder can be made");
        Self(folder)
    }

    fn ledger(&self) -> PathBuf {
        self.0.join("ledger.db")
    }

    /// Returns the ledger that a command changes or makes.
    fn outcome(&self, command: &str) -> PathBuf {
        if command == "backup" { self.0.join("backup").join("ledger.db") } else { self.ledger() }
    }

    /// The same files in another folder.
    fn copied(&self) -> Self {
        let name = self.0.file_name().and_then(|name| name.to_str()).expect("it is UTF-8");
        let copy = Self::new(&format!("{name}-copy"));
        for entry in std::fs::read_dir(&self.0).expect("it can be read") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                std::fs::copy(&path, copy.0.join(path.file_name().expect("a name")))
                    .expect("it can be copied");
            }
        }
        copy
    }

    fn clerk(&self, before: &[&str], command: &str) -> Command {
        let clerk = env!("CARGO_BIN_EXE_clerk");
        let mut words = before.iter().copied().chain([clerk, command]);
        let mut clerk = Command::new(words.next().expect("there is a program"));
        clerk.args(words).arg(self.ledger()).arg(self.0.join("backup"));
        clerk.stdout(Stdio::null()).stderr(Stdio::piped());
        clerk
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
