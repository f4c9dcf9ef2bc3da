//! The command `prices`: imports, checks, compares and queries price files. The crate `price` defines their
//! format.

mod init;
mod render;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use ::price::litellm::{self, Import};
use ::price::{Book, Entry, instant};
use clap::{Args, Subcommand, ValueEnum};
use ledger::{Progress, now_us};
use origin::Diagnostic;

use crate::plan::machine::ThisMachine;
use crate::plan::prices::text;
use crate::settings::variable;

use self::init::{Init, NewFile};
use super::output::{INVALID_SETTINGS, listed};
use super::setting::{self, with_variable};
use super::{print, progress};

/// The subcommands of `prices`.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum PricesArgs {
    /// Write a first price file for models that you name and price.
    Init(Init),
    /// Convert LiteLLM's price map (model_prices_and_context_window.json) to a price file.
    ImportLitellm {
        /// LiteLLM's price map.
        #[arg(value_name = "FILE")]
        map: String,
        /// Version of the price file; by default litellm- and a hash of the map.
        #[arg(long, value_name = "NAME")]
        version_name: Option<String>,
        #[command(flatten)]
        new: NewFile,
    },
    /// Show all errors and warnings of a price file, with lines.
    Lint {
        /// Price file.
        file: String,
        /// Output format.
        #[arg(long, value_name = "NAME", value_enum, default_value = "table")]
        format: Format,
    },
    /// Show the differences between two price files, per million tokens.
    Diff {
        /// Old price file.
        old: String,
        /// New price file.
        new: String,
        /// Output format.
        #[arg(long, value_name = "NAME", value_enum, default_value = "table")]
        format: Format,
    },
    /// Show the price of a model and the entry that sets it.
    Show(Show),
}

/// The arguments of `prices show`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Show {
    /// Model, as requests name it.
    model: String,
    #[arg(long, value_name = "FILE", help = with_variable("Price file", "prices"))]
    prices: Option<String>,
    #[arg(long, value_name = "FILE", help = with_variable("Settings file that names the price file", "config"))]
    config: Option<String>,
    /// Time, as in 2026-11-21 or 2026-11-21T09:00:00Z; by default now.
    #[arg(long, value_name = "DATE", value_parser = at)]
    at: Option<i64>,
    /// Tenant, for its discount or markup.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Service tier; by default standard.
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// Server type, for entries that are restricted to one.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Upstream, for entries that are restricted to one.
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,
    /// Output format.
    #[arg(long, value_name = "NAME", value_enum, default_value = "table")]
    format: Format,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

/// Executes the subcommand.
pub(crate) fn run(args: &PricesArgs) -> Result<ExitCode, PricesError> {
    match args {
        PricesArgs::Init(args) => {
            let text =
                args.text(now_us()).map_err(|errors| PricesError::Invalid("the file".to_owned(), errors))?;
            match &args.new.out {
                Some(path) => {
                    init::create(path, &text).map_err(|error| PricesError::Write(path.clone(), error))?;
                }
                None => print(&text),
            }
        }
        PricesArgs::ImportLitellm { map, version_name, new } => {
            progress::begin("reading");
            let json = text(map).map_err(|error| PricesError::Read(map.clone(), error))?;
            let options = litellm::ImportOptions { version: version_name.clone(), currency: new.currency };
            progress::report(Progress { step: "importing", month: None, done_rows: 0, total_rows: None });
            let import =
                litellm::import(&json, &options).map_err(|error| PricesError::NoMap(map.clone(), error))?;
            write_import(&import, new.out.as_ref())?;
        }
        PricesArgs::Lint { file, format } => {
            let text = text(file).map_err(|error| PricesError::Read(file.clone(), error))?;
            let read = Book::read_file(file, &text).map(|(book, mut warnings)| {
                warnings.extend(book.ended(now_us()));
                warnings.sort_by_key(|warning| warning.line);
                (book, warnings)
            });
            print(&match format {
                Format::Table => render::lint(file, &read),
                Format::Json => render::lint_json(file, &read),
            });
            if read.is_err() {
                return Ok(ExitCode::from(INVALID_SETTINGS));
            }
        }
        PricesArgs::Diff { old, new, format } => {
            let (old, new) = (book(old)?, book(new)?);
            print(&match format {
                Format::Table => render::diff(&old, &new),
                Format::Json => render::diff_json(&old, &new),
            });
        }
        PricesArgs::Show(args) => {
            let named =
                setting::named("prices", args.prices.as_deref(), args.config.as_deref(), &ThisMachine);
            let file = named.map_err(PricesError::Config)?.ok_or(PricesError::Unnamed)?;
            let (book, at_us) = (book(&file)?, args.at.unwrap_or_else(now_us));
            let entry = args.find(&book, at_us);
            let entry =
                entry.ok_or_else(|| PricesError::NoEntry(render::unpriced(&book, &file, args, at_us)))?;
            print(&match args.format {
                Format::Table => render::show(&book, entry, args, at_us),
                Format::Json => render::show_json(&book, entry, args, at_us),
            });
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Show {
    /// Returns the entry by which the model is charged at `at_us`.
    fn find<'b>(&self, book: &'b Book, at_us: i64) -> Option<&'b Entry> {
        let [provider, upstream] =
            [&self.provider, &self.upstream].map(|name| name.as_deref().unwrap_or_default());
        book.find(&self.model, provider, upstream, at_us)
    }
}

fn write_import(import: &Import, out: Option<&PathBuf>) -> Result<(), PricesError> {
    // The result must be a valid price file, whatever the map holds.
    Book::read(&import.file).map_err(|errors| PricesError::Invalid("the import".to_owned(), errors))?;
    match out {
        Some(path) => {
            std::fs::write(path, &import.file).map_err(|error| PricesError::Write(path.clone(), error))?;
        }
        None => print(&import.file),
    }
    progress::end();
    // Without a stderr the message has no reader.
    let _ = io::stderr().write_all(render::import(import).as_bytes());
    Ok(())
}

fn book(file: &str) -> Result<Book, PricesError> {
    let text = text(file).map_err(|error| PricesError::Read(file.to_owned(), error))?;
    match Book::read(&text) {
        Ok((book, _)) => Ok(book),
        Err(errors) => Err(PricesError::Invalid(file.to_owned(), errors)),
    }
}

fn at(text: &str) -> Result<i64, String> {
    instant::read(text)
        .ok_or_else(|| "write a date or a date and time, as in 2026-11-21 or 2026-11-21T09:00:00Z".to_owned())
}

/// The error of a subcommand.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PricesError {
    #[error("{0} cannot be read: {1}")]
    Read(String, io::Error),
    #[error("cannot write {0}: {1}; name another file with --out")]
    Write(PathBuf, io::Error),
    #[error("{0} is not a price map: {1}; name LiteLLM's model_prices_and_context_window.json")]
    NoMap(String, String),
    #[error("{} is not a price file:{}", .0, listed(.1))]
    Invalid(String, Vec<Diagnostic>),
    #[error("{0}")]
    NoEntry(String),
    /// The settings file cannot be read.
    #[error("{0}")]
    Config(Diagnostic),
    /// Nothing names a price file.
    #[error(
        "no price file is named; add --prices FILE, or --config FILE with a settings file that sets `prices`, or set \
         {}",
        variable("prices")
    )]
    Unnamed,
}

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
