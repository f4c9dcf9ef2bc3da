//! The command `completions`: prints the script with which a shell completes commands and flags.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::print;

/// The arguments of `completions`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CompletionsArgs {
    /// Name of the shell.
    shell: Shell,
}

/// Prints the script for this command line.
pub(crate) fn run(args: &CompletionsArgs, command: &mut Command) -> ExitCode {
    print(&script(args.shell, command));
    ExitCode::SUCCESS
}

fn script(shell: Shell, command: &mut Command) -> String {
    let mut script = Vec::new();
    generate(shell, command, "tokenmeter", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use clap_complete::Shell;

    use super::script;
    use crate::cli;
    use crate::settings::SETTINGS;

    #[test]
    fn every_script_has_every_setting() {
        for shell in Shell::value_variants() {
            let script = script(*shell, &mut cli::definition());
            let missing: Vec<_> = SETTINGS
                .iter()
                .map(|row| row.key.replace('_', "-"))
                .filter(|flag| !script.contains(flag))
                .collect();
            assert!(missing.is_empty(), "{shell}: {missing:?}");
        }
    }
}
