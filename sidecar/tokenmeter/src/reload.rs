//! Reloads files whose content changed, and published keys, while the process runs.
//!
//! Laws: contents are compared, not dates, so that a replaced symlink counts; an invalid file leaves the last
//! valid content in force; an error is logged once, with its line; no failure here affects traffic.

mod certificates;
mod fetch;
mod keys;
pub(crate) mod prices;
mod tenancy;
mod upstream_tls;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use metrics::ReloadedFile;
use origin::content::bounded;

pub(crate) use certificates::CertificatesWatch;
pub use tenancy::TenantsWatch;
pub(crate) use upstream_tls::UpstreamTlsWatch;

/// The interval of comparisons.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The result of a check; reported when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadResult {
    /// The kind of file.
    pub kind: ReloadedFile,
    /// A description of the loaded content, or the error.
    pub outcome: Result<String, String>,
}

/// A source that is checked periodically.
pub trait Watch: Send {
    /// Checks the source and loads a change. `urgent` is set on request of the operator: no check is delayed, and
    /// unchanged content is loaded, or its error reported, again.
    fn check(&mut self, now: Instant, urgent: bool, results: &mut Vec<ReloadResult>);
}

/// Loads a text, or returns its error.
type Load = Box<dyn FnMut(&str) -> Result<(), String> + Send>;

/// A file whose text is loaded when it changes.
pub struct FileWatch {
    kind: ReloadedFile,
    path: PathBuf,
    /// The maximum size in bytes.
    most: u64,
    take: Load,
    last: LastRead,
}

impl FileWatch {
    /// Watches the file at `path`; the first check loads it. `take` loads a text, or returns its error and changes
    /// nothing.
    pub fn new(
        kind: ReloadedFile,
        path: &Path,
        most: u64,
        take: impl FnMut(&str) -> Result<(), String> + Send + 'static,
    ) -> Self {
        Self { kind, path: path.to_owned(), most, take: Box::new(take), last: LastRead::Never }
    }
}

impl Watch for FileWatch {
    fn check(&mut self, _: Instant, urgent: bool, results: &mut Vec<ReloadResult>) {
        if urgent {
            self.last = LastRead::Never;
        }
        let Some(content) = self.last.changed(&self.path, self.most) else { return };
        let text = content.and_then(|content| {
            String::from_utf8(content).map_err(|_| format!("{} is not UTF-8", self.path.display()))
        });
        let outcome = text.and_then(|text| (self.take)(&text));
        let outcome = outcome.map(|()| self.path.display().to_string());
        results.push(ReloadResult { kind: self.kind, outcome });
    }
}

/// The result of the last read of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum LastRead {
    /// The file was not read yet.
    #[default]
    Never,
    /// The content.
    Read(Vec<u8>),
    /// The error.
    Unreadable(String),
}

impl LastRead {
    /// Reads the file; returns the result if it differs from the last.
    fn changed(&mut self, path: &Path, most: u64) -> Option<Result<Vec<u8>, String>> {
        let now = match bounded(path, most) {
            Ok(content) => Self::Read(content),
            Err(cause) => Self::Unreadable(format!("{} cannot be read: {cause}", path.display())),
        };
        if now == *self {
            return None;
        }
        *self = now;
        match self {
            Self::Read(content) => Some(Ok(content.clone())),
            Self::Unreadable(why) => Some(Err(why.clone())),
            Self::Never => None,
        }
    }
}

/// The reload thread.
pub struct Reload(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_requested: bool,
    stop: bool,
    rounds: u64,
}

/// Receives each result: the kind of file, and true if it was loaded.
pub type Hook = Box<dyn Fn(ReloadedFile, bool) + Send>;

/// Starts the thread, which checks all sources at once and then every two seconds.
pub fn start(watches: Vec<Box<dyn Watch>>, hook: Hook) -> std::io::Result<Reload> {
    start_at(CHECK_INTERVAL, watches, hook)
}

fn start_at(every: Duration, mut watches: Vec<Box<dyn Watch>>, hook: Hook) -> std::io::Result<Reload> {
    let shared = Arc::new(Shared::default());
    if watches.is_empty() {
        shared.lock().rounds = 1;
    } else {
        let shared = Arc::clone(&shared);
        let check = move || {
            let mut urgent = false;
            loop {
                let mut results = Vec::new();
                for watch in &mut watches {
                    let check = || watch.check(Instant::now(), urgent, &mut results);
                    if catch_unwind(AssertUnwindSafe(check)).is_err() {
                        tracing::error!(
                            "a reload panicked, so the last content stays in force; please report this"
                        );
                    }
                }
                results.into_iter().for_each(|results| report(results, &hook));
                match shared.next(every) {
                    Some(requested) => urgent = requested,
                    None => return,
                }
            }
        };
        thread::Builder::new().name("reload".to_owned()).spawn(check)?;
    }
    Ok(Reload(shared))
}

fn report(ReloadResult { kind, outcome }: ReloadResult, hook: &Hook) {
    hook(kind, outcome.is_ok());
    match outcome {
        Ok(what) => tracing::info!(file = kind.name(), "loaded {what}"),
        Err(why) => {
            tracing::warn!(file = kind.name(), "not loaded, so the last content stays in force: {why}");
        }
    }
}

impl Shared {
    /// Waits for the next check; returns true if it was requested, `None` at the end.
    fn next(&self, every: Duration) -> Option<bool> {
        let mut state = self.lock();
        state.rounds += 1;
        self.changed.notify_all();
        let until = Instant::now() + every;
        while !state.is_requested && !state.stop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let requested = std::mem::take(&mut state.is_requested);
        (!state.stop).then_some(requested)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic leaves no partial write in three plain values.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reload {
    /// Checks every source at once, without delays.
    pub fn now(&self) {
        self.0.lock().is_requested = true;
        self.0.changed.notify_all();
    }

    /// Waits for the first check, up to `most`, so that requests are served with the published keys if they are
    /// available.
    pub fn wait_first(&self, most: Duration) {
        let waiting = |state: &mut State| state.rounds == 0;
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), most, waiting);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Reload {
    fn drop(&mut self) {
        // Not joined: the thread may be waiting for a remote server.
        self.0.lock().stop = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[path = "reload_tests.rs"]
mod tests;
