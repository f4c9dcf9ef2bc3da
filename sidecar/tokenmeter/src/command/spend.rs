//! The command `spend`: what each tenant spent, from a ledger on disk or in a central store, for people,
//! programs, spreadsheets or FinOps tools.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use ledger::Store;
use ledger::report::ask::unknown_key;
use ledger::report::focus::{self, Billing, Options, Version};
use ledger::report::notes::{Notes, shell_word};
use ledger::report::source::Month;
use ledger::report::{
    Ask, Basis, Column, Filter, Key, Order, Range, Source, Trouble, json, make, period, sheet, table,
};
use price::Book;
use ship::Central;
use ship::address::is_postgres;
use text::nearest;

use super::ledger_path::{self, NoLedger};
use super::setting;
use crate::diagnostic::Diagnostic;
use crate::machine::ThisMachine;
use crate::plan::{prices, store};
use crate::settings::variable;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendArgs {
    ledger: Option<String>,
    config: Option<String>,
    ask: Ask,
    top: Option<usize>,
    format: Format,
    columns: Option<String>,
    options: Options,
    prices: Option<String>,
    round: Option<u32>,
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Table,
    Json,
    Csv,
    Focus,
}

impl SpendArgs {
    /// As the flags have it.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let word = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
        let now_us = ledger::now_us();
        let this = period::month_at(period::day_at(now_us));
        let month = |name: &str| matches.get_one::<MonthArg>(name).map(|asked| asked.from(this));
        let of_month = month("month");
        let top = matches.get_one("top").copied();
        let of_month = of_month.map(|month| Range {
            since_us: period::month_start_us(month),
            until_us: period::month_start_us(month + 1),
        });
        let range = of_month.unwrap_or_else(|| Range {
            since_us: matches.get_one("since").copied().unwrap_or(i64::MIN),
            until_us: matches.get_one("until").copied().unwrap_or(i64::MAX),
        });
        let mut by: Vec<Key> = Vec::new();
        for key in matches.get_many::<Key>("by").into_iter().flatten() {
            if !by.contains(key) {
                by.push(*key);
            }
        }
        Self {
            ledger: text("ledger"),
            config: text("config"),
            ask: Ask {
                range,
                billed: month("billed"),
                by,
                filters: matches.get_many("where").into_iter().flatten().cloned().collect(),
                basis: if word("basis") == "gpu" { Basis::Gpu } else { Basis::Price },
                // The first rows are the dearest, if nothing else is asked for.
                order: match word("sort") {
                    "" if top.is_some() => Order::Cost,
                    sort => Order::ALL.into_iter().find(|order| order.name() == sort).unwrap_or_default(),
                },
                now_us,
            },
            top,
            columns: text("columns"),
            format: match word("format") {
                "json" => Format::Json,
                "csv" => Format::Csv,
                "focus" => Format::Focus,
                _ => Format::Table,
            },
            options: Options {
                version: if word("focus-version") == "1.4" { Version::V1_4 } else { Version::V1_2 },
                billing: if word("billing") == "chargeback" {
                    Billing::Chargeback
                } else {
                    Billing::Showback
                },
                issuer: text("issuer").unwrap_or_default(),
                service: text("service").unwrap_or_default(),
            },
            prices: text("prices"),
            round: matches.get_one("round").copied(),
            output: matches.get_one("output").cloned(),
        }
    }
}

/// The flag `--where`, which `ledger reprice` has, too.
pub(super) fn filters(help: &'static str) -> Arg {
    Arg::new("where")
        .long("where")
        .value_name("KEY=VALUE,…")
        .action(ArgAction::Append)
        .value_parser(Filter::read)
        .help(help)
}

/// The command line of `spend`.
pub(crate) fn command() -> Command {
    Command::new("spend")
        .about("Show what each tenant spent, from the ledger: exact, and how sure it is")
        .after_help(EXAMPLES)
        .args(ledger_path::arguments())
        .arg(time(
            "since",
            "From then on: a month (2026-10), a day or a time in UTC; by default from the beginning",
        ))
        .arg(time("until", "Up to then, exclusive: 2026-11 is all of October; by default to the end"))
        .arg(
            Arg::new("month")
                .long("month")
                .value_name("MONTH")
                .value_parser(month)
                .conflicts_with_all(["since", "until"])
                .help("What was used in that month: 2026-10, this or last"),
        )
        .arg(
            Arg::new("billed").long("billed").value_name("MONTH").value_parser(month).help(
                "What is billed in that month (2026-10, this or last): its own usage, and what came for closed months \
                 before it",
            ),
        )
        .arg(
            Arg::new("by")
                .long("by")
                .value_name("KEY,…")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(key)
                .help(format!("A row for each value of these: {}", names())),
        )
        .arg(filters(
            "Only these; `*` is any letters, `\\,` a comma, KEY!= all but them; repeat it for a second key",
        ))
        .arg(choice(
            "basis",
            &["price", "gpu"],
            "price",
            "Money by tokens and the price book, or by GPU time and energy",
        ))
        .arg(
            Arg::new("sort")
                .long("sort")
                .value_name("NAME")
                .value_parser(clap::builder::PossibleValuesParser::new(Order::ALL.map(Order::name)))
                .help("The order of the rows; by default keys, with --top cost"),
        )
        .arg(
            Arg::new("top")
                .long("top")
                .value_name("N")
                .value_parser(|text: &str| text.parse::<usize>().ok().filter(|rows| *rows > 0).ok_or("write 1 or more"))
                .help("Only the first N rows; the total is of all"),
        )
        .arg(choice(
            "format",
            &["table", "json", "csv", "focus"],
            "table",
            "For people, programs, spreadsheets, or FinOps tools; with the last two, notes go to stderr",
        ))
        .arg(
            Arg::new("columns")
                .long("columns")
                .value_name("NAME,…")
                .help("CSV: the columns after the keys, or `all`; by default those that most bills need"),
        )
        .arg(choice("focus-version", &Version::ALL.map(Version::name), "1.2", "Which FOCUS"))
        .arg(choice(
            "billing",
            &["showback", "chargeback"],
            "showback",
            "FOCUS: whether BilledCost is 0 or what it costs",
        ))
        .arg(
            Arg::new("issuer")
                .long("issuer")
                .value_name("NAME")
                .default_value("tokenmeter")
                .help("FOCUS: who runs this and would send the bill"),
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("NAME")
                .default_value("LLM Inference")
                .help("FOCUS: what the service is called"),
        )
        .arg(Arg::new("prices").long("prices").value_name("FILE").help(format!(
            "FOCUS: the price file, whose entries may say who developed a model, its family and its version [env: {}]",
            variable("prices")
        )))
        .arg(
            Arg::new("round")
                .long("round")
                .value_name("N")
                .value_parser(clap::value_parser!(u32).range(0..=12))
                .help(
                    "Round money to N digits after the point, half to even, each row and the total by itself; CSV then has \
                     rows of totals, marked in its column `row`; by default money is exact",
                ),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Where it is written; by default to the screen"),
        )
}

fn time(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("TIME").value_parser(|text: &str| period::instant(text)).help(help)
}

fn choice(name: &'static str, of: &[&'static str], usual: &'static str, help: &'static str) -> Arg {
    let parser = clap::builder::PossibleValuesParser::new(of.to_vec());
    Arg::new(name).long(name).value_name("NAME").value_parser(parser).default_value(usual).help(help)
}

/// A month as it is asked for.
#[derive(Clone, Copy, Debug)]
enum MonthArg {
    Named(Month),
    This,
    Last,
}

impl MonthArg {
    /// The month that is meant in the month `this`.
    fn from(self, this: Month) -> Month {
        match self {
            Self::Named(month) => month,
            Self::This => this,
            Self::Last => this - 1,
        }
    }
}

fn month(text: &str) -> Result<MonthArg, String> {
    match text {
        "this" => Ok(MonthArg::This),
        "last" => Ok(MonthArg::Last),
        text => period::month_of(text).map(MonthArg::Named).ok_or_else(|| {
            format!("`{}` is no month; write one as 2026-10, this or last", text.escape_debug())
        }),
    }
}

/// The columns of a sheet that are named.
fn columns(names: Option<&str>, basis: Basis) -> Result<Vec<Column>, SpendError> {
    let all = Column::all(basis);
    match names {
        None => Ok(Column::usual(basis)),
        Some("all") => Ok(all),
        Some(names) => names
            .split(',')
            .map(|name| all.iter().copied().find(|column| column.name() == name))
            .collect::<Option<_>>()
            .ok_or_else(|| SpendError::NoColumn(all.iter().map(|column| column.name()).collect())),
    }
}

fn key(text: &str) -> Result<Key, String> {
    Key::named(text).ok_or_else(|| match nearest(text, Key::ALL.iter().map(|key| key.name())) {
        Some(near) => format!("there is no key `{}`; did you mean `{near}`?", text.escape_debug()),
        None => unknown_key(text),
    })
}

fn names() -> String {
    Key::ALL.map(Key::name).join(", ")
}

/// Reads, sums and prints.
pub(crate) fn run(args: &SpendArgs) -> Result<ExitCode, SpendError> {
    let ledger =
        ledger_path::named(args.ledger.as_deref(), args.config.as_deref()).map_err(SpendError::NoLedger)?;
    if args.ask.range.since_us >= args.ask.range.until_us {
        return Err(SpendError::NoTime);
    }
    let source = open(&ledger)?;
    match &args.output {
        Some(path) => {
            let mut file = BufWriter::new(Late { path, file: None });
            print(args, &*source, &mut file)?;
            file.flush().map_err(|error| SpendError::Write(path.clone(), error))?;
        }
        None => {
            let mut screen = BufWriter::new(io::stdout().lock());
            print(args, &*source, &mut screen)?;
            // A reader that hung up has read what it wanted.
            let _ = screen.flush();
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A file that is made when something is written to it: what was there stays if the ledger cannot be read.
struct Late<'a> {
    path: &'a Path,
    file: Option<File>,
}

impl Write for Late<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(File::create(self.path)?);
        }
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), File::flush)
    }
}

/// Opens a ledger on disk, or a central store.
fn open(ledger: &str) -> Result<Box<dyn Source>, SpendError> {
    if is_postgres(ledger) {
        let central = store::address_for_command(ledger, &ThisMachine)
            .map_err(|refused| refused.to_string().into())
            .and_then(|address| Ok(Central::open(&address)?))
            .map_err(SpendError::Ledger)?;
        return Ok(Box::new(central));
    }
    let store = Store::open_read(Path::new(ledger)).map_err(|failure| SpendError::Ledger(failure.into()))?;
    Ok(Box::new(store))
}

fn print(args: &SpendArgs, source: &dyn Source, to: &mut dyn Write) -> Result<(), SpendError> {
    let (ask, round) = (&args.ask, args.round);
    if args.format == Format::Focus {
        match focus::write(source, ask, &args.options, book(args)?.as_ref(), to) {
            Ok(notes) => {
                say(&Notes { prices_flag: prices_flag(args), ..notes }.sentences(&ask.range));
            }
            Err(trouble) => match trouble.downcast::<io::Error>() {
                Ok(error) => unwritten(args, *error)?,
                Err(trouble) => return Err(SpendError::Ledger(trouble)),
            },
        }
        return Ok(());
    }
    let columns = columns(args.columns.as_deref(), ask.basis)?;
    let mut report = make(source, ask).map_err(SpendError::Ledger)?;
    report.notes.prices_flag = prices_flag(args);
    report.keep_first(args.top.unwrap_or(usize::MAX));
    let written = match args.format {
        Format::Json => json::write(&report, round, to),
        Format::Csv => sheet::write(&report, &columns, round, to),
        Format::Table | Format::Focus => table::write(&report, round, to),
    };
    written.or_else(|error| unwritten(args, error))?;
    if args.format == Format::Csv {
        say(&report.sentences(round));
    }
    Ok(())
}

/// The flag by which `prices show` finds the price file that holds here: none where a variable names it; `None` if it is
/// not known.
fn prices_flag(args: &SpendArgs) -> Option<String> {
    let flag = |name: &str, path: &str| Some(format!("--{name} {}", shell_word(path)?));
    if let Some(path) = &args.prices {
        return flag("prices", path);
    }
    let named = setting::named("prices", None, args.config.as_deref(), &ThisMachine).ok()?;
    match (named, &args.config) {
        (None, _) => None,
        (Some(_), Some(config)) => flag("config", config),
        (Some(_), None) => Some(String::new()),
    }
}

/// The price file, if one is named: it may say what models are.
fn book(args: &SpendArgs) -> Result<Option<Book>, SpendError> {
    let named = setting::named("prices", args.prices.as_deref(), args.config.as_deref(), &ThisMachine);
    let Some(path) = named.map_err(|error| SpendError::Prices(vec![error]))? else {
        return Ok(None);
    };
    let text = prices::text(&path).map_err(|error| SpendError::Unread(path.clone(), error))?;
    let (book, _) = prices::parse(&path, &text).map_err(SpendError::Prices)?;
    Ok(Some(book))
}

/// A reader that hung up has read what it wanted; all else is told.
fn unwritten(args: &SpendArgs, error: io::Error) -> Result<(), SpendError> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(SpendError::Write(args.output.clone().unwrap_or_else(|| "the screen".into()), error)),
    }
}

/// Notes go where a program that reads the report does not read.
fn say(sentences: &[String]) {
    for sentence in sentences {
        let _ = writeln!(io::stderr(), "tokenmeter: note: {sentence}");
    }
}

/// Why there is no report.
#[derive(Debug)]
pub(crate) enum SpendError {
    NoLedger(NoLedger),
    NoTime,
    /// There is no column of a name; these there are.
    NoColumn(Vec<String>),
    Ledger(Trouble),
    /// The price file cannot be read.
    Unread(String, io::Error),
    /// What is wrong with it.
    Prices(Vec<Diagnostic>),
    Write(PathBuf, io::Error),
}

impl fmt::Display for SpendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLedger(error) => write!(f, "{error}"),
            Self::NoTime => f.write_str(
                "there is no time between --since and --until: --until is exclusive, and comes after",
            ),
            Self::NoColumn(all) => {
                write!(f, "--columns names an unknown column; the columns are {}", all.join(", "))
            }
            Self::Ledger(trouble) => write!(f, "{trouble}"),
            Self::Unread(path, error) => {
                write!(f, "cannot read {path}: {error}; name a price file with --prices")
            }
            Self::Prices(errors) => {
                f.write_str("the price file does not say what models are:")?;
                errors.iter().try_for_each(|error| write!(f, "\n  {error}"))
            }
            Self::Write(path, error) => {
                write!(f, "cannot write {}: {error}; name another file with --output", path.display())
            }
        }
    }
}

impl std::error::Error for SpendError {}

const EXAMPLES: &str = "\
Examples:
  tokenmeter spend --ledger tokenmeter.db --month 2026-10 --by tenant,model
  tokenmeter spend --ledger tokenmeter.db --by day --where tenant=acme \\
    --since 2026-10-01 --until 2026-10-08
  tokenmeter spend --ledger tokenmeter.db --month last --by tenant --top 5
  tokenmeter spend --ledger tokenmeter.db --by month,tenant --basis gpu
  tokenmeter spend --ledger tokenmeter.db --billed 2026-11 --format focus \\
    --billing chargeback --output focus.csv
  tokenmeter spend --ledger tokenmeter.db --by tenant --format json |
    jq '.rows[] | {tenant, cost}'
  tokenmeter spend --ledger tokenmeter.db --by model,unpriced \\
    --where 'unpriced!='

The keys consumer, response_model, dialect and unpriced, and parts of a day, are
answered from rows; all else from daily totals. An exchange belongs to the UTC
day in which it ended. Exit codes: 1 the ledger cannot be read, 2 wrong flags.";

#[cfg(test)]
#[path = "spend_tests.rs"]
mod tests;
