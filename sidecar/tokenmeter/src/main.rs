//! `tokenmeter`: reads what was asked for, does it, exits with what came of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    match tokenmeter::cli::read(std::env::args_os()) {
        Ok(asked) => tokenmeter::command::execute(asked),
        // Help and version come this way too; clap prints each to where it belongs.
        Err(answer) => answer.exit(),
    }
}
