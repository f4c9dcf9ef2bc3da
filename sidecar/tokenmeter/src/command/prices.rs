//! The command `prices`: what can be done with price files without running anything. What the words in
//! them mean is the crate `price`'s business.

mod init;
mod told;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use ::price::litellm::{self, Import};
use ::price::{Book, Currency, Problem, instant};
use clap::{Arg, ArgMatches, Command};

use crate::diagnostic::Diagnostic;
use crate::machine::ThisMachine;
use crate::plan::prices::text;
use crate::settings::variable;

pub(crate) use self::init::Init;
use super::{INVALID_SETTINGS, setting};

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PricesArgs {
    /// Make a price file of LiteLLM's map.
    Import {
        /// The map.
        map: String,
        /// What its prices are in.
        currency: Currency,
        /// What the file's version is to be called.
        version: Option<String>,
        /// Where it is written.
        out: Option<PathBuf>,
    },
    /// Write a first price file.
    Init(Init),
    /// Say what is wrong or doubtful in a file.
    Lint {
        /// The price file.
        file: String,
        /// For programs.
        json: bool,
    },
    /// Say what differs.
    Diff {
        /// The price file before.
        old: String,
        /// And after.
        new: String,
        /// For programs.
        json: bool,
    },
    /// Say what a model costs.
    Show(Show),
}

/// Whose prices are to be shown.
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
    /// As the flags have it.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let (what, matches) = matches.subcommand().expect("clap asks for one");
        let text = |key: &str| matches.get_one::<String>(key).cloned();
        let needed = |key: &str| text(key).expect("clap asks for it");
        let json = || matches.get_one::<String>("format").is_some_and(|format| format == "json");
        match what {
            "import-litellm" => Self::Import {
                map: needed("file"),
                currency: *matches.get_one("currency").expect("it has a default"),
                version: text("version-name"),
                out: matches.get_one("out").cloned(),
            },
            "init" => Self::Init(Init {
                models: matches.get_many("model").into_iter().flatten().cloned().collect(),
                input: needed("input"),
                cached_input: text("cached-input"),
                output: needed("output"),
                currency: *matches.get_one("currency").expect("it has a default"),
                out: matches.get_one("out").cloned(),
            }),
            "lint" => Self::Lint { file: needed("file"), json: json() },
            "diff" => Self::Diff { old: needed("old"), new: needed("new"), json: json() },
            _ => Self::Show(Show {
                file: text("prices"),
                config: text("config"),
                model: needed("model"),
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
    let format = || {
        flag("format", "NAME", "For people, or for programs")
            .value_parser(["table", "json"])
            .default_value("table")
    };
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
        .about("Price files: import, check, compare and look things up in them")
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
                .about("Make a price file of LiteLLM's price map (model_prices_and_context_window.json)")
                .arg(file("file", "FILE", "The map"))
                .arg(currency())
                .arg(
                    Arg::new("version-name")
                        .long("version-name")
                        .value_name("NAME")
                        .help("What the version is to be called; by default litellm- and a hash of the map"),
                )
                .arg(out()),
        )
        .subcommand(
            Command::new("lint")
                .about("Say everything that is wrong or doubtful in a price file, with lines")
                .arg(file("file", "FILE", "The price file"))
                .arg(format()),
        )
        .subcommand(
            Command::new("diff")
                .about("Say which prices differ between two files, for a million tokens")
                .arg(file("old", "OLD", "The file before"))
                .arg(file("new", "NEW", "The file after"))
                .arg(format()),
        )
        .subcommand(
            Command::new("show")
                .about("Say what a model costs, and which entry says so")
                .arg(file("model", "MODEL", "The model, as requests name it"))
                .arg(
                    Arg::new("prices")
                        .long("prices")
                        .value_name("FILE")
                        .help(format!("The price file [env: {}]", variable("prices"))),
                )
                .arg(
                    Arg::new("config")
                        .long("config")
                        .value_name("FILE")
                        .help(format!("The settings file that names it [env: {}]", variable("config"))),
                )
                .arg(
                    flag("at", "DATE", "When, as in 2026-11-21 or 2026-11-21T09:00:00Z; by default now")
                        .value_parser(at),
                )
                .arg(flag("tier", "NAME", "The service tier; by default the ordinary one"))
                .arg(flag("provider", "NAME", "The kind of server, where entries are restricted by it"))
                .arg(flag("upstream", "NAME", "The upstream, where entries are restricted by it"))
                .arg(format()),
        )
}

/// Does it.
pub(crate) fn run(args: &PricesArgs) -> Result<ExitCode, PricesError> {
    match args {
        PricesArgs::Import { map, currency, version, out } => {
            let json = text(map).map_err(|error| PricesError::Read(map.clone(), error))?;
            let how = litellm::Wish { version: version.clone(), currency: *currency };
            let import = litellm::import(&json, &how).map_err(|why| PricesError::NoMap(map.clone(), why))?;
            imported(&import, out.as_ref())
        }
        PricesArgs::Init(args) => {
            let text =
                args.text(now()).map_err(|problems| PricesError::Wrong("the file".to_owned(), problems))?;
            match &args.out {
                Some(path) => {
                    init::create(path, &text).map_err(|error| PricesError::Write(path.clone(), error))?;
                }
                None => say(&text),
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
            say(&if *json { told::lint_json(file, &read) } else { told::lint(file, &read) });
            Ok(code)
        }
        PricesArgs::Diff { old, new, json } => {
            let (old, new) = (book(old)?, book(new)?);
            say(&if *json { told::diff_json(&old, &new) } else { told::diff(&old, &new) });
            Ok(ExitCode::SUCCESS)
        }
        PricesArgs::Show(args) => {
            let named = setting::named("prices", args.file.as_deref(), args.config.as_deref(), &ThisMachine);
            let file = named.map_err(PricesError::Config)?.ok_or(PricesError::Unnamed)?;
            let book = book(&file)?;
            let entry = book.find(&args.model, &args.provider, &args.upstream, args.at_us);
            let entry = entry.ok_or_else(|| PricesError::NoEntry(told::unpriced(&book, &file, args)))?;
            say(&if args.json {
                told::show_json(&book, entry, args)
            } else {
                told::show(&book, entry, args)
            });
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn imported(import: &Import, out: Option<&PathBuf>) -> Result<ExitCode, PricesError> {
    // Whatever was in the map, the file must be one.
    Book::read(&import.file).map_err(|problems| PricesError::Wrong("the import".to_owned(), problems))?;
    match out {
        Some(path) => {
            std::fs::write(path, &import.file).map_err(|error| PricesError::Write(path.clone(), error))?;
        }
        None => say(&import.file),
    }
    // Without a stderr there is nobody to tell.
    let _ = io::stderr().write_all(told::import(import).as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn book(file: &str) -> Result<Book, PricesError> {
    let text = text(file).map_err(|error| PricesError::Read(file.to_owned(), error))?;
    match Book::read(&text) {
        Ok((book, _)) => Ok(book),
        Err(problems) => Err(PricesError::Wrong(file.to_owned(), problems)),
    }
}

fn say(text: &str) {
    // A reader that hung up has read what it wanted.
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

/// Why it could not be done.
#[derive(Debug)]
pub(crate) enum PricesError {
    Read(String, io::Error),
    Write(PathBuf, io::Error),
    NoMap(String, String),
    Wrong(String, Vec<Problem>),
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
            Self::NoMap(file, why) => write!(
                f,
                "{file} is no price map: {why}; name LiteLLM's model_prices_and_context_window.json"
            ),
            Self::Wrong(file, problems) => {
                write!(f, "{file} is no price file:")?;
                problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
            Self::NoEntry(why) => f.write_str(why),
            Self::Config(error) => write!(f, "{error}"),
            Self::Unnamed => write!(
                f,
                "no price file is named; give --prices FILE, or --config FILE with a settings file that names one by \
                 `prices`, or set {}",
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

Exit codes: 1 could not be read, or has no such model; 2 what lint looked at is
no price file.";

#[cfg(test)]
#[path = "prices_tests.rs"]
mod tests;
