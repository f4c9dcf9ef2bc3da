//! The binary `tokenmeter`: parses the command line and executes the command.

use std::process::ExitCode;

fn main() -> ExitCode {
    match tokenmeter::cli::read(std::env::args_os()) {
        Ok(action) => tokenmeter::commands::execute(action),
        // Help and version are errors of clap, too.
        Err(error) => tokenmeter::commands::explain(&error),
    }
}
