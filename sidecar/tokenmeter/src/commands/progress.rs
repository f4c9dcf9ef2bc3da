//! The progress of a long command: a line on stderr, if that is a terminal and the command takes longer than a second. It
//! ends at the first write to stdout.
//!
//! No signal is handled: Ctrl-C ends the process as any other program, which a shell reports as exit code 130. Nothing has
//! to be undone, because the commands leave a ledger as complete after a kill at any system call as after an error
//! (`tests/ledger`).

use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ledger::{Progress, month};
use text::group_thousands;

/// Work that is done sooner shows no progress.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The line, if the command shows its progress. A process executes one command.
static LINE: OnceLock<ProgressBar> = OnceLock::new();

/// Begins to show the progress of a command.
pub(super) fn begin(step: &'static str) {
    if !io::stderr().is_terminal() {
        return;
    }
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    if LINE.set(line.clone()).is_err() {
        return;
    }
    report(Progress { step, month: None, done_rows: 0, total_rows: None });
    // Not joined: the thread ends with the process, and a line that has ended draws nothing.
    thread::spawn(move || {
        thread::sleep(SHOWN_AFTER);
        line.set_draw_target(ProgressDrawTarget::stderr());
        line.enable_steady_tick(REDRAW_INTERVAL);
    });
}

/// Shows the progress of a step, if the command shows its progress.
pub(super) fn report(progress: Progress) {
    let Some(line) = shown() else { return };
    let Progress { step, month, done_rows, total_rows } = progress;
    let of_month = month.map(|month| format!("{}: ", month::name(month))).unwrap_or_default();
    let template = match total_rows {
        Some(_) => "{msg} [{bar:30}] {human_pos} of {human_len}, {eta} left",
        None => "{spinner} {msg} ({elapsed})",
    };
    let count = match total_rows {
        None if done_rows > 0 => format!(" {}", group_thousands(&done_rows.to_string())),
        _ => String::new(),
    };
    if done_rows < line.position() {
        line.reset_eta();
    }
    line.set_message(format!("{of_month}{step}{count}"));
    // The templates are valid; the tests show both.
    if let Ok(style) = ProgressStyle::with_template(template) {
        line.set_style(style.tick_chars("|/-\\ ").progress_chars("=> "));
    }
    line.update(|state| {
        state.set_pos(done_rows);
        if let Some(total_rows) = total_rows {
            state.set_len(total_rows);
        }
    });
}

/// Returns true if the command shows its progress.
pub(super) fn is_shown() -> bool {
    shown().is_some()
}

/// Prints to the terminal above the line.
pub(super) fn above(print: impl FnOnce()) {
    match shown() {
        Some(line) => line.suspend(print),
        None => print(),
    }
}

/// Removes the line.
pub(super) fn end() {
    if let Some(line) = shown() {
        line.finish_and_clear();
    }
}

fn shown() -> Option<&'static ProgressBar> {
    LINE.get().filter(|line| !line.is_finished())
}
