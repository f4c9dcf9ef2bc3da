//! Where the ledger is, for commands that read it beside a running proxy: as `run` would have it, from
//! the flag, the variable or the settings file.

use std::fmt;

use clap::Arg;

use crate::file::{self, Shape};
use crate::machine::{Machine, ThisMachine};
use crate::mistake::Mistake;
use crate::settings::variable;

/// The flags that name it.
pub(crate) fn arguments() -> [Arg; 2] {
    [
        Arg::new("ledger").long("ledger").value_name("PATH").help(format!(
            "The ledger: a file, or postgres://… for a central store [env: {}]",
            variable("ledger")
        )),
        Arg::new("config")
            .long("config")
            .value_name("FILE")
            .help(format!("The settings file that names it [env: {}]", variable("config"))),
    ]
}

/// Where it is: by the flag, else the variable, else the settings file.
pub(crate) fn named(flag: Option<&str>, config: Option<&str>) -> Result<String, NoLedger> {
    find(flag, config, &ThisMachine)
}

fn find(flag: Option<&str>, config: Option<&str>, machine: &dyn Machine) -> Result<String, NoLedger> {
    let env = |key: &str| machine.variable(&variable(key)).filter(|text| !text.is_empty());
    if let Some(path) = flag.map(str::to_owned).or_else(|| env("ledger")) {
        return if path.is_empty() { Err(NoLedger::Unnamed) } else { Ok(path) };
    }
    let Some(config) = config.map(str::to_owned).or_else(|| env("config")) else {
        return Err(NoLedger::Unnamed);
    };
    let node = file::read(&config).map_err(NoLedger::Config)?;
    let Shape::Map(entries) = node.shape else { return Err(NoLedger::Unnamed) };
    let written = entries.into_iter().find(|(key, _, _)| key == "ledger").map(|(_, _, node)| node.shape);
    match written {
        Some(Shape::Scalar(path)) if !path.is_empty() => Ok(path),
        _ => Err(NoLedger::NotIn(config)),
    }
}

/// Why it is not known where the ledger is.
#[derive(Debug)]
pub(crate) enum NoLedger {
    /// Nobody says.
    Unnamed,
    /// The settings file cannot be read.
    Config(Mistake),
    /// The settings file does not say.
    NotIn(String),
}

impl fmt::Display for NoLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unnamed => write!(
                f,
                "no ledger is named; give --ledger PATH, or set {}, as the proxy that writes it has",
                variable("ledger")
            ),
            Self::Config(mistake) => write!(f, "{mistake}"),
            Self::NotIn(config) => {
                write!(f, "{config} names no ledger; add `ledger: PATH` to it, or give --ledger PATH")
            }
        }
    }
}

impl std::error::Error for NoLedger {}
