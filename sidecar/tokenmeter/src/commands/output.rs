//! The output of the commands. A closed pipe is not an error, since its reader has enough; any other failed write, as on a
//! full disk, fails the command at its end.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use super::progress;

/// The exit code of invalid settings; nothing was started.
pub(super) const INVALID_SETTINGS: u8 = 2;

/// The first failed write to stdout. A command that goes on writing would hide it.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

/// Returns each error on a line of its own, as the rest of a message.
pub(super) fn listed(errors: &[impl Display]) -> String {
    errors.iter().map(|error| format!("\n  {error}")).collect()
}

/// Prints a text to stdout.
pub(super) fn print(text: &str) {
    note(Stdout.write_all(text.as_bytes()).and_then(|()| Stdout.flush()));
}

/// Stdout without the progress of the command, which ends at the first write.
pub(super) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        progress::end();
        io::stdout().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Prints a message to stderr.
pub(super) fn print_message(message: &str) {
    // Without a stderr the message has no reader.
    progress::above(|| _ = writeln!(io::stderr(), "tokenmeter: {message}"));
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
    progress::end();
    match FAILURE.get() {
        None => code,
        Some(error) => {
            print_message(&format!("the output is incomplete: stdout cannot be written: {error}"));
            ExitCode::FAILURE
        }
    }
}
