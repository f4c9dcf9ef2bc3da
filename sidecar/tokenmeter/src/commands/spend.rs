//! The command `spend`: reports the spend from a ledger file or a central store, as a table, JSON, CSV or
//! FOCUS.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use ledger::Store;
use ledger::period::Time;
use ledger::source::Month;
use ledger::{Calendar, Range, Source, SourceError, Zone, month};
use origin::{Diagnostic, Diagnostics, Origin};
use price::Book;
use report::focus::{self, Billing, Options, Version};
use report::notes::{Notes, shell_word};
use report::query::UnknownKey;
use report::{Basis, Column, Filter, Idle, Key, Order, Query, WhatIf, json, make, sheet, table};
use ship::Central;
use ship::address::is_postgres;
use text::nearest;

use super::ledger_path::{LedgerFlags, NoLedger};
use super::output::{Stdout, listed};
use super::setting::{self, with_variable};
use super::watched::Watched;
use super::words::one_of;
use super::{note, print_message, progress};
use crate::plan::machine::ThisMachine;
use crate::plan::{attributes, prices, store};
use crate::settings::setting as setting_of;

/// The arguments of `spend`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct SpendArgs {
    #[command(flatten)]
    ledger: LedgerFlags,
    #[command(flatten)]
    period: PeriodFlags,
    #[arg(
        long,
        value_name = "KEY,…",
        value_delimiter = ',',
        value_parser = key,
        help = format!("Group by these keys: {}, tag.NAME", Key::ALL.map(Key::name).join(", ")),
        help_heading = ROWS
    )]
    by: Vec<Key>,
    /// Only matching exchanges; `*` matches any text, `\,` is a comma, KEY!= excludes; repeat for another key.
    #[arg(long = "where", value_name = "KEY=VALUE,…", value_parser = Filter::read, help_heading = ROWS)]
    filters: Vec<Filter>,
    /// Cost by the price book, or by GPU time and energy.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = one_of(Basis::ALL, Basis::name),
        default_value = Basis::Price.name(),
        help_heading = ROWS
    )]
    basis: Basis,
    /// Only with --basis gpu: allocate the cost of idle GPUs to the tenants with usage on the same day.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = one_of(Idle::ALL, Idle::name),
        default_value = Idle::None.name(),
        help_heading = ROWS
    )]
    idle: Idle,
    #[arg(
        long,
        value_name = "FILE",
        help = with_variable("Attributes file of tenants, for report keys and FOCUS tags", "attributes"),
        help_heading = ROWS
    )]
    attributes: Option<String>,
    /// Also show what the exchanges would cost by this price file; nothing is entered.
    #[arg(long = "what-if", value_name = "FILE", help_heading = ROWS)]
    what_if: Option<String>,
    /// Order of the rows; by default by keys, or by cost with --top.
    #[arg(long, value_name = "NAME", value_parser = one_of(Order::ALL, Order::name), help_heading = ROWS)]
    sort: Option<Order>,
    /// Only the first N rows; the total covers all.
    #[arg(long, value_name = "N", value_parser = top, help_heading = ROWS)]
    top: Option<usize>,
    /// Output format; csv and focus print notes to stderr.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Format::Table, help_heading = OUTPUT)]
    format: Format,
    /// Only with table and csv: columns after the keys, or `all`; by default the usual ones of a bill.
    #[arg(long, value_name = "NAME,…", help_heading = OUTPUT)]
    columns: Option<String>,
    /// Add what prompt caches saved and what aborted, failed and repeated exchanges and idle GPUs cost; reads rows.
    /// JSON always has it, but repetitions only with this flag.
    #[arg(long, help_heading = OUTPUT)]
    savings: bool,
    /// Round money to N decimal places, half to even, each row and the total by itself; CSV then has rows of totals,
    /// marked in its column `row`; by default money is exact.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(0..=12),
        help_heading = OUTPUT
    )]
    round: Option<u32>,
    /// Output file; by default stdout.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    #[command(flatten)]
    focus: FocusFlags,
}

const ROWS: &str = "Rows";
const OUTPUT: &str = "Output";

/// The flags that select a period.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(next_help_heading = "Period")]
struct PeriodFlags {
    /// Start of the range: a month (2026-10), a day, or a time in UTC; by default the first row.
    #[arg(long, value_name = "TIME", value_parser = Time::read)]
    since: Option<Time>,
    /// End of the range, exclusive: 2026-11 includes all of October; by default the last row.
    #[arg(long, value_name = "TIME", value_parser = Time::read)]
    until: Option<Time>,
    /// Usage of a month: 2026-10, this or last.
    #[arg(long, value_name = "MONTH", value_parser = month, conflicts_with_all = ["since", "until"])]
    month: Option<MonthArg>,
    /// Charges billed in a month (2026-10, this or last): its usage, and late charges of closed months before it.
    #[arg(long, value_name = "MONTH", value_parser = month)]
    billed: Option<MonthArg>,
    /// Time zone of days, weeks and months, as in Europe/Berlin; needs rows. By default that of the ledger.
    #[arg(long, value_name = "NAME", value_parser = Zone::named, conflicts_with = "billed")]
    time_zone: Option<Zone>,
}

/// The flags of FOCUS.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(next_help_heading = "FOCUS (with --format focus)")]
struct FocusFlags {
    /// FOCUS version.
    #[arg(
        long = "focus-version",
        value_name = "NAME",
        value_parser = one_of(Version::ALL, Version::name),
        default_value = Version::V1_2.name()
    )]
    version: Version,
    #[arg(
        long = "focus-billing",
        value_name = "NAME",
        value_parser = one_of(Billing::ALL, Billing::name),
        help = with_variable(
            "BilledCost is 0 with showback (default), the cost with chargeback",
            "focus_billing"
        )
    )]
    billing: Option<Billing>,
    /// Issuer of the invoice.
    #[arg(long, value_name = "NAME", default_value = "tokenmeter")]
    issuer: String,
    /// Name of the service.
    #[arg(long, value_name = "NAME", default_value = "LLM Inference")]
    service: String,
    #[arg(
        long,
        value_name = "FILE",
        help = with_variable("Price file with developer, family and version of models", "prices")
    )]
    prices: Option<String>,
    /// File to which the metadata of the dataset is written.
    #[arg(long = "focus-metadata", value_name = "FILE")]
    metadata: Option<PathBuf>,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
    Csv,
    Focus,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_possible_value().map_or(Ok(()), |value| f.write_str(value.get_name()))
    }
}

impl SpendArgs {
    /// Builds the query. Days and months are those of `calendar`, the ledger's; relative months are relative to
    /// `now_us`.
    fn query(&self, calendar: &Calendar, now_us: i64) -> Query {
        let other = self.period.time_zone.clone().map(Calendar::of);
        let calendar = other.as_ref().unwrap_or(calendar);
        let this = calendar.month(now_us);
        let mut by: Vec<Key> = Vec::new();
        for key in &self.by {
            if !by.contains(key) {
                by.push(*key);
            }
        }
        Query {
            range: self.period.range(calendar, this),
            time_zone: self.period.time_zone.clone(),
            billed: self.period.billed.map(|month| month.relative_to(this)),
            by,
            filters: self.filters.clone(),
            basis: self.basis,
            idle: self.idle,
            repeats: self.savings,
            // With --top, rows are sorted by cost unless --sort is given.
            order: self.sort.unwrap_or(if self.top.is_some() { Order::Cost } else { Order::Keys }),
            ..Query::all(now_us)
        }
    }

    /// Returns the query with its range and its bill's month by the ledger's calendar.
    ///
    /// # Errors
    /// If the range is empty by that calendar.
    fn with_calendar(&self, query: Query, calendar: &Calendar) -> Result<Query, SpendError> {
        let Query { range, billed, .. } = self.query(calendar, query.now_us);
        if range.since_us >= range.until_us {
            return Err(SpendError::NoTime);
        }
        Ok(Query { range, billed, ..query })
    }

    /// Adds the files that the query names.
    fn with_files(&self, query: Query) -> Result<Query, SpendError> {
        let named = setting::named(
            "attributes",
            self.attributes.as_deref(),
            self.ledger.config.as_deref(),
            &ThisMachine,
        );
        let attributes = match named.map_err(|error| SpendError::Attributes(Diagnostics(vec![error])))? {
            Some(path) => {
                let origin = Origin::Flag(setting_of("attributes").flag());
                attributes::read(&path, &origin).map_err(SpendError::Attributes)?.into()
            }
            None if query.asks_for_attributes() => return Err(SpendError::NoAttributes),
            None => query.attributes,
        };
        let what_if = self.what_if.as_deref().map(|path| read_book(path, "--what-if")).transpose()?;
        let what_if = what_if.map(|book| WhatIf { book: book.into() });
        Ok(Query { attributes, what_if, ..query })
    }
}

impl PeriodFlags {
    /// Returns the range by a calendar. `this`: the current month.
    fn range(&self, calendar: &Calendar, this: Month) -> Range {
        let instant_us = |time: Option<Time>, none| time.map_or(none, |time| time.instant_us(calendar));
        match self.month.map(|month| month.relative_to(this)) {
            Some(month) => Range::of_month(calendar, month),
            None => Range {
                since_us: instant_us(self.since, i64::MIN),
                until_us: instant_us(self.until, i64::MAX),
            },
        }
    }
}

impl FocusFlags {
    /// Returns the options; the settings file is `config`.
    fn options(&self, config: Option<&str>) -> Result<Options, SpendError> {
        let of_setting = || {
            let name = setting::chosen("focus_billing", config, &ThisMachine).map_err(SpendError::Setting)?;
            Ok(Billing::ALL.into_iter().find(|billing| billing.name() == name).unwrap_or(Billing::Showback))
        };
        Ok(Options {
            version: self.version,
            billing: self.billing.map_or_else(of_setting, Ok)?,
            issuer: self.issuer.clone(),
            service: self.service.clone(),
        })
    }
}

/// A month on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MonthArg {
    Named(Month),
    This,
    Last,
}

impl MonthArg {
    /// Returns the month, relative to the current month `this`.
    pub(super) fn relative_to(self, this: Month) -> Month {
        match self {
            Self::Named(month) => month,
            Self::This => this,
            Self::Last => this - 1,
        }
    }
}

pub(super) fn month(text: &str) -> Result<MonthArg, String> {
    match text {
        "this" => Ok(MonthArg::This),
        "last" => Ok(MonthArg::Last),
        text => month::read(text).map(MonthArg::Named).ok_or_else(|| {
            format!("`{}` is not a month; write one as 2026-10, this or last", text.escape_debug())
        }),
    }
}

fn top(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|rows| *rows > 0).ok_or("write 1 or more")
}

/// Rejects flags that do not apply to the format or the basis.
fn check_flags(args: &SpendArgs) -> Result<(), SpendError> {
    let format = args.format;
    let has_columns = matches!(format, Format::Csv | Format::Table);
    let wrong = match () {
        () if args.columns.is_some() && !has_columns => Some(("--columns", "--format table or csv")),
        () if args.savings && !matches!(format, Format::Table | Format::Json) => {
            Some(("--savings", "--format table or json"))
        }
        () if args.what_if.is_some() && format == Format::Focus => {
            Some(("--what-if", "--format table, csv or json"))
        }
        () if args.focus.metadata.is_some() && format != Format::Focus => {
            Some(("--focus-metadata", "--format focus"))
        }
        () if args.period.time_zone.is_some() && args.format == Format::Focus => {
            Some(("--time-zone", "--format table, csv or json"))
        }
        () if args.period.time_zone.is_some() && args.basis == Basis::Gpu => {
            Some(("--time-zone", "--basis price"))
        }
        () if args.idle != Idle::None && args.basis != Basis::Gpu => Some(("--idle", "--basis gpu")),
        () => None,
    };
    wrong.map_or(Ok(()), |(flag, only)| Err(SpendError::Flag { flag, only }))
}

/// Returns the named columns; `None` if none are named.
fn columns(names: Option<&str>, query: &Query) -> Result<Option<Vec<Column>>, SpendError> {
    let all = Column::all(query);
    match names {
        None => Ok(None),
        Some("all") => Ok(Some(all)),
        Some(names) => names
            .split(',')
            .map(|name| all.iter().copied().find(|column| column.name() == name))
            .collect::<Option<_>>()
            .map(Some)
            .ok_or_else(|| SpendError::NoColumn(all.iter().map(|column| column.name()).collect())),
    }
}

fn key(text: &str) -> Result<Key, String> {
    Key::named(text).ok_or_else(|| match nearest(text, Key::ALL.iter().map(|key| key.name())) {
        Some(near) => format!("there is no key `{}`; did you mean `{near}`?", text.escape_debug()),
        None => UnknownKey(text.to_owned()).to_string(),
    })
}

/// Prints the report.
pub(crate) fn run(args: &SpendArgs) -> Result<ExitCode, SpendError> {
    let ledger = args.ledger.named().map_err(SpendError::NoLedger)?;
    check_flags(args)?;
    // Errors in the files are reported before errors of the ledger.
    let now_us = ledger::now_us();
    let query = args.with_files(args.query(&Calendar::default(), now_us))?;
    progress::begin("reading");
    let source = Watched(open(&ledger)?);
    let query = args.with_calendar(query, &source.calendar())?;
    match &args.output {
        Some(path) => {
            let mut file = BufWriter::new(LazyFile { path, file: None });
            print(args, &query, &source, &mut file)?;
            file.flush().map_err(|error| SpendError::Write(path.clone(), "--output", error))?;
        }
        None => {
            let mut screen = BufWriter::new(Stdout);
            print(args, &query, &source, &mut screen)?;
            note(screen.flush());
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
pub(super) fn open(ledger: &str) -> Result<Box<dyn Source>, SpendError> {
    if is_postgres(ledger) {
        let central = store::address_for_command(ledger, &ThisMachine)
            .map_err(|error| error.to_string().into())
            .and_then(|address| Ok(Central::open(&address)?))
            .map_err(SpendError::Ledger)?;
        return Ok(Box::new(central));
    }
    let store = Store::open_read(Path::new(ledger)).map_err(|error| SpendError::Ledger(error.into()))?;
    Ok(Box::new(store))
}

fn print(args: &SpendArgs, query: &Query, source: &dyn Source, to: &mut dyn Write) -> Result<(), SpendError> {
    let round = args.round;
    if args.format == Format::Focus {
        let options = args.focus.options(args.ledger.config.as_deref())?;
        match focus::write(source, query, &options, book(args)?.as_ref(), to) {
            Ok(notes) => {
                if let Some(path) = &args.focus.metadata {
                    let mut file = BufWriter::new(LazyFile { path, file: None });
                    focus::metadata::write(query, &options, &notes, &mut file)
                        .and_then(|()| file.flush())
                        .map_err(|error| SpendError::Write(path.clone(), "--focus-metadata", error))?;
                }
                print_notes(&Notes { prices_flag: prices_flag(args), ..notes }.sentences(&query.range));
            }
            Err(error) => match error.downcast::<io::Error>() {
                Ok(error) => write_error(args, *error)?,
                Err(error) => return Err(SpendError::Ledger(error)),
            },
        }
        return Ok(());
    }
    let columns = columns(args.columns.as_deref(), query)?;
    let mut report = make(source, query).map_err(SpendError::Ledger)?;
    report.notes.prices_flag = prices_flag(args);
    report.keep_first(args.top.unwrap_or(usize::MAX));
    let written = match args.format {
        Format::Json => json::write(&report, round, to),
        Format::Csv => {
            let columns = columns.unwrap_or_else(|| Column::usual(query));
            sheet::write(&report, &columns, round, to)
        }
        Format::Table | Format::Focus => {
            let layout = table::Layout { round, columns: columns.as_deref(), savings: args.savings };
            table::write_with(&report, &layout, to)
        }
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
    if let Some(path) = &args.focus.prices {
        return flag("prices", path);
    }
    let named = setting::named("prices", None, args.ledger.config.as_deref(), &ThisMachine).ok()?;
    match (named, &args.ledger.config) {
        (None, _) => None,
        (Some(_), Some(config)) => flag("config", config),
        (Some(_), None) => Some(String::new()),
    }
}

/// Reads the price file, if one is named, for developers and families of models.
fn book(args: &SpendArgs) -> Result<Option<Book>, SpendError> {
    let named =
        setting::named("prices", args.focus.prices.as_deref(), args.ledger.config.as_deref(), &ThisMachine);
    let Some(path) = named.map_err(|error| SpendError::Prices(vec![error]))? else { return Ok(None) };
    read_book(&path, "--prices").map(Some)
}

/// Reads the price file that a flag names.
fn read_book(path: &str, flag: &'static str) -> Result<Book, SpendError> {
    let text = prices::text(path).map_err(|error| SpendError::Unread(path.to_owned(), flag, error))?;
    let (book, _) = prices::parse(path, &text).map_err(SpendError::Prices)?;
    Ok(book)
}

/// Returns the error of a write; a closed pipe is none, since its reader has enough.
fn write_error(args: &SpendArgs, error: io::Error) -> Result<(), SpendError> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => {
            let path = args.output.clone().unwrap_or_else(|| "standard output".into());
            Err(SpendError::Write(path, "--output", error))
        }
    }
}

/// Prints notes to stderr, apart from the report.
fn print_notes(sentences: &[String]) {
    for sentence in sentences {
        print_message(&format!("note: {sentence}"));
    }
}

/// The error of a report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpendError {
    #[error("{0}")]
    NoLedger(NoLedger),
    #[error("the range is empty: --until is exclusive and must be after --since")]
    NoTime,
    /// A column is unknown; the columns that exist.
    #[error("--columns names an unknown column; the columns are {}", .0.join(", "))]
    NoColumn(Vec<String>),
    /// A flag does not apply.
    #[error("{flag} is only for {only}: add that or leave {flag} out")]
    Flag {
        flag: &'static str,
        /// The flags with which it applies.
        only: &'static str,
    },
    #[error("{0}")]
    Ledger(SourceError),
    /// A setting is invalid.
    #[error("{0}")]
    Setting(Diagnostic),
    /// A key is an attribute of tenants, and no file has them.
    #[error(
        "cost_center, department, owner and tag.NAME are attributes of tenants: name their file with --attributes"
    )]
    NoAttributes,
    /// The attributes file is invalid.
    #[error("{0}")]
    Attributes(Diagnostics),
    /// The price file that a flag names cannot be read.
    #[error("cannot read {0}: {2}; name a price file with {1}")]
    Unread(String, &'static str, io::Error),
    /// The price file is invalid.
    #[error("the price file is invalid:{}", listed(.0))]
    Prices(Vec<Diagnostic>),
    /// The file that a flag names cannot be written.
    #[error("cannot write {0}: {2}; name another file with {1}")]
    Write(PathBuf, &'static str, io::Error),
}

const EXAMPLES: &str = "\
Examples:
  tokenmeter spend --ledger tokenmeter.db --month 2026-10 --by tenant,model
  tokenmeter spend --ledger tokenmeter.db --by day --where tenant=acme \\
    --since 2026-10-01 --until 2026-10-08
  tokenmeter spend --ledger tokenmeter.db --month last --by tenant --top 5
  tokenmeter spend --ledger tokenmeter.db --by day --time-zone Asia/Tokyo
  tokenmeter spend --ledger tokenmeter.db --by month,tenant --basis gpu \\
    --idle proportional
  tokenmeter spend --ledger tokenmeter.db --by cost_center \\
    --attributes attributes.yaml
  tokenmeter spend --ledger tokenmeter.db --by model --what-if other.yaml
  tokenmeter spend --ledger tokenmeter.db --billed 2026-11 --format focus \\
    --focus-billing chargeback --output focus.csv
  tokenmeter spend --ledger tokenmeter.db --by tenant --format json |
    jq '.rows[] | {tenant, cost}'
  tokenmeter spend --ledger tokenmeter.db --by model,unpriced \\
    --where 'unpriced!='

The keys consumer, response_model, dialect and unpriced, and parts of a day,
need rows; all else comes from daily totals. An exchange belongs to the day in
which it ended, by the ledger's time zone. Exit codes: 1 the ledger cannot be
read, 2 invalid flags.";

#[cfg(test)]
#[path = "spend_tests.rs"]
mod tests;
