//! The command `ledger`: what is done to a ledger by hand.

use clap::{ArgMatches, Command};

use super::reprice;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Charge again by another price file.
    Reprice(reprice::Wish),
}

impl Wish {
    /// As the flags have it.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let (_, matches) = matches.subcommand().expect("clap asks for one");
        Self::Reprice(reprice::Wish::of(matches))
    }
}

/// The command line of `ledger`.
pub(crate) fn command() -> Command {
    Command::new("ledger")
        .about("What is done to a ledger by hand")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(reprice::command())
}
