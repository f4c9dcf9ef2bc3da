//! Persists which budget alerts were sent, so that a restart does not repeat them: a small file beside the
//! ledger, replaced atomically. A thread writes it, so that a hanging disk does not delay evaluations.
//! Without the file, alerts may repeat.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::Duration;

use budget::SentAlerts;

/// The state file; without a path nothing is persisted.
pub(crate) struct BudgetStateFile {
    path: Option<PathBuf>,
    /// The writing thread, started at the first write.
    writer: Option<Writer>,
}

struct Writer {
    texts: SyncSender<String>,
    done: Receiver<()>,
    /// The newest text that the thread has not taken yet.
    late: Option<String>,
}

impl BudgetStateFile {
    /// Persists nothing.
    pub(crate) fn none() -> Self {
        Self { path: None, writer: None }
    }

    /// Persists beside the ledger at `path`.
    pub(crate) fn beside(path: &Path) -> Self {
        Self { path: Some(ledger::beside(path, ".budgets.json")), writer: None }
    }

    /// Returns the persisted alerts: none without a file; `None` if the file is unreadable or damaged.
    pub(crate) fn kept(&self) -> Option<SentAlerts> {
        let path = self.path.as_deref()?;
        let text = match text(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(SentAlerts::default()),
            read => read.map_err(|error| error.to_string()),
        };
        let told = text.and_then(|text| SentAlerts::from_json(&text).map_err(|error| error.to_string()));
        told.map_err(|why| {
            tracing::warn!("{}: {why}; thresholds that are crossed already count as sent", path.display());
        })
        .ok()
    }

    /// Persists these alerts. Never waits for the disk.
    pub(crate) fn keep(&mut self, told: &SentAlerts) {
        let Some(path) = self.path.clone() else { return };
        let text = told.to_json();
        if self.writer.is_none() {
            self.writer = start(path);
        }
        if let Some(writer) = &mut self.writer {
            writer.late = Some(text);
            writer.send_late();
        }
    }

    /// Waits up to [`WRITE_TIMEOUT`] for the last write.
    pub(crate) fn end(&mut self) {
        let Some(mut writer) = self.writer.take() else { return };
        if let Some(text) = writer.late.take() {
            // A full queue means that the disk hangs.
            let _ = writer.texts.try_send(text);
        }
        drop(writer.texts);
        let _ = writer.done.recv_timeout(WRITE_TIMEOUT);
    }
}

impl Writer {
    fn send_late(&mut self) {
        let Some(text) = self.late.take() else { return };
        if let Err(TrySendError::Full(text)) = self.texts.try_send(text) {
            self.late = Some(text);
        }
    }
}

fn start(path: PathBuf) -> Option<Writer> {
    let (texts, written) = mpsc::sync_channel::<String>(1);
    let (ended, done) = mpsc::sync_channel::<()>(0);
    let thread = thread::Builder::new().name("budgets-memory".to_owned()).spawn(move || {
        let _ended = ended;
        let mut warned = false;
        for text in written {
            if let Err(error) = ledger::replace(&path, text.as_bytes())
                && !std::mem::replace(&mut warned, true)
            {
                tracing::warn!(
                    "{}: sent budget alerts cannot be persisted: {error}; a restart may repeat them",
                    path.display()
                );
            }
        }
    });
    thread.ok().map(|_| Writer { texts, done, late: None })
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 64 MiB"));
    }
    Ok(text)
}

/// The maximum size in bytes; each tenant, budget and period takes a hundred.
const FILE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The longest wait of an end for the disk.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn file_is_private() {
        let ledger = std::env::temp_dir().join(format!("tokenmeter-memory-{}.db", std::process::id()));
        let mut memory = BudgetStateFile::beside(&ledger);
        let path = memory.path.clone().unwrap();
        // A file that an aborted write left may have any mode.
        fs::write(path.with_extension("json.new"), "").unwrap();
        memory.keep(&SentAlerts::default());
        memory.end();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o027, 0, "{mode:o}");
        assert_eq!(memory.kept(), Some(SentAlerts::default()));
        fs::remove_file(path).unwrap();
    }
}
