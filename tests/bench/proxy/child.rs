//! The processes this program starts. Each is pinned to a core, told to end should we die, and
//! ended with its own children when its [`Child`] is dropped, by error or by design.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Failure, cpu};

/// The core of mock and load.
pub(crate) const ENDS_CORE: &str = "0";
/// The core of the proxy, which has it alone.
pub(crate) const PROXY_CORE: &str = "1";

/// How long a process may take to end after it was asked to.
const TO_END: Duration = Duration::from_secs(1);

/// A process that was started.
pub(crate) struct Child {
    process: std::process::Child,
    lines: Option<io::Lines<BufReader<ChildStdout>>>,
}

impl Child {
    /// Starts a program on a core; `before` runs it, as `chrt` does. Its stdout is read by
    /// [`Child::line`], its stderr goes to a file if one is named.
    pub(crate) fn start(
        core: &str,
        before: &[&str],
        program: &str,
        words: &[String],
        log: Option<&Path>,
    ) -> Result<Self, Failure> {
        // Both become the program: one process, one id.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "taskset", "-c", core]).args(before).arg(program).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        if let Some(log) = log {
            command.stderr(std::fs::File::create(log)?);
        }
        let mut process = command.spawn().map_err(|error| format!("setpriv, for {program}: {error}"))?;
        let lines = process.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        Ok(Self { process, lines })
    }

    /// Starts this program again, as one of its parts.
    pub(crate) fn ourselves(core: &str, words: &[String]) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        Self::start(core, &[], &program.to_string_lossy(), words, None)
    }

    /// The next line of its stdout.
    pub(crate) fn line(&mut self) -> Result<String, Failure> {
        let line = self.lines.as_mut().and_then(Iterator::next);
        Ok(line.ok_or("a part of the benchmark ended early")??)
    }

    /// It and all it started.
    pub(crate) fn tree(&self) -> Vec<u32> {
        cpu::tree(self.process.id())
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let tree = self.tree();
        signal("-TERM", &tree);
        let asked = Instant::now();
        while !self.has_ended() && asked.elapsed() < TO_END {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !self.has_ended() {
            signal("-KILL", &tree);
        }
        // Nothing is left to be done about one that cannot even be waited for.
        let _ = self.process.wait();
    }
}

/// The shell's own `kill`: there is no other without unsafe code.
fn signal(which: &str, ids: &[u32]) {
    let mut command = Command::new("sh");
    command.args(["-c", "kill \"$@\" 2>/dev/null", "sh", which]);
    command.args(ids.iter().map(u32::to_string));
    // One that is gone already is no failure.
    let _ = command.status();
}

/// Says a line to the parent.
pub(crate) fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
