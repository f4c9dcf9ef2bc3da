//! The output of the commands. A closed pipe is no error, since its reader has enough; any other failed write, as on a
//! full disk, fails the command at its end.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The first failed write to stdout. A command that goes on writing would hide it.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

/// Prints a text to stdout.
pub(super) fn print(text: &str) {
    let mut stdout = io::stdout();
    note(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

/// Prints a message to stderr.
pub(super) fn print_message(message: &str) {
    // Without a stderr the message has no reader.
    let _ = writeln!(io::stderr(), "tokenmeter: {message}");
}

/// Notes the result of a write to stdout.
pub(super) fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = FAILURE.set(error);
    }
}

/// Returns the exit code of a command: a failure if its output is incomplete.
pub(super) fn exit_code(code: ExitCode) -> ExitCode {
    match FAILURE.get() {
        None => code,
        Some(error) => {
            print_message(&format!("the output is incomplete: stdout cannot be written: {error}"));
            ExitCode::FAILURE
        }
    }
}
