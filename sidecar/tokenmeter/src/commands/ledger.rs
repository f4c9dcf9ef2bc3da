//! The command `ledger`: closes, verifies, copies and reprices a ledger.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use ledger::source::SourceError;
use ledger::{
    CopyOutcome, Error, MonthCopy, Overview, Verdict, backup_with, close_with, month, overview, verify_with,
};
use ship::Central;
use ship::address::is_postgres;

use super::adjust::{self, AdjustArgs};
use super::ledger_path::{LedgerFileFlags, LedgerFlags, LedgerStoreFlags, NoLedger};
use super::reprice::{self, RepriceArgs, RepriceError};
use super::{closed, operator, print_message, progress};
use crate::plan::machine::ThisMachine;
use crate::plan::store;

/// The subcommands of `ledger`.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum LedgerArgs {
    /// Close a month: verify and sign it off; later charges are billed in the open month.
    #[command(after_help = CLOSE)]
    Close {
        /// Month, as in 2026-10.
        #[arg(value_parser = month)]
        month: i32,
        #[command(flatten)]
        ledger: LedgerFlags,
        /// Operator's name, for the sign-off; by default the user of this process.
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        /// Text, or the signed document as JSON.
        #[arg(long, value_name = "NAME", value_enum, default_value = "text")]
        format: Format,
    },
    /// Recompute all sums and hashes, and show differences; exit 1 if there are any.
    Verify {
        /// Verify this month only; by default every month.
        #[arg(value_parser = month)]
        month: Option<i32>,
        #[command(flatten)]
        ledger: LedgerFlags,
    },
    /// Copy every file, even while a proxy writes it, and verify the copies; exit 1 if one fails.
    #[command(after_help = BACKUP)]
    Backup {
        /// Folder of the copies; a second backup to it updates them.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        #[command(flatten)]
        ledger: LedgerFlags,
    },
    /// Delete the rows of a central store's past months; their daily totals and corrections stay.
    #[command(after_help = FORGET)]
    Forget {
        /// Days for which rows are kept after the end of their month.
        #[arg(long, value_name = "DAYS")]
        keep_days: u32,
        #[command(flatten)]
        ledger: LedgerStoreFlags,
    },
    /// Charge or credit a tenant an amount in a month, without an exchange; in a closed month, as a correction.
    Adjust(AdjustArgs),
    /// Charge by another price file: enter a correction for each exchange whose charge differs.
    Reprice(RepriceArgs),
    /// Show the files, their content and the process that writes them; exit 1 if one is damaged.
    Status(LedgerFileFlags),
}

/// The form in which `ledger close` prints the sign-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

pub(super) fn month(text: &str) -> Result<i32, String> {
    month::read(text).ok_or_else(|| format!("`{}` is not a month; write one as 2026-10", text.escape_debug()))
}

/// Executes the subcommand.
pub(crate) fn run(args: &LedgerArgs) -> Result<ExitCode, LedgerError> {
    let is_good = match args {
        LedgerArgs::Close { month, ledger, who, format } => {
            let named = ledger.named()?;
            let who = operator::name(who.as_deref(), &ThisMachine);
            let now_us = ledger::now_us();
            progress::begin("verifying the month");
            let (sign_off, text, shown) = if is_postgres(&named) {
                let address = address(&named)?;
                let sign_off = ship::close(&address, *month, &who).map_err(LedgerError::Store)?;
                let text = closed::central_summary(&sign_off, &address.to_string(), now_us);
                (sign_off, text, address.to_string())
            } else {
                let sign_off = close_with(Path::new(&named), *month, &who, now_us, &progress::report)?;
                let text = closed::summary(&sign_off, Path::new(&named), now_us);
                (sign_off, text, named)
            };
            print(&match format {
                Format::Json => format!("{:#}", sign_off.document),
                Format::Text => text,
            });
            if let Some(unpriced @ 1..) = sign_off.document["unpriced_exchanges"].as_u64() {
                print_message(&closed::unpriced(unpriced, &month::name(*month), Path::new(&shown)));
            }
            true
        }
        LedgerArgs::Verify { month, ledger } => match ledger.named()? {
            url if is_postgres(&url) => {
                progress::begin("verifying the central store");
                let central =
                    Central::open(&address(&url)?).map_err(|error| LedgerError::Store(error.into()))?;
                let verdicts = central.verify(*month).map_err(LedgerError::Store)?;
                print(&lines(&verdicts, central_verdict));
                verdicts.iter().all(|verdict| verdict.differences.is_empty())
            }
            path => {
                progress::begin("verifying");
                let verdicts = verify_with(Path::new(&path), *month, &progress::report)?;
                print(&lines(&verdicts, file_verdict));
                verdicts.iter().all(|verdict| verdict.differences.is_empty())
            }
        },
        LedgerArgs::Backup { folder, ledger } => {
            let named = ledger.named()?;
            if is_postgres(&named) {
                return Err(LedgerError::StoreBackup(
                    address(&named)?.to_string(),
                    folder.join("tokenmeter.dump"),
                ));
            }
            progress::begin("comparing with the copies");
            let copies = backup_with(Path::new(&named), folder, ledger::now_us(), &progress::report)?;
            print(&lines(&copies, copied));
            copies.iter().all(|copy| copy.done.is_ok())
        }
        LedgerArgs::Forget { keep_days, ledger } => {
            let months = ship::forget(&address(&ledger.url()?)?, *keep_days)
                .map_err(|error| LedgerError::Store(error.into()))?;
            print(&forgotten(&months, *keep_days));
            true
        }
        LedgerArgs::Adjust(args) => {
            print(&adjust::run(args)?);
            true
        }
        LedgerArgs::Reprice(args) => return reprice::run(args).map_err(LedgerError::Reprice),
        LedgerArgs::Status(ledger) => {
            let path = ledger.path()?;
            let overview = overview(&path)?;
            print(&state(&path, &overview));
            overview.files.iter().all(|part| part.facts.as_ref().is_ok_and(|facts| !facts.lacks_log))
        }
    };
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(text: &str) {
    super::print(&format!("{text}\n"));
}

/// Renders each item on a line.
fn lines<T>(items: &[T], line: fn(&T) -> String) -> String {
    items.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the address of a central store, with its password.
pub(super) fn address(url: &str) -> Result<ship::Address, LedgerError> {
    store::address_for_command(url, &ThisMachine)
        .map_err(|error| LedgerError::Store(error.to_string().into()))
}

fn central_verdict(verdict: &ship::Verdict) -> String {
    let month = month::name(verdict.month);
    if !verdict.differences.is_empty() {
        return format!("{month}  DIFFERS  the central store:{}", listed(&verdict.differences));
    }
    let digest = verdict.digest.as_ref().map(|digest| format!("; digest {digest}")).unwrap_or_default();
    match verdict.is_forgotten {
        true => format!(
            "{month}  ok  the central store: corrections and daily totals; its rows are deleted{digest}"
        ),
        false => {
            let rows = closed::count(verdict.rows, "row");
            format!("{month}  ok  the central store: {rows} and their daily totals{digest}")
        }
    }
}

/// Renders the months whose rows were deleted, one per line.
fn forgotten(months: &[i32], keep_days: u32) -> String {
    if months.is_empty() {
        return format!("no month with rows ended {keep_days} days ago or earlier; nothing was deleted");
    }
    lines(months, |month| {
        format!("{}  deleted    its rows; its daily totals and corrections stay", month::name(*month))
    })
}

/// Renders differences, one per line.
fn listed(differences: &[impl fmt::Display]) -> String {
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
        Ok(CopyOutcome::Replaced(corrupt)) => {
            let corrupt = corrupt.display();
            format!(
                "{month}  copied     {path}: {rows}, verified; the damaged copy that was there is now {corrupt}"
            )
        }
        Ok(CopyOutcome::Unchanged) => format!("{month}  unchanged  {path}: {rows}, verified"),
        Ok(CopyOutcome::Kept) => {
            format!(
                "{month}  kept       {path}: {rows}, verified; the ledger no longer has a file of this month"
            )
        }
        Err(error) => format!("{month}  NOT COPIED  {error}"),
    }
}

fn state(path: &Path, overview: &Overview) -> String {
    let mut text = match &overview.writer {
        Some(process) => format!("{} is written by process {process}", path.display()),
        None => format!("no process has {} open for writing", path.display()),
    };
    if let Some(calendar) = &overview.calendar {
        text.push_str(&format!("\n  time zone: {calendar}"));
    }
    for part in &overview.files {
        let state = match &part.facts {
            Err(error) => format!("cannot be read: {error}"),
            Ok(facts) => {
                let closed = facts.closed.as_ref().map_or_else(
                    || "not closed".to_owned(),
                    |(at_us, who)| format!("closed {} by {who}", time(*at_us)),
                );
                let compacted = if facts.compacted > 0 {
                    format!(", {} of them deleted", facts.compacted)
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
    for path in &overview.quarantined {
        text.push_str(&format!("\n  {}: damaged and quarantined; no report includes it", path.display()));
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
has all of its rows; a damaged copy is quarantined, as FILE.corrupt-1, and the
copy of a month that the ledger lost stays. A folder with files of another
ledger is refused. To restore: stop the proxy, move the ledger's files and their
logs to another folder, copy the files of DIR back, verify, start the proxy.";

const CLOSE: &str = "\
Examples:
  tokenmeter ledger close 2026-10 --ledger tokenmeter.db --who ann
  tokenmeter ledger close 2026-10 --ledger postgres://owner@db/spend \\
    --format json

A file becomes read-only, and its sign-off is written beside it. A ledger that
is shipped is closed at the central store, for all ledgers at once: the role in
the URL must own the schema tokenmeter. Rows that arrive later for a closed
month are billed in the first open one. Closing a month again changes nothing.";

const FORGET: &str = "\
Example:
  tokenmeter ledger forget --keep-days 400 --ledger postgres://owner@db/spend

The role in the URL must own the schema tokenmeter. The newest month of the
store keeps its rows. A ledger file needs no such command: `ledger_keep_days` of
the proxy that writes it applies.";

/// The error of a subcommand.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LedgerError {
    #[error("{0}")]
    NoLedger(#[from] NoLedger),
    #[error("{0}")]
    Store(SourceError),
    /// The backup of a central store is PostgreSQL's own.
    #[error(
        "a central store is backed up by PostgreSQL itself: `pg_dump --format=custom --schema=tokenmeter --file={1} \
         {0}`; restore it with `pg_restore --dbname=… {1}` and verify it with `tokenmeter ledger verify --ledger \
         postgres://…`"
    )]
    StoreBackup(String, PathBuf),
    #[error("{0}")]
    Ledger(#[from] Error),
    #[error("{0}")]
    Reprice(RepriceError),
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use ledger::{CopyOutcome, Difference, Error, Facts, MonthCopy, Overview, Part, Verdict};

    use super::super::parse;
    use super::{Format, LedgerArgs, central_verdict, copied, file_verdict, forgotten, state};
    use crate::cli::Action;

    fn args(line: &str) -> Result<LedgerArgs, String> {
        match parse(line)? {
            Action::Ledger(args) => Ok(args),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn flags_are_parsed() {
        let line = "ledger close 2026-10 --ledger x.db --who ann";
        let Ok(LedgerArgs::Close { month, ledger, who, format }) = args(line) else { panic!() };
        assert_eq!((month, ledger.ledger.as_deref()), (681, Some("x.db")));
        assert_eq!((who.as_deref(), format), (Some("ann"), Format::Text));
        let json = args("ledger close 2026-10 --format json");
        assert!(matches!(json, Ok(LedgerArgs::Close { format: Format::Json, .. })));
        assert!(matches!(args("ledger verify"), Ok(LedgerArgs::Verify { month: None, .. })));
        assert!(matches!(args("ledger status --ledger x.db"), Ok(LedgerArgs::Status(_))));
        let Ok(LedgerArgs::Backup { folder, .. }) = args("ledger backup /b --ledger x.db") else { panic!() };
        assert_eq!(folder, Path::new("/b"));
        let line = "ledger forget --keep-days 400 --ledger postgres://a@b/c";
        assert!(matches!(args(line), Ok(LedgerArgs::Forget { keep_days: 400, .. })));
        for (line, part) in [
            ("ledger close", "MONTH"),
            ("ledger forget", "--keep-days <DAYS>"),
            ("ledger close october", "write one as 2026-10"),
            ("ledger", "Usage"),
        ] {
            let error = args(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn central_store_is_rejected() {
        let line = "ledger status --ledger postgres://u:secret@h/d";
        let Ok(LedgerArgs::Status(ledger)) = args(line) else { panic!() };
        let error = ledger.path().unwrap_err().to_string();
        assert!(error.contains("--ledger PATH") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn forget_is_for_central_stores() {
        let Ok(LedgerArgs::Forget { ledger, .. }) = args("ledger forget --keep-days 1 --ledger spend.db")
        else {
            panic!()
        };
        let error = ledger.url().unwrap_err().to_string();
        assert!(error.contains("ledger_keep_days") && error.contains("postgres://"), "{error}");
    }

    #[test]
    fn forgotten_months_are_rendered() {
        assert_eq!(
            forgotten(&[680, 681], 400),
            "2026-09  deleted    its rows; its daily totals and corrections stay\n\
             2026-10  deleted    its rows; its daily totals and corrections stay"
        );
        assert_eq!(
            forgotten(&[], 400),
            "no month with rows ended 400 days ago or earlier; nothing was deleted"
        );
    }

    #[test]
    fn verdict_on_the_central_store_is_rendered() {
        let mut verdict =
            ship::Verdict { month: 681, rows: 7, is_forgotten: false, digest: None, differences: Vec::new() };
        assert_eq!(
            central_verdict(&verdict),
            "2026-10  ok  the central store: 7 rows and their daily totals"
        );
        verdict.is_forgotten = true;
        assert!(central_verdict(&verdict).ends_with("its rows are deleted"));
        verdict.digest = Some("ab".into());
        assert!(central_verdict(&verdict).ends_with("its rows are deleted; digest ab"));
        verdict.differences = vec!["one".into(), "two".into()];
        assert_eq!(central_verdict(&verdict), "2026-10  DIFFERS  the central store:\n    one\n    two");
    }

    #[test]
    fn copies_are_rendered() {
        for (done, text) in [
            (CopyOutcome::Copied, "2026-10  copied     b/x.db: 7 rows, verified"),
            (CopyOutcome::Unchanged, "2026-10  unchanged  b/x.db: 7 rows, verified"),
            (
                CopyOutcome::Replaced("b/x.db.corrupt-1".into()),
                "2026-10  copied     b/x.db: 7 rows, verified; the damaged copy that was there is now b/x.db.corrupt-1",
            ),
            (
                CopyOutcome::Kept,
                "2026-10  kept       b/x.db: 7 rows, verified; the ledger no longer has a file of this month",
            ),
        ] {
            assert_eq!(
                copied(&MonthCopy { path: "b/x.db".into(), month: Some(681), rows: 7, done: Ok(done) }),
                text
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
        verdict.differences = ["one", "two"].map(|text| Difference::Contents(text.into())).into();
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
        let error = ledger::Store::open_read(Path::new("/nowhere/x.db")).map(|_| ()).unwrap_err();
        let overview = Overview {
            calendar: Some(ledger::Calendar::default()),
            writer: Some("12".into()),
            files: vec![
                Part { path: "x-2026-10.db".into(), bytes: 5, facts: Ok(facts) },
                Part { path: "x.db".into(), bytes: 0, facts: Err::<Facts, Error>(error) },
            ],
            quarantined: vec![PathBuf::from("x.db.corrupt-1")],
        };
        let text = state(Path::new("x.db"), &overview);
        for part in [
            "x.db is written by process 12",
            "2026-10  closed 2026-11-01T00:00:00Z by ann; 9 rows, 9 of them deleted, 1 correction, 2 gaps",
            "it was copied while a proxy wrote it",
            "cannot be read",
            "x.db.corrupt-1: damaged and quarantined",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
}
