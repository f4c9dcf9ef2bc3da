//! The command `statement`: a printable statement of a tenant's month and a CSV beside it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ledger::{Source, SourceError};
use statement::{Bill, Statement};

use super::ledger_path::{LedgerFlags, NoLedger};
use super::output::print;
use super::progress;
use super::spend::{self, MonthArg, SpendError, month};
use super::watched::Watched;

/// The arguments of `statement`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct StatementArgs {
    #[command(flatten)]
    ledger: LedgerFlags,
    /// Tenant that is charged, as its rows name it.
    #[arg(long, value_name = "NAME")]
    tenant: String,
    /// Month of the bill: 2026-10, this or last.
    #[arg(long, value_name = "MONTH", value_parser = month)]
    month: MonthArg,
    /// Name of the issuer on the page.
    #[arg(long, value_name = "NAME", default_value = "tokenmeter")]
    issuer: String,
    /// Round money to N decimal places, half to even, each amount by itself; by default money is exact.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=12))]
    round: Option<u32>,
    /// Existing folder for the two files.
    #[arg(long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
}

/// Writes the statement and prints the paths of its files.
pub(crate) fn run(args: &StatementArgs) -> Result<ExitCode, StatementError> {
    let ledger = args.ledger.named().map_err(StatementError::NoLedger)?;
    let now_us = ledger::now_us();
    progress::begin("reading");
    let source = Watched(spend::open(&ledger).map_err(StatementError::Open)?);
    let month = args.month.relative_to(source.calendar().month(now_us));
    let bill = Bill { tenant: &args.tenant, month, issuer: &args.issuer, round: args.round };
    let statement = Statement::of(&source, bill, now_us).map_err(StatementError::Make)?;
    let mut csv = Vec::new();
    statement.csv(&mut csv).map_err(|error| StatementError::Make(error.into()))?;
    for (kind, contents) in [("html", statement.html().as_bytes()), ("csv", &csv)] {
        let path = args.output.join(format!("statement-{}.{kind}", statement.number()));
        replace(&path, contents).map_err(|error| StatementError::Write(path.clone(), error))?;
        print(&format!("{}\n", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file completely or not at all.
fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    std::fs::write(&new, contents)?;
    std::fs::rename(&new, path)
}

/// The error of `statement`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StatementError {
    #[error("{0}")]
    NoLedger(NoLedger),
    /// The ledger cannot be opened.
    #[error("{0}")]
    Open(SpendError),
    /// The ledger cannot be read, or has no charges of the tenant.
    #[error("{0}")]
    Make(SourceError),
    #[error("{0} cannot be written: {1}; name another folder with --output")]
    Write(PathBuf, io::Error),
}

const EXAMPLES: &str = "\
Examples:
  tokenmeter statement --tenant acme --month 2026-10 --ledger tokenmeter.db
  tokenmeter statement --tenant acme --month last --output statements \\
    --issuer \"Platform team\"

The page is statement-MONTH-TENANT-DIGEST.html, for a browser and for printing
on A4. DIGEST is the beginning of the sign-off's digest, or DRAFT if the month
is not closed. Exit codes: 1 the ledger cannot be read or has no such charges,
2 invalid flags.";

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn tenant_and_month_are_required() {
        for (line, missing) in [
            ("statement --tenant a --ledger x.db", "--month"),
            ("statement --month last --ledger x.db", "--tenant"),
            ("statement --tenant a --month october", "write one as 2026-10, this or last"),
        ] {
            assert!(parse(line).is_err_and(|error| error.contains(missing)), "{line}");
        }
        assert!(parse("statement --tenant a --month 2026-10 --output folder").is_ok());
    }
}
