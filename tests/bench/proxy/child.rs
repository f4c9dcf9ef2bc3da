//! The processes of the benchmark. Each is pinned to a core, ends if the benchmark dies, and is ended with its own
//! children when its [`Child`] is dropped.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Failure, cpu};

/// The core of mock and load.
pub(crate) const ENDS_CORE: &str = "0";
/// The core of the proxy alone.
pub(crate) const PROXY_CORE: &str = "1";

/// Maximum time until a process has ended after SIGTERM.
const TO_END: Duration = Duration::from_secs(10);

/// A started process.
pub(crate) struct Child {
    process: std::process::Child,
    lines: Option<io::Lines<BufReader<ChildStdout>>>,
}

impl Child {
    /// Starts a program on a core; `before` runs it, as `chrt` does. [`Child::line`] reads its stdout, its stderr goes
    /// to a file if one is named.
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

    /// Starts this program again as one of its parts.
    pub(crate) fn ourselves(core: &str, words: &[String]) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        Self::start(core, &[], &program.to_string_lossy(), words, None)
    }

    /// The next line of its stdout.
    pub(crate) fn line(&mut self) -> Result<String, Failure> {
        let line = self.lines.as_mut().and_then(Iterator::next);
        Ok(line.ok_or("a part of the benchmark ended early")??)
    }

    /// The process and all its descendants.
    pub(crate) fn tree(&self) -> Vec<u32> {
        cpu::tree(self.process.id())
    }

    /// Returns true if it has ended.
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
        // A process that cannot be waited for needs no further action.
        let _ = self.process.wait();
    }
}

/// The shell's `kill`: others need unsafe code.
fn signal(which: &str, ids: &[u32]) {
    let mut command = Command::new("sh");
    command.args(["-c", "kill \"$@\" 2>/dev/null", "sh", which]);
    command.args(ids.iter().map(u32::to_string));
    // A process that has ended already is no failure.
    let _ = command.status();
}

/// Sends a line to the parent.
pub(crate) fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
