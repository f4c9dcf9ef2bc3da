//! The command `prices`: imports, checks, compares and queries price files. The crate `price` defines their
//! format.

mod init;
mod render;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use ::price::litellm::{self, Import};
use ::price::{Book, Currency, LineError, instant};
use clap::{Arg, ArgMatches, Command};

use crate::plan::machine::ThisMachine;
use crate::plan::prices::text;
use crate::settings::diagnostic::Diagnostic;
use crate::settings::variable;

pub(crate) use self::init::Init;
use super::{INVALID_SETTINGS, setting};

/// The subcommands of `prices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PricesArgs {
    /// Convert LiteLLM's map to a price file.
    Import {
        /// The map.
        map: String,
        /// The currency of its prices.
        currency: Currency,
        /// The version of the price file.
        version: Option<String>,
        /// The output file.
        out: Option<PathBuf>,
    },
    /// Write a first price file.
    Init(Init),
    /// Show errors and warnings of a price file.
    Lint {
        /// The price file.
        file: String,
        /// JSON output.
        json: bool,
    },
    /// Show differences.
    Diff {
        /// The old price file.
        old: String,
        /// The new price file.
        new: String,
        /// JSON output.
        json: bool,
    },
    /// Show the price of a model.
    Show(Show),
}

/// The arguments of `prices show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Show {
    file: Option<String>,
    config: Option<String>,
    model: String,
    at_us: i64,
    tier: Option<String>,
    provider: String,
    upstream: String,
    json: bool,
}

impl PricesArgs {
    /// Reads the parsed flags.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let (name, matches) = matches.subcommand().expect("clap requires a subcommand");
        let text = |key: &str| matches.get_one::<String>(key).cloned();
        let required = |key: &str| text(key).expect("clap requires it");
        let json = || matches.get_one::<String>("format").is_some_and(|format| format == "json");
        match name {
            "import-litellm" => Self::Import {
                map: required("file"),
                currency: *matches.get_one("currency").expect("it has a default"),
                version: text("version-name"),
                out: matches.get_one("out").cloned(),
            },
            "init" => Self::Init(Init {
                models: matches.get_many("model").into_iter().flatten().cloned().collect(),
                input: required("input"),
                cached_input: text("cached-input"),
                output: required("output"),
                currency: *matches.get_one("currency").expect("it has a default"),
                out: matches.get_one("out").cloned(),
            }),
            "lint" => Self::Lint { file: required("file"), json: json() },
            "diff" => Self::Diff { old: required("old"), new: required("new"), json: json() },
            _ => Self::Show(Show {
                file: text("prices"),
                config: text("config"),
                model: required("model"),
                at_us: matches.get_one("at").copied().unwrap_or_else(now),
                tier: text("tier"),
                provider: text("provider").unwrap_or_default(),
                upstream: text("upstream").unwrap_or_default(),
                json: json(),
            }),
        }
    }
}

/// The command line of `prices`.
pub(crate) fn command() -> Command {
    let file = |name: &'static str, shown: &'static str, help: &'static str| {
        Arg::new(name).value_name(shown).required(true).help(help)
    };
    let flag = |name: &'static str, shown: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(shown).help(help)
    };
    let format =
        || flag("format", "NAME", "Output format").value_parser(["table", "json"]).default_value("table");
    let currency = || {
        flag("currency", "CODE", "Currency of the prices, by ISO 4217")
            .default_value("USD")
            .value_parser(currency)
    };
    let out = || {
        flag("out", "FILE", "File to write; by default the standard output")
            .value_parser(clap::value_parser!(PathBuf))
    };
    let price = |name: &'static str, help: &'static str| flag(name, "PRICE", help).value_parser(init::price);
    Command::new("prices")
        .about("Import, check, compare and query price files")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("init")
                .about("Write a first price file for models that you name and price")
                .arg(
                    Arg::new("model")
                        .value_name("MODEL")
                        .num_args(0..)
                        .help("Models, as requests name them; by default one entry for every model"),
                )
                .arg(price("input", "Price of a million prompt tokens, as in 0.10").required(true))
                .arg(price("cached-input", "Price of a million prompt tokens read from the server's cache; by default that of --input"))
                .arg(price("output", "Price of a million generated tokens").required(true))
                .arg(currency())
                .arg(out()),
        )
        .subcommand(
            Command::new("import-litellm")
                .about("Convert LiteLLM's price map (model_prices_and_context_window.json) to a price file")
                .arg(file("file", "FILE", "LiteLLM's price map"))
                .arg(currency())
                .arg(
                    Arg::new("version-name")
                        .long("version-name")
                        .value_name("NAME")
                        .help("Version of the price file; by default litellm- and a hash of the map"),
                )
                .arg(out()),
        )
        .subcommand(
            Command::new("lint")
                .about("Show all errors and warnings of a price file, with lines")
                .arg(file("file", "FILE", "Price file"))
                .arg(format()),
        )
        .subcommand(
            Command::new("diff")
                .about("Show the differences between two price files, per million tokens")
                .arg(file("old", "OLD", "Old price file"))
                .arg(file("new", "NEW", "New price file"))
                .arg(format()),
        )
        .subcommand(
            Command::new("show")
                .about("Show the price of a model and the entry that sets it")
                .arg(file("model", "MODEL", "Model, as requests name it"))
                .arg(
                    Arg::new("prices")
                        .long("prices")
                        .value_name("FILE")
                        .help(format!("Price file [env: {}]", variable("prices"))),
                )
                .arg(
                    Arg::new("config")
                        .long("config")
                        .value_name("FILE")
                        .help(format!("Settings file that names the price file [env: {}]", variable("config"))),
                )
                .arg(
                    flag("at", "DATE", "Time, as in 2026-11-21 or 2026-11-21T09:00:00Z; by default now")
                        .value_parser(at),
                )
                .arg(flag("tier", "NAME", "Service tier; by default standard"))
                .arg(flag("provider", "NAME", "Server type, for entries that are restricted to one"))
                .arg(flag("upstream", "NAME", "Upstream, for entries that are restricted to one"))
                .arg(format()),
        )
}

/// Executes the subcommand.
pub(crate) fn run(args: &PricesArgs) -> Result<ExitCode, PricesError> {
    match args {
        PricesArgs::Import { map, currency, version, out } => {
            let json = text(map).map_err(|error| PricesError::Read(map.clone(), error))?;
            let options = litellm::ImportOptions { version: version.clone(), currency: *currency };
            let import =
                litellm::import(&json, &options).map_err(|error| PricesError::NoMap(map.clone(), error))?;
            write_import(&import, out.as_ref())
        }
        PricesArgs::Init(args) => {
            let text =
                args.text(now()).map_err(|problems| PricesError::Wrong("the file".to_owned(), problems))?;
            match &args.out {
                Some(path) => {
                    init::create(path, &text).map_err(|error| PricesError::Write(path.clone(), error))?;
                }
                None => print(&text),
            }
            Ok(ExitCode::SUCCESS)
        }
        PricesArgs::Lint { file, json } => {
            let text = text(file).map_err(|error| PricesError::Read(file.clone(), error))?;
            let read = Book::read(&text).map(|(book, mut warnings)| {
                warnings.extend(book.ended(now()));
                warnings.sort_by_key(|warning| warning.line);
                (book, warnings)
            });
            let code = if read.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(INVALID_SETTINGS) };
            print(&if *json { render::lint_json(file, &read) } else { render::lint(file, &read) });
            Ok(code)
        }
        PricesArgs::Diff { old, new, json } => {
            let (old, new) = (book(old)?, book(new)?);
            print(&if *json { render::diff_json(&old, &new) } else { render::diff(&old, &new) });
            Ok(ExitCode::SUCCESS)
        }
        PricesArgs::Show(args) => {
            let named = setting::named("prices", args.file.as_deref(), args.config.as_deref(), &ThisMachine);
            let file = named.map_err(PricesError::Config)?.ok_or(PricesError::Unnamed)?;
            let book = book(&file)?;
            let entry = book.find(&args.model, &args.provider, &args.upstream, args.at_us);
            let entry = entry.ok_or_else(|| PricesError::NoEntry(render::unpriced(&book, &file, args)))?;
            print(&if args.json {
                render::show_json(&book, entry, args)
            } else {
                render::show(&book, entry, args)
            });
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn write_import(import: &Import, out: Option<&PathBuf>) -> Result<ExitCode, PricesError> {
    // The result must be a valid price file, whatever the map holds.
    Book::read(&import.file).map_err(|problems| PricesError::Wrong("the import".to_owned(), problems))?;
    match out {
        Some(path) => {
            std::fs::write(path, &import.file).map_err(|error| PricesError::Write(path.clone(), error))?;
        }
        None => print(&import.file),
    }
    // Without a stderr the message has no reader.
    let _ = io::stderr().write_all(render::import(import).as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn book(file: &str) -> Result<Book, PricesError> {
    let text = text(file).map_err(|error| PricesError::Read(file.to_owned(), error))?;
    match Book::read(&text) {
        Ok((book, _)) => Ok(book),
        Err(problems) => Err(PricesError::Wrong(file.to_owned(), problems)),
    }
}

fn print(text: &str) {
    // A closed pipe is no error: its reader has enough.
    let _ = io::stdout().write_all(text.as_bytes());
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn at(text: &str) -> Result<i64, String> {
    instant::read(text)
        .ok_or_else(|| "write a date or a date and time, as in 2026-11-21 or 2026-11-21T09:00:00Z".to_owned())
}

fn currency(text: &str) -> Result<Currency, String> {
    let code = <[u8; 3]>::try_from(text.as_bytes()).ok().map(Currency);
    code.filter(Currency::is_known)
        .ok_or_else(|| "write its three capital letters, as in USD or EUR".to_owned())
}

/// The error of a subcommand.
#[derive(Debug)]
pub(crate) enum PricesError {
    Read(String, io::Error),
    Write(PathBuf, io::Error),
    NoMap(String, String),
    Wrong(String, Vec<LineError>),
    NoEntry(String),
    /// The settings file cannot be read.
    Config(Diagnostic),
    /// Nothing names a price file.
    Unnamed,
}

impl fmt::Display for PricesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(file, error) => write!(f, "{file} cannot be read: {error}"),
            Self::Write(path, error) => {
                write!(f, "cannot write {}: {error}; name another file with --out", path.display())
            }
            Self::NoMap(file, error) => write!(
                f,
                "{file} is no price map: {error}; name LiteLLM's model_prices_and_context_window.json"
            ),
            Self::Wrong(file, problems) => {
                write!(f, "{file} is no price file:")?;
                problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
            Self::NoEntry(text) => f.write_str(text),
            Self::Config(error) => write!(f, "{error}"),
            Self::Unnamed => write!(
                f,
                "no price file is named; add --prices FILE, or --config FILE with a settings file that sets `prices`, \
                 or set {}",
                variable("prices")
            ),
        }
    }
}

impl std::error::Error for PricesError {}

const EXAMPLES: &str = "\
Examples:
  tokenmeter prices init qwen3-8b --input 0.10 --output 0.40 --out prices.yaml
  tokenmeter prices import-litellm model_prices_and_context_window.json \\
    --out prices.yaml
  tokenmeter prices lint prices.yaml
  tokenmeter prices diff prices-2026-10.yaml prices.yaml
  tokenmeter prices show gpt-4o --prices prices.yaml \\
    --at 2026-11-21 --tier batch

Exit codes: 1 a file cannot be read, or has no such model; 2 lint found errors.";

#[cfg(test)]
#[path = "prices_tests.rs"]
mod tests;
