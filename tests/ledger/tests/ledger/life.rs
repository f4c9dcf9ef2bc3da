//! One life of a scribe: started, optionally under strace, read from, and ended in one of several ways.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use scribe::audit::{self, Found, Life};

/// A ledger in a folder of its own, removed when dropped, and the lives that wrote it.
pub(crate) struct Desk {
    folder: PathBuf,
    base_us: i64,
    pub(crate) lives: Vec<Life>,
}

impl Desk {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tokenmeter-ledger-{name}-{}", std::process::id()));
        // From a test that was itself killed.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        let base_us = i64::try_from(now.as_micros()).expect("it is earlier than 290,000");
        Self { folder, base_us, lives: Vec::new() }
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.join("ledger.db")
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a life that enters this number of rows, `pace` per millisecond, run by this command.
    pub(crate) fn begin(&mut self, before: &[&str], rows: u32, pace: u32) -> Scribe {
        let words = [env!("CARGO_BIN_EXE_tokenmeter-scribe").to_owned()];
        let mut words = before.iter().map(|word| (*word).to_owned()).chain(words);
        let program = words.next().expect("there is a program");
        let mut command = Command::new(&program);
        command.args(words).arg(self.ledger());
        command.args([
            self.lives.len().to_string(),
            rows.to_string(),
            self.base_us.to_string(),
            pace.to_string(),
        ]);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}; is it installed? apt-get install {program}"));
        let heard = BufReader::new(child.stdout.take().expect("it is piped"));
        self.lives.push(Life { entered: rows, acknowledged: 0 });
        let mut scribe = Scribe { child, heard, said: Vec::new() };
        scribe.hear_until(|said| said == "begun");
        scribe
    }

    /// Ends the life: its acknowledged rows count.
    pub(crate) fn over(&mut self, mut scribe: Scribe) -> Vec<String> {
        scribe.hear_until(|_| false);
        scribe.child.wait().expect("it was a child");
        let acknowledged = scribe.said.iter().filter_map(|said| said.strip_prefix("acknowledged "));
        let acknowledged = acknowledged.filter_map(|count| count.parse().ok()).next_back().unwrap_or(0);
        self.lives.last_mut().expect("a life was begun").acknowledged = acknowledged;
        scribe.said
    }

    /// A whole life, until it ends by itself.
    pub(crate) fn live(&mut self, before: &[&str], rows: u32, pace: u32) -> Vec<String> {
        let scribe = self.begin(before, rows, pace);
        self.over(scribe)
    }

    pub(crate) fn try_audit(&self) -> Result<Found, String> {
        audit::audit(&self.ledger(), self.base_us, &self.lives)
    }

    #[track_caller]
    pub(crate) fn audit(&self) -> Found {
        match self.try_audit() {
            Ok(found) => found,
            Err(wrong) => panic!("after {} lives, {:?}: {wrong}", self.lives.len(), self.lives.last()),
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// A running scribe.
pub(crate) struct Scribe {
    pub(crate) child: Child,
    heard: BufReader<ChildStdout>,
    said: Vec<String>,
}

impl Scribe {
    /// Reads until a line arrives, or the end.
    pub(crate) fn hear_until(&mut self, enough: impl Fn(&str) -> bool) {
        let mut line = String::new();
        while self.heard.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            // A line without its end was being written when the writer died.
            let Some(whole) = line.strip_suffix('\n') else { return };
            self.said.push(whole.to_owned());
            if enough(whole) {
                return;
            }
            line.clear();
        }
    }

    /// Kills it after this time.
    pub(crate) fn kill_after(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            std::thread::sleep((until - Instant::now()).min(Duration::from_millis(1)));
        }
        // It may have ended by itself.
        let _ = self.child.kill();
    }
}
