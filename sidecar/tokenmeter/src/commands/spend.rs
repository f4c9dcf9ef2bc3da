//! The command `spend`: reports the spend from a ledger file or a central store, as a table, JSON, CSV or
//! FOCUS.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use ledger::Store;
use ledger::source::Month;
use ledger::{Range, Source, SourceError, period};
use price::Book;
use report::focus::{self, Billing, Options, Version};
use report::notes::{Notes, shell_word};
use report::query::unknown_key;
use report::{Basis, Column, Filter, Key, Order, Query, json, make, sheet, table};
use ship::Central;
use ship::address::is_postgres;
use text::nearest;

use super::ledger_path::{self, NoLedger};
use super::setting;
use crate::plan::machine::ThisMachine;
use crate::plan::{prices, store};
use crate::settings::diagnostic::Diagnostic;
use crate::settings::variable;

/// The arguments of `spend`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendArgs {
    ledger: Option<String>,
    config: Option<String>,
    query: Query,
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

impl Format {
    const ALL: [Self; 4] = [Self::Table, Self::Json, Self::Csv, Self::Focus];

    fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Focus => "focus",
        }
    }
}

impl SpendArgs {
    /// Reads the parsed flags.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let word = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
        let now_us = ledger::now_us();
        let this = period::month_at(period::day_at(now_us));
        let month = |name: &str| matches.get_one::<MonthArg>(name).map(|month| month.relative_to(this));
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
            query: Query {
                range,
                billed: month("billed"),
                by,
                filters: matches.get_many("where").into_iter().flatten().cloned().collect(),
                basis: if word("basis") == "gpu" { Basis::Gpu } else { Basis::Price },
                // With --top, rows are sorted by cost unless --sort is given.
                order: match word("sort") {
                    "" if top.is_some() => Order::Cost,
                    sort => Order::ALL.into_iter().find(|order| order.name() == sort).unwrap_or_default(),
                },
                now_us,
            },
            top,
            columns: text("columns"),
            format: Format::ALL
                .into_iter()
                .find(|format| format.name() == word("format"))
                .unwrap_or(Format::Table),
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

/// Returns the flag `--where`, which `ledger reprice` shares.
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
        .about("Report the spend from the ledger")
        .long_about("Report the spend from the ledger, exactly, with the provenance of its counts")
        .after_help(EXAMPLES)
        .args(ledger_path::arguments())
        .arg(time(
            "since",
            "Start of the range: a month (2026-10), a day or a time in UTC; by default the first row",
        ))
        .arg(time("until", "End of the range, exclusive: 2026-11 includes all of October; by default the last row"))
        .arg(
            Arg::new("month")
                .long("month")
                .value_name("MONTH")
                .value_parser(month)
                .conflicts_with_all(["since", "until"])
                .help("Usage of a month: 2026-10, this or last"),
        )
        .arg(
            Arg::new("billed").long("billed").value_name("MONTH").value_parser(month).help(
                "Charges billed in a month (2026-10, this or last): its usage, and late charges of closed months \
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
                .help(format!("Group by these keys: {}", names())),
        )
        .arg(filters(
            "Only matching exchanges; `*` matches any text, `\\,` is a comma, KEY!= excludes; repeat for another key",
        ))
        .arg(choice(
            "basis",
            &["price", "gpu"],
            "price",
            "Cost by the price book, or by GPU time and energy",
        ))
        .arg(
            Arg::new("sort")
                .long("sort")
                .value_name("NAME")
                .value_parser(clap::builder::PossibleValuesParser::new(Order::ALL.map(Order::name)))
                .help("Order of the rows; by default keys, with --top cost"),
        )
        .arg(
            Arg::new("top")
                .long("top")
                .value_name("N")
                .value_parser(|text: &str| text.parse::<usize>().ok().filter(|rows| *rows > 0).ok_or("write 1 or more"))
                .help("Only the first N rows; the total covers all"),
        )
        .arg(choice(
            "format",
            &Format::ALL.map(Format::name),
            Format::Table.name(),
            "Output format; csv and focus print notes to stderr",
        ))
        .arg(
            Arg::new("columns")
                .long("columns")
                .value_name("NAME,…")
                .help("Only with --format csv: columns after the keys, or `all`; by default the usual ones of a bill"),
        )
        .arg(choice("focus-version", &Version::ALL.map(Version::name), "1.2", "FOCUS version"))
        .arg(choice(
            "billing",
            &["showback", "chargeback"],
            "showback",
            "FOCUS: BilledCost is 0 with showback, the cost with chargeback",
        ))
        .arg(
            Arg::new("issuer")
                .long("issuer")
                .value_name("NAME")
                .default_value("tokenmeter")
                .help("FOCUS: issuer of the invoice"),
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("NAME")
                .default_value("LLM Inference")
                .help("FOCUS: name of the service"),
        )
        .arg(Arg::new("prices").long("prices").value_name("FILE").help(format!(
            "FOCUS: price file with developer, family and version of models [env: {}]",
            variable("prices")
        )))
        .arg(
            Arg::new("round")
                .long("round")
                .value_name("N")
                .value_parser(clap::value_parser!(u32).range(0..=12))
                .help(
                    "Round money to N decimal places, half to even, each row and the total by itself; CSV then has \
                     rows of totals, marked in its column `row`; by default money is exact",
                ),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Output file; by default stdout"),
        )
}

fn time(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("TIME").value_parser(|text: &str| period::instant(text)).help(help)
}

fn choice(name: &'static str, of: &[&'static str], usual: &'static str, help: &'static str) -> Arg {
    let parser = clap::builder::PossibleValuesParser::new(of.to_vec());
    Arg::new(name).long(name).value_name("NAME").value_parser(parser).default_value(usual).help(help)
}

/// A month on the command line.
#[derive(Clone, Copy, Debug)]
enum MonthArg {
    Named(Month),
    This,
    Last,
}

impl MonthArg {
    /// Returns the month, relative to the current month `this`.
    fn relative_to(self, this: Month) -> Month {
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

/// Refuses columns that are named for a format that has its own.
fn check_format(args: &SpendArgs) -> Result<(), SpendError> {
    match args.format {
        Format::Csv => Ok(()),
        other if args.columns.is_some() => Err(SpendError::ColumnsOf(other.name())),
        _ => Ok(()),
    }
}

/// Returns the columns of a CSV by their names.
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

/// Prints the report.
pub(crate) fn run(args: &SpendArgs) -> Result<ExitCode, SpendError> {
    let ledger =
        ledger_path::named(args.ledger.as_deref(), args.config.as_deref()).map_err(SpendError::NoLedger)?;
    if args.query.range.since_us >= args.query.range.until_us {
        return Err(SpendError::NoTime);
    }
    check_format(args)?;
    let source = open(&ledger)?;
    match &args.output {
        Some(path) => {
            let mut file = BufWriter::new(LazyFile { path, file: None });
            print(args, &*source, &mut file)?;
            file.flush().map_err(|error| SpendError::Write(path.clone(), error))?;
        }
        None => {
            let mut screen = BufWriter::new(io::stdout().lock());
            print(args, &*source, &mut screen)?;
            // A closed pipe is no error: its reader has enough.
            let _ = screen.flush();
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A file that is created at the first write: an existing one stays if the ledger cannot be read.
struct LazyFile<'a> {
    path: &'a Path,
    file: Option<File>,
}

impl Write for LazyFile<'_> {
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

/// Opens a ledger file or a central store.
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
    let (query, round) = (&args.query, args.round);
    if args.format == Format::Focus {
        match focus::write(source, query, &args.options, book(args)?.as_ref(), to) {
            Ok(notes) => {
                print_notes(&Notes { prices_flag: prices_flag(args), ..notes }.sentences(&query.range));
            }
            Err(trouble) => match trouble.downcast::<io::Error>() {
                Ok(error) => write_error(args, *error)?,
                Err(trouble) => return Err(SpendError::Ledger(trouble)),
            },
        }
        return Ok(());
    }
    let columns = columns(args.columns.as_deref(), query.basis)?;
    let mut report = make(source, query).map_err(SpendError::Ledger)?;
    report.notes.prices_flag = prices_flag(args);
    report.keep_first(args.top.unwrap_or(usize::MAX));
    let written = match args.format {
        Format::Json => json::write(&report, round, to),
        Format::Csv => sheet::write(&report, &columns, round, to),
        Format::Table | Format::Focus => table::write(&report, round, to),
    };
    written.or_else(|error| write_error(args, error))?;
    if args.format == Format::Csv {
        print_notes(&report.sentences(round));
    }
    Ok(())
}

/// Returns the flag by which `prices show` finds the price file: empty if a variable names the file; `None` if no file
/// is known.
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

/// Reads the price file, if one is named, for developers and families of models.
fn book(args: &SpendArgs) -> Result<Option<Book>, SpendError> {
    let named = setting::named("prices", args.prices.as_deref(), args.config.as_deref(), &ThisMachine);
    let Some(path) = named.map_err(|error| SpendError::Prices(vec![error]))? else {
        return Ok(None);
    };
    let text = prices::text(&path).map_err(|error| SpendError::Unread(path.clone(), error))?;
    let (book, _) = prices::parse(&path, &text).map_err(SpendError::Prices)?;
    Ok(Some(book))
}

/// Returns the error of a write; a closed pipe is none, since its reader has enough.
fn write_error(args: &SpendArgs, error: io::Error) -> Result<(), SpendError> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(SpendError::Write(args.output.clone().unwrap_or_else(|| "the screen".into()), error)),
    }
}

/// Prints notes to stderr, apart from the report.
fn print_notes(sentences: &[String]) {
    for sentence in sentences {
        let _ = writeln!(io::stderr(), "tokenmeter: note: {sentence}");
    }
}

/// The error of a report.
#[derive(Debug)]
pub(crate) enum SpendError {
    NoLedger(NoLedger),
    NoTime,
    /// A column is unknown; the columns that exist.
    NoColumn(Vec<String>),
    /// Columns are named for a format that has its own.
    ColumnsOf(&'static str),
    Ledger(SourceError),
    /// The price file cannot be read.
    Unread(String, io::Error),
    /// The price file is invalid.
    Prices(Vec<Diagnostic>),
    Write(PathBuf, io::Error),
}

impl fmt::Display for SpendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLedger(error) => write!(f, "{error}"),
            Self::NoTime => f.write_str("the range is empty: --until is exclusive and must be after --since"),
            Self::NoColumn(all) => {
                write!(f, "--columns names an unknown column; the columns are {}", all.join(", "))
            }
            Self::ColumnsOf(format) => write!(
                f,
                "--columns is only for --format csv, and the format is {format}: add --format csv or leave --columns out"
            ),
            Self::Ledger(trouble) => write!(f, "{trouble}"),
            Self::Unread(path, error) => {
                write!(f, "cannot read {path}: {error}; name a price file with --prices")
            }
            Self::Prices(errors) => {
                f.write_str("the price file is invalid:")?;
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

The keys consumer, response_model, dialect and unpriced, and parts of a day,
need rows; all else comes from daily totals. An exchange belongs to the UTC day
in which it ended. Exit codes: 1 the ledger cannot be read, 2 invalid flags.";

#[cfg(test)]
#[path = "spend_tests.rs"]
mod tests;
