//! The command `ledger reprice`: charges what is in the ledger again by another price file, as
//! corrections beside the rows, and says what that comes to.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use ledger::report::{Filter, Key, Range, Trouble, period};
use ledger::{Change, Outcome, Reprice, Store};
use price::{Book, Problem};
use text::{Glob, in_threes, money, table};

use super::ledger_path::{self, NoLedger};
use super::spend::filters;
use super::who;
use crate::machine::ThisMachine;

/// What is to be charged again.
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
    /// As the flags have it.
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
                since_us: matches.get_one("since").copied().expect("clap asks for it"),
                until_us: matches.get_one("until").copied().expect("clap asks for it"),
            },
            filters: matches.get_many("where").into_iter().flatten().cloned().chain(of_model).collect(),
            unpriced_only: matches.get_flag("unpriced-only"),
            prices: matches.get_one::<PathBuf>("prices").cloned().expect("clap asks for it"),
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
        .about("Charge again by another price file: a correction for each exchange whose charge differs")
        .after_help(EXAMPLES)
        .args(ledger_path::of_files())
        .arg(time("since", "What ended from then on: a month (2026-10), a day or a time in UTC"))
        .arg(time("until", "And before then, exclusive"))
        .arg(
            Arg::new("prices")
                .long("prices")
                .value_name("FILE")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .help("The price file to charge by"),
        )
        .arg(
            Arg::new("model")
                .long("model")
                .value_name("PATTERN")
                .help("Of these models only, as in llama*; by default of all"),
        )
        .arg(filters("Only these, by the price that holds now; keys and patterns are those of `spend`"))
        .arg(
            Arg::new("unpriced-only")
                .long("unpriced-only")
                .action(ArgAction::SetTrue)
                .help("Only exchanges that have no price now"),
        )
        .arg(
            Arg::new("who")
                .long("who")
                .value_name("NAME")
                .help("Who does this, for the audit trail; by default the name this process's user has"),
        )
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Say what it would come to, by tenant and model, and change nothing"),
        )
}

/// Charges again, and says what it came to.
pub(crate) fn run(args: &RepriceArgs) -> Result<ExitCode, RepriceError> {
    let ledger =
        ledger_path::named(args.ledger.as_deref(), args.config.as_deref()).map_err(RepriceError::NoLedger)?;
    if ledger.contains("://") {
        return Err(RepriceError::Remote);
    }
    let book = book(&args.prices)?;
    let who = who::named(args.who.as_deref(), &ThisMachine);
    let asked = Reprice {
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
        ledger::rehearse(&store, &asked)
    } else {
        ledger::reprice(Path::new(&ledger), &asked)
    };
    let outcome = outcome.map_err(RepriceError::Ledger)?;
    // A reader that hung up has read what it wanted.
    let _ = io::stdout().write_all(told(&outcome, &book, args.dry_run).as_bytes());
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

fn told(outcome: &Outcome, book: &Book, dry: bool) -> String {
    let number = |count: u64| in_threes(&count.to_string());
    let code = book.currency();
    let code = code.code();
    let mut lines = vec![
        format!(
            "{} looked at, by price book {} ({})",
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
            "not changed: {} of {}, which the book does not price ({})",
            exchanges(*count),
            model.escape_debug(),
            why.name()
        ));
    }
    for (model, count) in &outcome.gone {
        lines.push(format!(
            "not changed: {} of {}, whose rows are not kept",
            exchanges(*count),
            model.escape_debug()
        ));
    }
    if outcome.unlisted > 0 {
        lines.push(format!("not changed: {} more", exchanges(outcome.unlisted)));
    }
    lines.push(match dry {
        true => "nothing was changed: it was a dry run".to_owned(),
        false if outcome.entered == 1 => "1 correction was entered".to_owned(),
        false => format!("{} corrections were entered", number(outcome.entered)),
    });
    lines.join("\n") + "\n"
}

/// What differs, a line for each tenant and model, in the one currency that a book has.
fn changes(outcome: &Outcome, code: &str) -> Vec<String> {
    if outcome.changes.is_empty() {
        return Vec::new();
    }
    let row = |tenant: &str, model: &str, change: &Change| {
        let (before, after) = (change.before_pico, change.after_pico);
        [
            tenant.escape_debug().to_string(),
            model.escape_debug().to_string(),
            in_threes(&change.exchanges.to_string()),
            in_threes(&change.newly_priced.to_string()),
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
    // Numbers to the right, names to the left.
    let lines = table(&rows, |column| (2..7).contains(&column));
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

fn exchanges(count: u64) -> String {
    match count {
        1 => "1 exchange".to_owned(),
        _ => format!("{} exchanges", in_threes(&count.to_string())),
    }
}

/// Why nothing was charged again.
#[derive(Debug)]
pub(crate) enum RepriceError {
    NoLedger(NoLedger),
    /// The ledger named is a central store.
    Remote,
    Unread(PathBuf, io::Error),
    Prices(PathBuf, Vec<Problem>),
    Ledger(Trouble),
}

impl fmt::Display for RepriceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLedger(error) => write!(f, "{error}"),
            Self::Remote => f.write_str(
                "a central store is not written by hand: reprice the ledger file of each proxy, and its corrections are shipped like rows",
            ),
            Self::Unread(path, error) => {
                write!(f, "cannot read {}: {error}; name a price file with --prices", path.display())
            }
            Self::Prices(path, problems) => {
                write!(f, "{} cannot be charged by:", path.display())?;
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

Rows are never changed: a correction stands beside each whose charge differs,
billed in its month or, where that is closed, in the open one, and `audit` keeps
who did it. It works while a proxy writes the ledger, and doing it twice adds
nothing.";

#[cfg(test)]
#[path = "reprice_tests.rs"]
mod tests;
