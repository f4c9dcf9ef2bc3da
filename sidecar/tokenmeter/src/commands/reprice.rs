//! The command `ledger reprice`: charges the exchanges of a ledger by another price file, as
//! corrections beside the rows, and prints the result.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use ledger::Store;
use ledger::{Range, SourceError, period};
use price::{Book, LineError};
use report::{Change, Outcome, Reprice};
use report::{Filter, Key};
use text::{Glob, group_thousands, money, table};

use super::ledger_path::{self, NoLedger};
use super::operator;
use super::spend::filters;
use crate::plan::machine::ThisMachine;

/// The arguments of `ledger reprice`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepriceArgs {
    ledger: Option<String>,
    config: Option<String>,
    range: Range,
    filters: Vec<Filter>,
    unpriced_only: bool,
    prices: PathBuf,
    who: Option<String>,
    dry_run: bool,
}

impl RepriceArgs {
    /// Reads the parsed flags.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let of_model = text("model").map(|model| Filter {
            key: Key::Model,
            except: false,
            patterns: vec![Glob::new(&model)],
        });
        Self {
            ledger: text("ledger"),
            config: text("config"),
            range: Range {
                since_us: matches.get_one("since").copied().expect("clap requires it"),
                until_us: matches.get_one("until").copied().expect("clap requires it"),
            },
            filters: matches.get_many("where").into_iter().flatten().cloned().chain(of_model).collect(),
            unpriced_only: matches.get_flag("unpriced-only"),
            prices: matches.get_one::<PathBuf>("prices").cloned().expect("clap requires it"),
            who: text("who"),
            dry_run: matches.get_flag("dry-run"),
        }
    }
}

/// The command line of `ledger reprice`.
pub(crate) fn command() -> Command {
    let time = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("TIME")
            .required(true)
            .value_parser(|text: &str| period::instant(text))
            .help(help)
    };
    Command::new("reprice")
        .about("Charge by another price file: enter a correction for each exchange whose charge differs")
        .after_help(EXAMPLES)
        .args(ledger_path::of_files())
        .arg(time(
            "since",
            "Start of the range, by the end of exchanges: a month (2026-10), a day or a time in UTC",
        ))
        .arg(time("until", "End of the range, exclusive"))
        .arg(
            Arg::new("prices")
                .long("prices")
                .value_name("FILE")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .help("Price file to charge by"),
        )
        .arg(
            Arg::new("model")
                .long("model")
                .value_name("PATTERN")
                .help("Only these models, as in llama*; by default all"),
        )
        .arg(filters(
            "Only matching exchanges, by their current charge; keys and patterns are those of `spend`",
        ))
        .arg(
            Arg::new("unpriced-only")
                .long("unpriced-only")
                .action(ArgAction::SetTrue)
                .help("Only exchanges without a price"),
        )
        .arg(
            Arg::new("who")
                .long("who")
                .value_name("NAME")
                .help("Operator's name, for the audit trail; by default the user of this process"),
        )
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Show the result by tenant and model, and change nothing"),
        )
}

/// Reprices, and prints the result.
pub(crate) fn run(args: &RepriceArgs) -> Result<ExitCode, RepriceError> {
    let ledger =
        ledger_path::named(args.ledger.as_deref(), args.config.as_deref()).map_err(RepriceError::NoLedger)?;
    if ledger.contains("://") {
        return Err(RepriceError::Remote);
    }
    let book = book(&args.prices)?;
    let who = operator::name(args.who.as_deref(), &ThisMachine);
    let request = Reprice {
        range: args.range,
        filters: &args.filters,
        unpriced_only: args.unpriced_only,
        book: &book,
        who: &who,
        at_us: ledger::now_us(),
    };
    let outcome = if args.dry_run {
        let store =
            Store::open_read(Path::new(&ledger)).map_err(|failure| RepriceError::Ledger(failure.into()))?;
        report::rehearse(&store, &request)
    } else {
        report::reprice(Path::new(&ledger), &request)
    };
    let outcome = outcome.map_err(RepriceError::Ledger)?;
    // A closed pipe is no error: its reader has enough.
    let _ = io::stdout().write_all(summary(&outcome, &book, args.dry_run).as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn book(path: &Path) -> Result<Book, RepriceError> {
    let text = fs::read_to_string(path).map_err(|error| RepriceError::Unread(path.to_owned(), error))?;
    let (book, warnings) =
        Book::read(&text).map_err(|problems| RepriceError::Prices(path.to_owned(), problems))?;
    for warning in warnings {
        let _ = writeln!(io::stderr(), "tokenmeter: {}: warning: {warning}", path.display());
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
            "not changed: {} of {}, whose rows are compacted away",
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
#[derive(Debug)]
pub(crate) enum RepriceError {
    NoLedger(NoLedger),
    /// The ledger named is a central store.
    Remote,
    Unread(PathBuf, io::Error),
    Prices(PathBuf, Vec<LineError>),
    Ledger(SourceError),
}

impl fmt::Display for RepriceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLedger(error) => write!(f, "{error}"),
            Self::Remote => f.write_str(
                "a central store cannot be repriced: reprice the ledger file of each proxy; its corrections are shipped like rows",
            ),
            Self::Unread(path, error) => {
                write!(f, "cannot read {}: {error}; name a price file with --prices", path.display())
            }
            Self::Prices(path, problems) => {
                write!(f, "{} is not a valid price file:", path.display())?;
                problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
            Self::Ledger(trouble) => write!(f, "{trouble}"),
        }
    }
}

impl std::error::Error for RepriceError {}

const EXAMPLES: &str = "\
Examples:
  tokenmeter ledger reprice --ledger tokenmeter.db --prices corrected.yaml \\
    --since 2026-10 --until 2026-11 --dry-run
  tokenmeter ledger reprice --ledger tokenmeter.db --prices corrected.yaml \\
    --since 2026-10-20 --until 2026-11 --model 'llama*' --where tenant=acme
  tokenmeter ledger reprice --ledger tokenmeter.db --prices prices.yaml \\
    --since 2026-10 --until 2026-11 --unpriced-only

Rows never change: a correction is added for each whose charge differs, billed
in the row's month or, if that is closed, in the open one; the table `audit`
records the operator. The command works while a proxy writes the ledger, and
running it twice adds nothing.";

#[cfg(test)]
#[path = "reprice_tests.rs"]
mod tests;
