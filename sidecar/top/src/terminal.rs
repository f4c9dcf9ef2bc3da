//! The program on a terminal: answers, keys and signals until the end, which always restores the terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};
use std::{io, process, thread};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{DefaultTerminal, Terminal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::raise;

use crate::admin::{Admin, AdminError};
use crate::dashboard::Dashboard;
use crate::keys::Effect;
use crate::poll::{Answer, Poll};
use crate::screen::draw;
use crate::trend::Trend;

/// The end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The user ended it.
    Quit,
    /// The signal of this number ended it.
    Signal(i32),
}

/// The error of the program.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// The first reading failed.
    #[error("{0}")]
    Admin(AdminError),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}; --once prints the numbers as text")]
    Terminal(io::Error),
}

/// Shows the numbers until the user or a signal ends it.
pub fn run(admin: &Admin, colours: bool) -> Result<Ending, TopError> {
    let now = admin.now().map_err(TopError::Admin)?;
    let mut dashboard = Dashboard { colours, ..Dashboard::default() };
    dashboard.read(now);
    let signal = signals().map_err(TopError::Terminal)?;
    let poll = Poll::start(admin.clone()).map_err(TopError::Terminal)?;
    let mut screen = Screen::open().map_err(TopError::Terminal)?;
    show(&mut screen.0, &mut dashboard, &poll, &signal).map_err(TopError::Terminal)
}

fn show(
    terminal: &mut DefaultTerminal,
    dashboard: &mut Dashboard,
    poll: &Poll,
    signal: &AtomicI32,
) -> io::Result<Ending> {
    let mut read_at = Instant::now();
    terminal.draw(|frame| draw(frame, dashboard))?;
    loop {
        match signal.load(Ordering::Relaxed) {
            0 => {}
            number => return Ok(Ending::Signal(number)),
        }
        let mut is_changed = false;
        loop {
            match poll.answers.try_recv() {
                Ok(Answer::Now(now)) => {
                    dashboard.read(*now);
                    read_at = Instant::now();
                }
                Ok(Answer::History(scope, history)) if scope == dashboard.scope => {
                    dashboard.trend = Trend::of(&history);
                }
                Ok(Answer::History(..)) => {}
                Ok(Answer::Curves(curves)) => dashboard.curves = curves,
                Ok(Answer::Failed(error)) => {
                    dashboard.failure = Some((error.to_string(), read_at.elapsed().as_secs()));
                }
                Err(TryRecvError::Empty) => break,
                // Its panic was printed.
                Err(TryRecvError::Disconnected) => return Err(io::Error::other("the reading thread ended")),
            }
            is_changed = true;
        }
        if event::poll(TICK)? {
            match event::read()? {
                Event::Key(key) => match dashboard.press(key) {
                    Effect::Quit => return Ok(Ending::Quit),
                    Effect::Suspend => suspend(terminal)?,
                    // If the thread has ended, the next turn finds that.
                    Effect::Scope => drop(poll.scope.send(dashboard.scope.clone())),
                    Effect::Stay => {}
                },
                // The next drawing has the new size.
                Event::Resize(..) => {}
                _ => continue,
            }
            is_changed = true;
        }
        if is_changed {
            terminal.draw(|frame| draw(frame, dashboard))?;
        }
    }
}

/// The terminal in its raw mode, restored on drop; a panic restores it before its message.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> io::Result<Self> {
        ratatui::try_init().map(Self).inspect_err(|_| restore())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.0.show_cursor();
        restore();
    }
}

/// Gives the terminal back to the shell, and stops until the shell resumes the program.
fn suspend(terminal: &mut DefaultTerminal) -> io::Result<()> {
    terminal.show_cursor()?;
    restore();
    // Without a shell that could resume it, the system ignores this signal.
    raise(SIGTSTP)?;
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
    // A new one draws every cell. `Terminal::clear` would ask for the cursor's position, and wait for the answer.
    *terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    Ok(())
}

fn restore() {
    // A terminal that is gone needs no restoring.
    let _ = ratatui::try_restore();
}

/// Returns the number of the signal that arrived, 0 before. A program that does not end in time, because its terminal
/// takes no output or has hung up, is ended.
fn signals() -> io::Result<Arc<AtomicI32>> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let arrived = Arc::new(AtomicI32::new(0));
    let shared = Arc::clone(&arrived);
    thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            shared.store(signal, Ordering::Relaxed);
            thread::sleep(END_MAX_TIME);
            let _ = disable_raw_mode();
            process::exit(128 + signal);
        }
    })?;
    Ok(arrived)
}

/// The interval at which signals and answers are seen.
const TICK: Duration = Duration::from_millis(100);

/// The maximum time from a signal to the end.
const END_MAX_TIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;

    use super::Screen;

    /// The variable with which this test runs itself on a terminal, which script(1) of util-linux gives.
    const ON_TERMINAL: &str = "TOP_TEST_PANICS";

    #[test]
    fn panic_restores_the_terminal_before_its_message() {
        if env::var_os(ON_TERMINAL).is_some() {
            let _screen = Screen::open().unwrap();
            panic!("the message");
        }
        let program = env::current_exe().unwrap();
        let test = "terminal::tests::panic_restores_the_terminal_before_its_message";
        let run = format!("stty -g; {} --exact {test} --nocapture; stty -g", program.display());
        let mut command = Command::new("script");
        let output = command.args(["-qec", &run, "/dev/null"]).env(ON_TERMINAL, "1").output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        let place = |part: &str| shown.find(part).unwrap_or_else(|| panic!("no {part:?} in {shown:?}"));
        assert!(place("\u{1b}[?1049h") < place("\u{1b}[?1049l"), "{shown:?}");
        assert!(place("\u{1b}[?1049l") < place("the message"), "{shown:?}");
        let modes: Vec<_> = shown.lines().filter(|line| line.matches(':').count() > 20).collect();
        assert!(modes.len() == 2 && modes[0] == modes[1], "{modes:?}");
    }
}
