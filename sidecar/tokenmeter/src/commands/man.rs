//! The command `man`: writes the manual pages, one for each command.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};

/// The arguments of `man`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ManArgs {
    /// Existing folder for the pages, as in /usr/local/share/man/man1.
    folder: PathBuf,
}

/// Writes the pages of this command line.
pub(crate) fn run(args: &ManArgs, command: Command) -> Result<ExitCode, ManError> {
    write(&args.folder, command).map_err(|error| ManError { folder: args.folder.clone(), error })?;
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, command: Command) -> io::Result<()> {
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder)
}

/// The pages could not be written.
#[derive(Debug, thiserror::Error)]
#[error("manual pages for {}: {error}", folder.display())]
pub(crate) struct ManError {
    folder: PathBuf,
    #[source]
    error: io::Error,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{ManArgs, run, write};
    use crate::cli;
    use crate::folder::Folder;
    use crate::settings::SETTINGS;

    #[test]
    fn each_visible_command_has_a_page() {
        let folder = Folder::new("man");
        write(folder.path(), cli::definition()).unwrap();
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        for page in ["tokenmeter.1", "tokenmeter-run.1", "tokenmeter-ledger-close.1"] {
            assert!(names.iter().any(|name| name == page), "{page} is not in {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("-man") || name.contains("-help")), "{names:?}");
        let run = fs::read_to_string(folder.at("tokenmeter-run.1")).unwrap();
        let missing: Vec<_> = SETTINGS.iter().filter(|row| !run.contains(&row.variable())).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn absent_folder_is_an_error_with_its_name() {
        let error =
            run(&ManArgs { folder: "/nonexistent/man1".into() }, cli::definition()).unwrap_err().to_string();
        assert!(error.starts_with("manual pages for /nonexistent/man1: "), "{error}");
    }
}
