//! What each command does, from the flags to the exit code: 0 done, 1 could not run, 2 the
//! settings are wrong.

mod closed;
pub(crate) mod ledger;
pub(crate) mod ledger_path;
pub(crate) mod prices;
pub(crate) mod reprice;
mod setting;
pub(crate) mod spend;
pub(crate) mod tenants;
pub(crate) mod who;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::cli::{Asked, Flags};
use crate::curve;
use crate::demo::{self, DemoError};
use crate::file;
use crate::machine::{Machine, ThisMachine};
use crate::mistake::Mistakes;
use crate::plan::Plan;
use crate::run;
use crate::settings::{Written, variable};

use tenants::TenantsError;

/// The settings are wrong, and nothing was started.
const WRONG_SETTINGS: u8 = 2;

/// Does what was asked for.
pub fn execute(asked: Asked) -> ExitCode {
    match asked {
        Asked::Run(flags) => run(&flags),
        Asked::CheckConfig { flags, show_origin } => check_config(&flags, show_origin),
        Asked::Curve(wish) => curve::run(&wish).unwrap_or_else(|error| could_not_run(&error)),
        Asked::Ledger(wish) => ledger::run(&wish).unwrap_or_else(|error| could_not_run(&error)),
        Asked::Spend(wish) => spend::run(&wish).unwrap_or_else(|error| could_not_run(&error)),
        Asked::Tenants(wish) => tenants(&wish),
        Asked::Prices(wish) => prices::run(&wish).unwrap_or_else(|error| could_not_run(&error)),
        Asked::Demo { seconds, listen, admin } => demo(seconds, listen, admin),
    }
}

fn run(flags: &Flags) -> ExitCode {
    match plan(flags) {
        Ok(plan) => run::run(&plan).unwrap_or_else(|error| could_not_run(&error)),
        Err(mistakes) => wrong(&mistakes),
    }
}

fn tenants(wish: &tenants::Wish) -> ExitCode {
    match tenants::run(wish) {
        Ok(code) => code,
        Err(TenantsError::Mistakes(mistakes)) => wrong(&mistakes),
        Err(error) => could_not_run(&error),
    }
}

fn demo(seconds: Option<u64>, listen: Option<String>, admin: Option<String>) -> ExitCode {
    match demo::run(seconds, listen, admin) {
        Ok(code) => code,
        Err(DemoError::Settings(mistakes)) => wrong(&mistakes),
        Err(DemoError::Start(error)) => could_not_run(&error),
        Err(DemoError::Simulation(error)) => could_not_run(&error),
    }
}

fn check_config(flags: &Flags, show_origin: bool) -> ExitCode {
    match plan(flags) {
        Ok(plan) => {
            for warning in &plan.warnings {
                complain(&format!("warning: {warning}"));
            }
            // A reader that hung up has read what it wanted.
            let _ = io::stdout().write_all(plan.effective.show(show_origin).as_bytes());
            ExitCode::SUCCESS
        }
        Err(mistakes) => wrong(&mistakes),
    }
}

/// Plans a run by the flags, this process's environment and the file either of them names.
fn plan(flags: &Flags) -> Result<Plan, Mistakes> {
    // What is not UTF-8 cannot be a right value; made readable, it is told as a wrong one.
    let env = |name: &str| ThisMachine.variable(name);
    let path = flags.config.clone().or_else(|| env(&variable("config")).filter(|path| !path.is_empty()));
    let (file, unreadable) = match path.map(|path| file::read(&path)).transpose() {
        Ok(file) => (file, None),
        Err(mistake) => (None, Some(mistake)),
    };
    let mut written = Written::merge(&flags.settings, &env, file);
    written.file_unread = unreadable.is_some();
    written.mistakes.extend(unreadable);
    Plan::make(&written, &ThisMachine)
}

fn could_not_run(error: &dyn std::error::Error) -> ExitCode {
    complain(&error.to_string());
    ExitCode::FAILURE
}

fn wrong(mistakes: &Mistakes) -> ExitCode {
    complain(&mistakes.to_string());
    ExitCode::from(WRONG_SETTINGS)
}

fn complain(what: &str) {
    // Without a stderr there is nobody to tell.
    let _ = writeln!(io::stderr(), "tokenmeter: {what}");
}
