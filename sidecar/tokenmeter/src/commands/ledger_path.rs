//! Finds the ledger for commands that read it beside a running proxy: like `run`, from the flag, the
//! variable or the settings file.

use std::path::{Path, PathBuf};

use clap::Args;
use origin::Diagnostic;
use ship::address::is_postgres;

use super::setting::{self, with_variable};
use crate::plan::machine::{Machine, ThisMachine};
use crate::settings::variable;

/// The flags that name a ledger, for commands that also read a central store.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct LedgerFlags {
    #[arg(
        long,
        value_name = "PATH",
        help = with_variable("Ledger: a file, or postgres://… for a central store", "ledger")
    )]
    pub(super) ledger: Option<String>,
    #[arg(long, value_name = "FILE", help = with_variable("Settings file that names the ledger", "config"))]
    pub(super) config: Option<String>,
}

impl LedgerFlags {
    /// Returns the path or URL of the ledger from the flag, else the variable, else the settings file.
    pub(crate) fn named(&self) -> Result<String, NoLedger> {
        find(self.ledger.as_deref(), self.config.as_deref(), &ThisMachine)
    }
}

/// The flags that name a ledger, for commands on the files that a proxy writes.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(mut_arg("ledger", |flag| {
    flag.help(with_variable("Ledger: the file of its open month, not a central store", "ledger"))
}))]
pub struct LedgerFileFlags {
    #[command(flatten)]
    pub(super) any: LedgerFlags,
}

impl LedgerFileFlags {
    /// Returns the path of the ledger; a central store is an error.
    pub(crate) fn path(&self) -> Result<PathBuf, NoLedger> {
        self.any.named().and_then(|named| match is_postgres(&named) {
            true => Err(NoLedger::Central),
            false => Ok(named.into()),
        })
    }
}

/// The flags that name a central store, for commands on it alone.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(mut_arg("ledger", |flag| {
    flag.value_name("URL").help(with_variable("Central store: postgres://…", "ledger"))
}))]
pub struct LedgerStoreFlags {
    #[command(flatten)]
    pub(super) any: LedgerFlags,
}

impl LedgerStoreFlags {
    /// Returns the URL of the store; a ledger file is an error.
    pub(crate) fn url(&self) -> Result<String, NoLedger> {
        self.any.named().and_then(|named| match is_postgres(&named) {
            true => Ok(named),
            false => Err(NoLedger::File(named)),
        })
    }
}

fn find(flag: Option<&str>, config: Option<&str>, machine: &dyn Machine) -> Result<String, NoLedger> {
    if let Some(path) = setting::named("ledger", flag, config, machine).map_err(NoLedger::Config)? {
        return match path {
            path if path.is_empty() => Err(NoLedger::Unnamed),
            path if Path::new(&path).is_dir() => Err(NoLedger::Folder(path)),
            path => Ok(path),
        };
    }
    Err(setting::config(config, machine).map_or(NoLedger::Unnamed, NoLedger::NotIn))
}

/// The error of a search for the ledger.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoLedger {
    /// Neither flag nor variable names a ledger, and there is no settings file.
    #[error("no ledger is named; add --ledger PATH, or set {} as for the proxy", variable("ledger"))]
    Unnamed,
    /// The settings file cannot be read.
    #[error("{0}")]
    Config(Diagnostic),
    /// The path is that of a folder.
    #[error("{0} is a folder; name the ledger's file of the open month in it, {file}", file = file_in(.0))]
    Folder(String),
    /// The settings file names no ledger.
    #[error("{0} names no ledger; add `ledger: PATH` to it, or --ledger PATH")]
    NotIn(String),
    /// The ledger is a central store, and the command works on files.
    #[error(
        "this command works on the ledger file that a proxy writes, not on a central store: add --ledger PATH"
    )]
    Central,
    /// The ledger is a file, and the command works on central stores.
    #[error(
        "this command works on a central store, not on the ledger file {0}, whose rows the setting \
         `ledger_keep_days` of its proxy deletes: add --ledger postgres://…"
    )]
    File(String),
}

fn file_in(folder: &str) -> String {
    match Path::new(folder).join("tokenmeter.db") {
        file if file.is_file() => format!("as in --ledger {}", file.display()),
        _ => "which ends in .db".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::plan::machine::Alone;

    #[test]
    fn flag_precedes_variable_and_variable_precedes_file() {
        let folder = std::env::temp_dir().join(format!("ledger-path-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let names = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (with, without) =
            (names("with.yaml", "ledger: file.db\n"), names("without.yaml", "kind: vllm\n"));
        let variable = Alone(&[("TOKENMETER_LEDGER", "variable.db")]);
        let alone = Alone(&[("TOKENMETER_LEDGER", "")]);
        for (flag, config, machine, found) in [
            (Some("flag.db"), Some(&with), &variable, Ok("flag.db")),
            (None, Some(&with), &variable, Ok("variable.db")),
            (None, Some(&with), &alone, Ok("file.db")),
            (None, Some(&without), &alone, Err("names no ledger")),
            (None, None, &alone, Err("no ledger is named; add --ledger PATH, or set TOKENMETER_LEDGER")),
            (None, Some(&"/nowhere.yaml".to_owned()), &alone, Err("/nowhere.yaml")),
        ] {
            match (find(flag, config.map(String::as_str), machine), found) {
                (Ok(path), Ok(expected)) => assert_eq!(path, expected),
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().contains(expected), "{expected} is not in {error}");
                }
                (other, expected) => panic!("{other:?} is not {expected:?}"),
            }
        }
        let path = folder.display().to_string();
        let error = || find(Some(&path), None, &alone).expect_err("a folder is not a ledger").to_string();
        assert_eq!(
            error(),
            format!("{path} is a folder; name the ledger's file of the open month in it, which ends in .db")
        );
        let file = names("tokenmeter.db", "");
        assert!(error().ends_with(&format!(", as in --ledger {file}")), "{}", error());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
