//! Where it is kept what the budgets told, so that a new process does not tell it again: a small
//! file beside the ledger, written whole and put in the place of the old one. It is written on a
//! thread of its own: a disk that hangs must not keep the budgets from being looked at. Losing it
//! costs at most that something is told twice.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::Duration;

use budget::SentAlerts;

/// The file, if there is to be one.
pub(crate) struct Memory {
    path: Option<PathBuf>,
    /// To the thread that writes, once there is something to write.
    writer: Option<Writer>,
}

struct Writer {
    texts: SyncSender<String>,
    done: Receiver<()>,
    /// What could not be handed over yet.
    late: Option<String>,
}

impl Memory {
    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self { path: None, writer: None }
    }

    /// Keeps it beside the ledger at `path`.
    pub(crate) fn beside(path: &Path) -> Self {
        let mut path = path.as_os_str().to_owned();
        path.push(".budgets.json");
        Self { path: Some(path.into()), writer: None }
    }

    /// What was kept; `None` if nobody can say. Where there is no file, nothing was told yet.
    pub(crate) fn kept(&self) -> Option<SentAlerts> {
        let path = self.path.as_deref()?;
        let text = match text(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(SentAlerts::default()),
            read => read.map_err(|error| error.to_string()),
        };
        let told = text.and_then(|text| SentAlerts::from_json(&text).map_err(|error| error.to_string()));
        told.map_err(|why| {
            tracing::warn!("{}: {why}; what is spent already counts as told", path.display());
        })
        .ok()
    }

    /// Keeps this from now on. Never waits for the disk.
    pub(crate) fn keep(&mut self, told: &SentAlerts) {
        let Some(path) = self.path.clone() else { return };
        let text = told.to_json();
        if self.writer.is_none() {
            self.writer = start(path);
        }
        if let Some(writer) = &mut self.writer {
            writer.late = Some(text);
            writer.hand_over();
        }
    }

    /// Waits a little for what is being written.
    pub(crate) fn end(&mut self) {
        let Some(mut writer) = self.writer.take() else { return };
        if let Some(text) = writer.late.take() {
            // Full means that the disk hangs; then it would hang for this too.
            let _ = writer.texts.try_send(text);
        }
        drop(writer.texts);
        let _ = writer.done.recv_timeout(WRITING);
    }
}

impl Writer {
    fn hand_over(&mut self) {
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
            if let Err(error) = write(&path, &text)
                && !std::mem::replace(&mut warned, true)
            {
                tracing::warn!(
                    "{}: what the budgets told cannot be kept: {error}; after a restart it may be told twice",
                    path.display()
                );
            }
        }
    });
    thread.ok().map(|_| Writer { texts, done, late: None })
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 64 MiB"));
    }
    Ok(text)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    // It names tenants, as the ledger beside it does, and is for the same eyes.
    let _ = fs::remove_file(&new);
    let mut file = File::options().write(true).create_new(true).mode(0o640).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// Bytes that are read: a hundred for each tenant, budget and period that was told of.
const BYTES: u64 = 64 * 1024 * 1024;

/// How long an end waits for the disk.
const WRITING: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn others_read_nothing() {
        let ledger = std::env::temp_dir().join(format!("tokenmeter-memory-{}.db", std::process::id()));
        let mut memory = Memory::beside(&ledger);
        let path = memory.path.clone().unwrap();
        // What an end in the middle left behind may have any mode.
        fs::write(path.with_extension("json.new"), "").unwrap();
        memory.keep(&SentAlerts::default());
        memory.end();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o027, 0, "{mode:o}");
        assert_eq!(memory.kept(), Some(SentAlerts::default()));
        fs::remove_file(path).unwrap();
    }
}
