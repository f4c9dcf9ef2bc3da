//! The command `ledger`: closes, verifies, copies and reprices a ledger.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};
use ledger::source::SourceError;
use ledger::{
    CopyOutcome, Error, MonthCopy, Overview, Part, Verdict, backup, close, month, overview, verify,
};
use ship::Central;
use ship::address::is_postgres;

use super::closed;
use super::ledger_path::{self, NoLedger};
use super::operator;
use super::reprice::{self, RepriceError};
use crate::plan::machine::ThisMachine;
use crate::plan::store;

/// The subcommands of `ledger`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerArgs {
    /// Close a month.
    Close(Close),
    /// Verify the ledger.
    Verify(Verify),
    /// Show its files.
    Status(Place),
    /// Copy it to another folder.
    Backup(Backup),
    /// Charge it by another price file.
    Reprice(reprice::RepriceArgs),
}

/// The flags that name the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    ledger: Option<String>,
    config: Option<String>,
}

/// The arguments of `ledger close`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    place: Place,
    month: i32,
    who: Option<String>,
    json: bool,
}

/// The arguments of `ledger verify`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    place: Place,
    month: Option<i32>,
}

/// The arguments of `ledger backup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    place: Place,
    folder: PathBuf,
}

impl Place {
    fn of(matches: &ArgMatches) -> Self {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        Self { ledger: text("ledger"), config: text("config") }
    }

    fn named(&self) -> Result<String, LedgerError> {
        ledger_path::named(self.ledger.as_deref(), self.config.as_deref()).map_err(LedgerError::NoLedger)
    }

    fn path(&self) -> Result<PathBuf, LedgerError> {
        let named = self.named()?;
        if is_postgres(&named) { Err(LedgerError::Central) } else { Ok(named.into()) }
    }
}

impl LedgerArgs {
    /// Reads the parsed flags.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let (name, matches) = matches.subcommand().expect("clap requires a subcommand");
        if name == "reprice" {
            return Self::Reprice(reprice::RepriceArgs::of(matches));
        }
        let (place, month) =
            (Place::of(matches), |matches: &ArgMatches| matches.get_one::<i32>("month").copied());
        match name {
            "close" => Self::Close(Close {
                place,
                month: month(matches).expect("clap requires it"),
                who: matches.get_one("who").cloned(),
                json: matches.get_one::<String>("format").is_some_and(|name| name == "json"),
            }),
            "backup" => Self::Backup(Backup {
                place,
                folder: matches.get_one::<PathBuf>("folder").cloned().expect("clap requires it"),
            }),
            "verify" => Self::Verify(Verify { place, month: month(matches) }),
            _ => Self::Status(place),
        }
    }
}

/// The command line of `ledger`.
pub(crate) fn command() -> Command {
    Command::new("ledger")
        .about("Manage a ledger: close, verify, back up, reprice")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("close")
                .about("Close a month: verify and sign it off, make it read-only; later charges are billed in the open month")
                .arg(month_argument().required(true))
                .args(ledger_path::of_files())
                .arg(Arg::new("who").long("who").value_name("NAME").help(
                    "Operator's name, for the sign-off; by default the user of this process",
                ))
                .arg(
                    Arg::new("format")
                        .long("format")
                        .value_name("NAME")
                        .value_parser(["text", "json"])
                        .default_value("text")
                        .help("Text, or the signed document as JSON"),
                ),
        )
        .subcommand(
            Command::new("verify")
                .about("Recompute all sums and hashes, and show differences; exit 1 if there are any")
                .arg(month_argument().help("Verify this month only; by default every month"))
                .args(ledger_path::arguments()),
        )
        .subcommand(
            Command::new("backup")
                .about("Copy every file, even while a proxy writes it, and verify the copies; exit 1 if one fails")
                .after_help(BACKUP)
                .arg(
                    Arg::new("folder")
                        .value_name("DIR")
                        .required(true)
                        .value_parser(clap::value_parser!(PathBuf))
                        .help("Folder of the copies; a second backup to it updates them"),
                )
                .args(ledger_path::of_files()),
        )
        .subcommand(reprice::command())
        .subcommand(
            Command::new("status")
                .about("Show the files, their content and the process that writes them; exit 1 if one is damaged")
                .args(ledger_path::of_files()),
        )
}

fn month_argument() -> Arg {
    Arg::new("month")
        .value_name("MONTH")
        .value_parser(|text: &str| {
            month::read(text)
                .ok_or_else(|| format!("`{}` is no month; write one as 2026-10", text.escape_debug()))
        })
        .help("Month, as in 2026-10")
}

/// Executes the subcommand.
pub(crate) fn run(args: &LedgerArgs) -> Result<ExitCode, LedgerError> {
    match args {
        LedgerArgs::Close(args) => {
            let path = args.place.path()?;
            let who = operator::name(args.who.as_deref(), &ThisMachine);
            let now_us = ledger::now_us();
            let sign_off = close(&path, args.month, &who, now_us).map_err(LedgerError::Ledger)?;
            print(&match args.json {
                true => format!("{:#}", sign_off.document),
                false => closed::summary(&sign_off, &path, now_us),
            });
            if let Some(unpriced @ 1..) = sign_off.document["unpriced_exchanges"].as_u64() {
                warn(&closed::unpriced(unpriced, &month::name(args.month), &path));
            }
            Ok(ExitCode::SUCCESS)
        }
        LedgerArgs::Verify(args) if is_postgres(&args.place.named()?) => {
            let verdicts = verify_central(&args.place.named()?, args.month).map_err(LedgerError::Store)?;
            let well = verdicts.iter().all(|verdict| verdict.differences.is_empty());
            print(&verdicts.iter().map(central_verdict).collect::<Vec<_>>().join("\n"));
            Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        LedgerArgs::Verify(args) => {
            let verdicts = verify(&args.place.path()?, args.month).map_err(LedgerError::Ledger)?;
            let well = verdicts.iter().all(|verdict| verdict.differences.is_empty());
            print(&verdicts.iter().map(file_verdict).collect::<Vec<_>>().join("\n"));
            Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        LedgerArgs::Backup(args) => {
            let copies =
                backup(&args.place.path()?, &args.folder, ledger::now_us()).map_err(LedgerError::Ledger)?;
            print(&copies.iter().map(copied).collect::<Vec<_>>().join("\n"));
            let all = copies.iter().all(|copy| copy.done.is_ok());
            Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        LedgerArgs::Reprice(args) => reprice::run(args).map_err(LedgerError::Reprice),
        LedgerArgs::Status(place) => {
            let path = place.path()?;
            let seen = overview(&path).map_err(LedgerError::Ledger)?;
            print(&state(&path, &seen));
            let is_good = |part: &Part| part.facts.as_ref().is_ok_and(|facts| !facts.lacks_log);
            Ok(if seen.files.iter().all(is_good) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

fn warn(message: &str) {
    // Without a stderr the message has no reader.
    let _ = writeln!(io::stderr(), "tokenmeter: {message}");
}

/// Prints a text; a closed pipe is no error, since its reader has enough.
fn print(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

fn verify_central(named: &str, month: Option<i32>) -> Result<Vec<ship::Verdict>, SourceError> {
    let address = store::address_for_command(named, &ThisMachine).map_err(|refused| refused.to_string())?;
    Central::open(&address)?.verify(month)
}

fn central_verdict(verdict: &ship::Verdict) -> String {
    let month = month::name(verdict.month);
    if !verdict.differences.is_empty() {
        return format!("{month}  DIFFERS  the central store:{}", listed(&verdict.differences));
    }
    match verdict.is_forgotten {
        true => format!("{month}  ok  the central store: corrections and daily totals; its rows are deleted"),
        false => {
            let rows = closed::count(verdict.rows, "row");
            format!("{month}  ok  the central store: {rows} and their daily totals")
        }
    }
}

/// Renders differences, one per line.
fn listed(differences: &[String]) -> String {
    differences.iter().map(|difference| format!("\n    {difference}")).collect()
}

fn file_verdict(verdict: &Verdict) -> String {
    let month = verdict.month.map_or_else(|| "?".to_owned(), month::name);
    let path = verdict.path.display();
    if verdict.differences.is_empty() {
        let digest = verdict
            .digest
            .as_ref()
            .map_or_else(|| "not closed".to_owned(), |digest| format!("digest {digest}"));
        let rows = closed::count(verdict.rows, "row");
        return format!("{month}  ok  {path}: {rows} and their daily totals; {digest}");
    }
    format!("{month}  DIFFERS  {path}:{}", listed(&verdict.differences))
}

fn copied(copy: &MonthCopy) -> String {
    let month = copy.month.map_or_else(|| "?".to_owned(), month::name);
    let (path, rows) = (copy.path.display(), closed::count(copy.rows, "row"));
    match &copy.done {
        Ok(CopyOutcome::Copied) => format!("{month}  copied     {path}: {rows}, verified"),
        Ok(CopyOutcome::Replaced(aside)) => {
            let aside = aside.display();
            format!(
                "{month}  copied     {path}: {rows}, verified; the damaged copy that was there is now {aside}"
            )
        }
        Ok(CopyOutcome::Unchanged) => format!("{month}  unchanged  {path}: {rows}, verified"),
        Ok(CopyOutcome::Kept) => {
            format!(
                "{month}  kept       {path}: {rows}, verified; the ledger has no file of this month any more"
            )
        }
        Err(failure) => format!("{month}  NOT COPIED  {failure}"),
    }
}

fn state(path: &Path, seen: &Overview) -> String {
    let mut text = match &seen.writer {
        Some(process) => format!("{} is written by process {process}", path.display()),
        None => format!("no process has {} open for writing", path.display()),
    };
    for part in &seen.files {
        let state = match &part.facts {
            Err(failure) => format!("cannot be read: {failure}"),
            Ok(facts) => {
                let closed = facts.closed.as_ref().map_or_else(
                    || "not closed".to_owned(),
                    |(at_us, who)| format!("closed {} by {who}", time(*at_us)),
                );
                let compacted = if facts.compacted > 0 {
                    format!(", {} of them compacted away", facts.compacted)
                } else {
                    String::new()
                };
                format!(
                    "{}  {closed}; {}{compacted}, {}, {}; last written {}",
                    month::name(facts.month),
                    closed::count(facts.rows, "row"),
                    closed::count(facts.corrections, "correction"),
                    closed::count(facts.gaps, "gap"),
                    time(facts.alive_us)
                )
            }
        };
        text.push_str(&format!("\n  {} ({} bytes): {state}", part.path.display(), part.bytes));
        if part.facts.as_ref().is_ok_and(|facts| facts.lacks_log) {
            text.push_str(&format!("\n    {}", ledger::LACKS_LOG));
        }
    }
    for aside in &seen.aside {
        text.push_str(&format!("\n  {}: damaged and quarantined; no report includes it", aside.display()));
    }
    text
}

fn time(us: i64) -> String {
    ledger::utc(us)
}

const BACKUP: &str = "\
Examples:
  tokenmeter ledger backup /backup/tokenmeter --ledger tokenmeter.db
  tokenmeter ledger verify --ledger /backup/tokenmeter/tokenmeter.db

Each file is copied as it is at one instant. A copy is replaced only by one that
has all of its rows; a damaged copy is moved aside, and the copy of a month that
the ledger lost stays. A folder with files of another ledger is refused. To
restore: stop the proxy, move the ledger's files and their logs to another
folder, copy the files of DIR back, verify, start the proxy.";

/// The error of a subcommand.
#[derive(Debug)]
pub(crate) enum LedgerError {
    NoLedger(NoLedger),
    Central,
    Store(SourceError),
    Ledger(Error),
    Reprice(RepriceError),
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLedger(error) => write!(f, "{error}"),
            Self::Central => f.write_str(
                "this command works on the ledger file that a proxy writes, not on a central store: add --ledger PATH",
            ),
            Self::Store(trouble) => write!(f, "{trouble}"),
            Self::Ledger(failure) => write!(f, "{failure}"),
            Self::Reprice(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for LedgerError {}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use ledger::{CopyOutcome, Error, Facts, MonthCopy, Overview, Part, Verdict};

    use super::{LedgerArgs, central_verdict, command, copied, file_verdict, state};

    fn args(line: &str) -> Result<LedgerArgs, String> {
        let matches =
            command().try_get_matches_from(line.split_whitespace()).map_err(|error| error.to_string())?;
        Ok(LedgerArgs::of(&matches))
    }

    #[test]
    fn flags_are_parsed() {
        command().debug_assert();
        let Ok(LedgerArgs::Close(close)) = args("ledger close 2026-10 --ledger x.db --who ann") else {
            panic!()
        };
        assert_eq!(
            (close.month, close.who.as_deref(), close.place.ledger.as_deref(), close.json),
            (681, Some("ann"), Some("x.db"), false)
        );
        let Ok(LedgerArgs::Close(close)) = args("ledger close 2026-10 --format json") else { panic!() };
        assert!(close.json);
        let Ok(LedgerArgs::Verify(verify)) = args("ledger verify") else { panic!() };
        assert_eq!(verify.month, None);
        assert!(matches!(args("ledger status --ledger x.db"), Ok(LedgerArgs::Status(_))));
        let Ok(LedgerArgs::Backup(backup)) = args("ledger backup /b --ledger x.db") else { panic!() };
        assert_eq!(backup.folder, Path::new("/b"));
        for (line, part) in
            [("ledger close", "MONTH"), ("ledger close october", "write one as 2026-10"), ("ledger", "Usage")]
        {
            let error = args(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn central_store_is_rejected() {
        let Ok(LedgerArgs::Status(place)) = args("ledger status --ledger postgres://u:secret@h/d") else {
            panic!()
        };
        let error = place.path().unwrap_err().to_string();
        assert!(error.contains("--ledger PATH") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn verdict_on_the_central_store_is_rendered() {
        let mut verdict = ship::Verdict { month: 681, rows: 7, is_forgotten: false, differences: Vec::new() };
        assert_eq!(
            central_verdict(&verdict),
            "2026-10  ok  the central store: 7 rows and their daily totals"
        );
        verdict.is_forgotten = true;
        assert!(central_verdict(&verdict).ends_with("its rows are deleted"));
        verdict.differences = vec!["one".into(), "two".into()];
        assert_eq!(central_verdict(&verdict), "2026-10  DIFFERS  the central store:\n    one\n    two");
    }

    #[test]
    fn copies_are_rendered() {
        for (done, said) in [
            (CopyOutcome::Copied, "2026-10  copied     b/x.db: 7 rows, verified"),
            (CopyOutcome::Unchanged, "2026-10  unchanged  b/x.db: 7 rows, verified"),
            (
                CopyOutcome::Replaced("b/x.db.corrupt-1".into()),
                "2026-10  copied     b/x.db: 7 rows, verified; the damaged copy that was there is now b/x.db.corrupt-1",
            ),
            (
                CopyOutcome::Kept,
                "2026-10  kept       b/x.db: 7 rows, verified; the ledger has no file of this month any more",
            ),
        ] {
            assert_eq!(
                copied(&MonthCopy { path: "b/x.db".into(), month: Some(681), rows: 7, done: Ok(done) }),
                said
            );
        }
    }

    #[test]
    fn verdicts_and_states_are_rendered() {
        let mut verdict = Verdict {
            month: Some(681),
            path: "x-2026-10.db".into(),
            rows: 7,
            digest: Some("ab".into()),
            differences: Vec::new(),
        };
        assert_eq!(
            file_verdict(&verdict),
            "2026-10  ok  x-2026-10.db: 7 rows and their daily totals; digest ab"
        );
        verdict.differences = vec!["one".into(), "two".into()];
        assert_eq!(file_verdict(&verdict), "2026-10  DIFFERS  x-2026-10.db:\n    one\n    two");
        let facts = Facts {
            month: 681,
            rows: 9,
            compacted: 9,
            corrections: 1,
            gaps: 2,
            alive_us: 0,
            closed: Some((1_793_491_200_000_000, "ann".into())),
            lacks_log: true,
        };
        let failure = ledger::Store::open_read(Path::new("/nowhere/x.db")).map(|_| ()).unwrap_err();
        let seen = Overview {
            writer: Some("12".into()),
            files: vec![
                Part { path: "x-2026-10.db".into(), bytes: 5, facts: Ok(facts) },
                Part { path: "x.db".into(), bytes: 0, facts: Err::<Facts, Error>(failure) },
            ],
            aside: vec![PathBuf::from("x.db.corrupt-1")],
        };
        let text = state(Path::new("x.db"), &seen);
        for part in [
            "x.db is written by process 12",
            "2026-10  closed 2026-11-01T00:00:00Z by ann; 9 rows, 9 of them compacted away, 1 correction, 2 gaps",
            "it was copied while a proxy wrote it",
            "cannot be read",
            "x.db.corrupt-1: damaged and quarantined",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
}
