//! `prices init`: a first price file, for models that the operator names and prices.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ::price::{Book, Currency, instant};
use clap::Args;
use origin::Diagnostic;

/// The arguments of `prices init`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Init {
    /// Models, as requests name them; by default one entry for every model.
    #[arg(value_name = "MODEL", num_args = 0..)]
    models: Vec<String>,
    /// Price of a million prompt tokens, as in 0.10.
    #[arg(long, value_name = "PRICE", value_parser = price)]
    input: String,
    /// Price of a million prompt tokens read from the server's cache; by default that of --input.
    #[arg(long, value_name = "PRICE", value_parser = price)]
    cached_input: Option<String>,
    /// Price of a million generated tokens.
    #[arg(long, value_name = "PRICE", value_parser = price)]
    output: String,
    #[command(flatten)]
    pub(super) new: NewFile,
}

/// The flags of a new price file.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct NewFile {
    /// Currency of the prices, by ISO 4217.
    #[arg(long, value_name = "CODE", value_parser = currency, default_value = "USD")]
    pub(super) currency: Currency,
    /// Output file; by default stdout.
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

impl Init {
    /// Returns the file's text, or the errors that the price reader finds in it. `now_us` dates the version.
    pub(super) fn text(&self, now_us: i64) -> Result<String, Vec<Diagnostic>> {
        let day = instant::written(now_us);
        let day = day.get(..10).unwrap_or(&day);
        let mut text = format!(
            "# Prices by which tokenmeter charges each exchange, for a million tokens.\n\
             # After a change: a new version, and `tokenmeter prices lint FILE`. A change in prices is a second entry\n\
             # of the same name with `valid_from: 2027-01-01`; the first stays in force until then.\n\
             version: \"{day}\"\n\
             currency: {}\n\
             unit: per_million\n\
             models:\n",
            self.new.currency.code()
        );
        // Writing into a String cannot fail.
        if self.models.is_empty() {
            text.push_str("  - pattern: \"*\"            # every model without an entry of its own\n");
            self.prices(&mut text);
        }
        for model in &self.models {
            // A JSON string is a YAML string, whatever characters the name has.
            let _ = writeln!(text, "  - name: {}", serde_json::Value::from(model.as_str()));
            self.prices(&mut text);
        }
        Book::read(&text).map(|_| text)
    }

    fn prices(&self, text: &mut String) {
        let _ = writeln!(text, "    input: {}", self.input);
        if let Some(cached) = &self.cached_input {
            let _ = writeln!(text, "    cached_input: {cached}");
        }
        let _ = writeln!(text, "    output: {}", self.output);
    }
}

/// Writes `text` to a new file; an existing one is an error, because it may be the price file in force.
pub(super) fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Accepts a price: digits with at most one point.
fn price(text: &str) -> Result<String, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if are_digits(whole) && are_digits(part) {
        return Ok(text.to_owned());
    }
    Err("write the price of a million tokens as a decimal, as in 0.40".to_owned())
}

fn currency(text: &str) -> Result<Currency, String> {
    let code = <[u8; 3]>::try_from(text.as_bytes()).ok().map(Currency);
    code.filter(Currency::is_known)
        .ok_or_else(|| "write its three capital letters, as in USD or EUR".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_US: i64 = 1_795_435_200_000_000;

    fn init(models: &[&str]) -> Init {
        Init {
            models: models.iter().map(|&model| model.to_owned()).collect(),
            input: "0.10".to_owned(),
            cached_input: None,
            output: "0.40".to_owned(),
            new: NewFile { currency: Currency(*b"EUR"), out: None },
        }
    }

    #[test]
    fn file_without_names_prices_every_model() {
        let (book, warnings) = Book::read(&init(&[]).text(NOON_US).unwrap()).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!((&**book.version(), book.currency().code()), ("2026-11-23", "EUR"));
        assert!(book.find("any/model", "vllm", "chat", NOON_US).is_some());
    }

    #[test]
    fn any_name_can_be_written() {
        let names = ["Qwen/Qwen3-8B", "on", "1.5", "a: b", "x # y", "\"quoted\"", "*", "null", "ö"];
        let book = Book::read(&init(&names).text(NOON_US).unwrap()).unwrap().0;
        for name in names {
            assert!(book.find(name, "", "", NOON_US).is_some(), "{name}");
        }
        assert!(book.find("other", "", "", NOON_US).is_none());
    }

    #[test]
    fn name_given_twice_is_rejected() {
        let errors = init(&["m", "m"]).text(NOON_US).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
    }

    #[test]
    fn prices_are_plain_decimals() {
        for valid in ["0", "0.40", "15", "007.5"] {
            assert_eq!(price(valid).as_deref(), Ok(valid));
        }
        for invalid in ["", ".5", "1.", "-1", "1e3", "0,40", "1.2.3", "1 \n  tiers: {}", "NaN"] {
            assert!(price(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn existing_file_is_kept() {
        let path = std::env::temp_dir().join(format!("tokenmeter-prices-init-{}.yaml", std::process::id()));
        create(&path, "first").unwrap();
        let again = create(&path, "second").unwrap_err();
        let kept = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((again.kind(), &*kept), (io::ErrorKind::AlreadyExists, "first"));
    }
}
