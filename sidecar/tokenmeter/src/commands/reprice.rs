//! The command `ledger reprice`: charges the exchanges of a ledger by another price file, as
//! corrections beside the rows, and prints the result.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ledger::Store;
use ledger::period::Time;
use ledger::{Amendment, LedgerFolder, Progress, Range, Source, SourceError};
use origin::Diagnostic;
use price::Book;
use report::{Change, Outcome, Reprice};
use report::{Filter, Key};
use ship::address::is_postgres;
use ship::{Address, Amender, Central, ShipError};
use text::{Glob, group_thousands, money, table};

use super::ledger::LedgerError;
use super::ledger_path::{LedgerFlags, NoLedger};
use super::output::listed;
use super::watched::Watched;
use super::{operator, print, print_message, progress};
use crate::plan::machine::ThisMachine;

/// The arguments of `ledger reprice`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct RepriceArgs {
    #[command(flatten)]
    ledger: LedgerFlags,
    /// Start of the range, by the end of exchanges: a month (2026-10), a day, or a time in UTC.
    #[arg(long, value_name = "TIME", value_parser = Time::read, help_heading = EXCHANGES)]
    since: Time,
    /// End of the range, exclusive.
    #[arg(long, value_name = "TIME", value_parser = Time::read, help_heading = EXCHANGES)]
    until: Time,
    /// Price file to charge by.
    #[arg(long, value_name = "FILE")]
    prices: PathBuf,
    /// Only these models, as in llama*; by default all.
    #[arg(long, value_name = "PATTERN", help_heading = EXCHANGES)]
    model: Option<String>,
    /// Only matching exchanges, by their current charge; keys and patterns are those of `spend`.
    #[arg(long = "where", value_name = "KEY=VALUE,…", value_parser = Filter::read, help_heading = EXCHANGES)]
    filters: Vec<Filter>,
    /// Only exchanges without a price.
    #[arg(long, help_heading = EXCHANGES)]
    unpriced_only: bool,
    /// Operator's name, for the audit trail; by default the user of this process.
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Show the result by tenant and model, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

const EXCHANGES: &str = "Exchanges";

impl RepriceArgs {
    /// Returns all filters, that of --model too.
    fn filters(&self) -> Vec<Filter> {
        let of_model = self.model.as_ref().map(|model| Filter {
            key: Key::Model,
            except: false,
            patterns: vec![Glob::new(model)],
        });
        self.filters.iter().cloned().chain(of_model).collect()
    }
}

/// Reprices, and prints the result.
pub(crate) fn run(args: &RepriceArgs) -> Result<ExitCode, RepriceError> {
    let ledger = args.ledger.named().map_err(RepriceError::NoLedger)?;
    progress::begin("reading");
    let book = book(&args.prices)?;
    let (store, calendar) = if is_postgres(&ledger) {
        let address =
            super::ledger::address(&ledger).map_err(|error| RepriceError::Store(Box::new(error)))?;
        let store =
            open_central(&address, args.dry_run).map_err(|error| RepriceError::Ledger(error.into()))?;
        let calendar = store.0.calendar();
        (Some(store), calendar)
    } else {
        let calendar = LedgerFolder::open(Path::new(&ledger)).calendar();
        (None, calendar.map_err(|error| RepriceError::Ledger(error.into()))?)
    };
    let who = operator::name(args.who.as_deref(), &ThisMachine);
    let filters = args.filters();
    let request = Reprice {
        range: Range {
            since_us: args.since.instant_us(&calendar),
            until_us: args.until.instant_us(&calendar),
        },
        filters: &filters,
        unpriced_only: args.unpriced_only,
        book: &book,
        who: &who,
        at_us: ledger::now_us(),
    };
    let outcome = match store {
        Some((central, Some(mut store))) => {
            reprice_by(Watched(Box::new(central)), &request, |amendment| Ok(store.amend(amendment)?))
        }
        Some((central, None)) => report::rehearse(&Watched(Box::new(central)), &request),
        None => reprice_files(Path::new(&ledger), &request, args.dry_run),
    };
    let outcome = outcome.map_err(RepriceError::Ledger)?;
    print(&summary(&outcome, &book, args.dry_run));
    Ok(ExitCode::SUCCESS)
}

fn reprice_files(ledger: &Path, request: &Reprice<'_>, is_dry: bool) -> Result<Outcome, SourceError> {
    if is_dry {
        return report::rehearse(&Watched(Box::new(Store::open_read(ledger)?)), request);
    }
    let folder = LedgerFolder::open(ledger);
    folder.require_unshipped("tokenmeter ledger reprice …")?;
    let source = Watched(Box::new(Store::open_read(ledger)?));
    reprice_by(source, request, |amendment| Ok(folder.amend(amendment)?))
}

/// Opens a central store to read, and to write unless the run is dry.
fn open_central(address: &Address, is_dry: bool) -> Result<(Central, Option<Amender>), ShipError> {
    // First, because its error names the role that may reprice.
    let amender = if is_dry { None } else { Some(Amender::open(address)?) };
    Ok((Central::open(address)?, amender))
}

/// Enters the differences, and shows the number of those entered.
fn reprice_by(
    source: Watched,
    request: &Reprice<'_>,
    mut amend: impl FnMut(&Amendment<'_>) -> Result<u64, SourceError>,
) -> Result<Outcome, SourceError> {
    let mut entered = Progress { step: "entering corrections", month: None, done_rows: 0, total_rows: None };
    report::reprice_by(source, request, &mut |amendment| {
        progress::report(entered);
        let new = amend(amendment)?;
        entered.done_rows += amendment.corrections.len() as u64;
        Ok(new)
    })
}

fn book(path: &Path) -> Result<Book, RepriceError> {
    let text = fs::read_to_string(path).map_err(|error| RepriceError::Unread(path.to_owned(), error))?;
    let (book, warnings) =
        Book::read(&text).map_err(|errors| RepriceError::Prices(path.to_owned(), errors))?;
    for warning in warnings {
        print_message(&format!("{}: warning: {warning}", path.display()));
    }
    Ok(book)
}

fn summary(outcome: &Outcome, book: &Book, dry: bool) -> String {
    let number = |count: u64| group_thousands(&count.to_string());
    let code = book.currency();
    let code = code.code();
    let mut lines = vec![
        format!(
            "{} compared with price book {} ({})",
            exchanges(outcome.exchanges),
            book.version(),
            book.hash()
        ),
        format!(
            "{} charged the same by that book",
            match outcome.unchanged {
                1 => "1 is".to_owned(),
                count => format!("{} are", number(count)),
            }
        ),
        format!(
            "{} {}, {} of them had no price: {} {code} before, {} {code} after, {} {code} in corrections",
            number(outcome.differing),
            if outcome.differing == 1 { "differs" } else { "differ" },
            number(outcome.newly_priced),
            money(outcome.before_pico),
            money(outcome.after_pico),
            money(outcome.after_pico - outcome.before_pico),
        ),
    ];
    if dry {
        lines.extend(changes(outcome, code));
    }
    for ((model, why), count) in &outcome.unpriced {
        lines.push(format!(
            "not changed: {} of {}, for which the book has no price ({})",
            exchanges(*count),
            model.escape_debug(),
            why.name()
        ));
    }
    for (model, count) in &outcome.gone {
        lines.push(format!(
            "not changed: {} of {}, whose rows were deleted",
            exchanges(*count),
            model.escape_debug()
        ));
    }
    if outcome.unlisted > 0 {
        lines.push(format!("not changed: {} more", exchanges(outcome.unlisted)));
    }
    lines.push(match dry {
        true => "dry run: nothing was changed".to_owned(),
        false if outcome.entered == 1 => "1 correction was entered".to_owned(),
        false => format!("{} corrections were entered", number(outcome.entered)),
    });
    lines.join("\n") + "\n"
}

/// Renders the differences, a line per tenant and model, in the book's currency.
fn changes(outcome: &Outcome, code: &str) -> Vec<String> {
    if outcome.changes.is_empty() {
        return Vec::new();
    }
    let row = |tenant: &str, model: &str, change: &Change| {
        let (before, after) = (change.before_pico, change.after_pico);
        [
            tenant.escape_debug().to_string(),
            model.escape_debug().to_string(),
            group_thousands(&change.exchanges.to_string()),
            group_thousands(&change.newly_priced.to_string()),
            money(before).to_string(),
            money(after).to_string(),
            money(after - before).to_string(),
            code.to_owned(),
        ]
        .to_vec()
    };
    let names = ["tenant", "model", "exchanges", "no price", "before", "after", "difference", "currency"];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    rows.extend(outcome.changes.iter().map(|((tenant, model), change)| row(tenant, model, change)));
    if outcome.other_changes.exchanges > 0 {
        rows.push(row("others", "", &outcome.other_changes));
    }
    if rows.len() > 2 {
        let total = Change {
            exchanges: outcome.differing,
            newly_priced: outcome.newly_priced,
            before_pico: outcome.before_pico,
            after_pico: outcome.after_pico,
        };
        rows.push(row("total", "", &total));
    }
    // Numbers are right-aligned, names left-aligned.
    let lines = table(&rows, |column| (2..7).contains(&column));
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

fn exchanges(count: u64) -> String {
    match count {
        1 => "1 exchange".to_owned(),
        _ => format!("{} exchanges", group_thousands(&count.to_string())),
    }
}

/// The error of a repricing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RepriceError {
    #[error("{0}")]
    NoLedger(NoLedger),
    /// The address of the central store is wrong.
    #[error("{0}")]
    Store(Box<LedgerError>),
    #[error("cannot read {0}: {1}; name a price file with --prices")]
    Unread(PathBuf, io::Error),
    #[error("{} is not a valid price file:{}", .0.display(), listed(.1))]
    Prices(PathBuf, Vec<Diagnostic>),
    #[error("{0}")]
    Ledger(SourceError),
}

const EXAMPLES: &str = "\
Examples:
  tokenmeter ledger reprice --ledger tokenmeter.db --prices corrected.yaml \\
    --since 2026-10 --until 2026-11 --dry-run
  tokenmeter ledger reprice --ledger tokenmeter.db --prices corrected.yaml \\
    --since 2026-10-20 --until 2026-11 --model 'llama*' --where tenant=acme
  tokenmeter ledger reprice --ledger postgres://owner@db/spend \\
    --prices prices.yaml --since 2026-10 --until 2026-11 --unpriced-only

Rows never change: a correction is added for each whose charge differs, billed
in the row's month or, if that is closed, in the open one; the table `audit`
records the operator. The command works while a proxy writes the ledger, and
running it twice adds nothing.";

#[cfg(test)]
#[path = "reprice_tests.rs"]
mod tests;
