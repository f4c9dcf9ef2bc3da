//! The commands, from the flags to the exit code: 0 success, 1 failure, 2 invalid settings.

mod adjust;
mod admin_client;
mod closed;
pub(crate) mod completions;
pub mod curve;
pub(crate) mod drain;
#[cfg(feature = "inject")]
pub(crate) mod inject;
pub(crate) mod ledger;
pub(crate) mod ledger_path;
pub(crate) mod man;
pub(crate) mod operator;
mod output;
pub(crate) mod prices;
mod progress;
#[cfg(feature = "redirect")]
pub(crate) mod redirect;
pub(crate) mod reprice;
mod setting;
pub(crate) mod spend;
pub(crate) mod statement;
pub(crate) mod tenants;
#[cfg(feature = "top")]
pub(crate) mod top;
mod watched;
mod words;

use std::io::{self, Write};
use std::process::ExitCode;

use origin::Diagnostics;

use crate::cli::{self, Action, Flags};
#[cfg(feature = "demo")]
use crate::demo::{self, DemoArgs, DemoError};
use crate::plan::Plan;
use crate::plan::machine::{Machine, ThisMachine};
use crate::run;
use crate::settings::file;
use crate::settings::{RawSettings, variable};

use output::{INVALID_SETTINGS, exit_code, note, print, print_message};
use tenants::TenantsError;

/// Executes the command.
pub fn execute(action: Action) -> ExitCode {
    exit_code(executed(action))
}

/// Prints the help, the version or the error of a command line that names no action.
pub fn explain(error: &clap::Error) -> ExitCode {
    note(error.print().and_then(|()| io::stdout().flush()));
    exit_code(u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn executed(action: Action) -> ExitCode {
    match action {
        Action::Run(flags) => run(&flags),
        Action::CheckConfig { flags, show_origin } => check_config(&flags, show_origin),
        Action::Curve(args) => curve::run(&args).unwrap_or_else(|error| fail(&error)),
        Action::Drain(args) => drain::run(&args).unwrap_or_else(|error| fail(&error)),
        #[cfg(feature = "redirect")]
        Action::Redirect(args) => redirect::run(&args).unwrap_or_else(|error| fail(&error)),
        Action::Ledger(args) => ledger::run(&args).unwrap_or_else(|error| fail(&error)),
        Action::Spend(args) => spend::run(&args).unwrap_or_else(|error| fail(&error)),
        Action::Statement(args) => statement::run(&args).unwrap_or_else(|error| fail(&error)),
        Action::Tenants(args) => tenants(&args),
        #[cfg(feature = "top")]
        Action::Top(args) => top::run(&args).unwrap_or_else(|error| fail(&error)),
        Action::Prices(args) => prices::run(&args).unwrap_or_else(|error| fail(&error)),
        #[cfg(feature = "inject")]
        Action::Inject(args) => inject::run(&args).unwrap_or_else(|error| fail(&error)),
        #[cfg(feature = "demo")]
        Action::Demo(args) => demo(args),
        Action::Completions(args) => completions::run(&args, &mut cli::definition()),
        Action::Man(args) => man::run(&args, cli::definition()).unwrap_or_else(|error| fail(&error)),
    }
}

fn run(flags: &Flags) -> ExitCode {
    match plan(flags) {
        Ok(plan) => run::run(&plan).unwrap_or_else(|error| fail(&error)),
        Err(errors) => invalid_settings(&errors),
    }
}

fn tenants(args: &tenants::TenantsArgs) -> ExitCode {
    match tenants::run(args) {
        Ok(code) => code,
        Err(TenantsError::Diagnostics(errors)) => invalid_settings(&errors),
        Err(error) => fail(&error),
    }
}

#[cfg(feature = "demo")]
fn demo(args: DemoArgs) -> ExitCode {
    match demo::run(args) {
        Ok(code) => code,
        Err(DemoError::Settings(errors)) => invalid_settings(&errors),
        Err(DemoError::Start(error)) => fail(&error),
        Err(DemoError::Simulation(error)) => fail(&error),
    }
}

fn check_config(flags: &Flags, show_origin: bool) -> ExitCode {
    match plan(flags) {
        Ok(plan) => {
            for warning in &plan.warnings {
                print_message(&format!("warning: {warning}"));
            }
            print(&plan.effective.show(show_origin));
            ExitCode::SUCCESS
        }
        Err(errors) => invalid_settings(&errors),
    }
}

/// Plans a run from the flags, the environment and the settings file.
fn plan(flags: &Flags) -> Result<Plan, Diagnostics> {
    // A variable that is not UTF-8 is read lossily, and reported as an invalid value.
    let env = |name: &str| ThisMachine.variable(name);
    let path = flags.config.clone().or_else(|| env(&variable("config")).filter(|path| !path.is_empty()));
    let (file, file_error) = match path.map(|path| file::read(&path)).transpose() {
        Ok(file) => (file, None),
        Err(error) => (None, Some(error)),
    };
    let mut written = RawSettings::merge(&flags.settings, &env, file);
    written.file_unread = file_error.is_some();
    written.errors.extend(file_error);
    Plan::make(&written, &ThisMachine)
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    print_message(&error.to_string());
    ExitCode::FAILURE
}

fn invalid_settings(errors: &Diagnostics) -> ExitCode {
    print_message(&errors.to_string());
    ExitCode::from(INVALID_SETTINGS)
}

/// Parses a command line without its program name.
#[cfg(test)]
fn parse(line: &str) -> Result<Action, String> {
    let line = std::iter::once("tokenmeter").chain(line.split_whitespace());
    cli::read(line.map(Into::into)).map_err(|error| error.to_string())
}
