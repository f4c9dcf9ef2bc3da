//! What is read again while we run: files whose content changed, and keys that others publish.
//!
//! Laws: contents are compared, never dates, so that a symlink swapped underneath counts; what was
//! loaded last stays as long as what came after it is wrong; a mistake is logged once, with its
//! line; whatever happens here, traffic goes on.

mod fetch;
mod keys;
mod tenancy;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::plan::tenants::bounded;

pub use tenancy::TenantsWatch;

/// How often contents are compared.
const EVERY: Duration = Duration::from_secs(2);

/// Which file something happened to, as the metrics name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The tenants file, or the hash key file its hashes need.
    Tenants,
    /// The price book.
    Prices,
    /// Published keys, of a file or a URL.
    Keys,
}

impl Which {
    /// Its name as a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tenants => "tenants",
            Self::Prices => "prices",
            Self::Keys => "keys",
        }
    }
}

/// What a look at something came to. Told when it changes, not at each look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Which it was.
    pub which: Which,
    /// What was loaded, or what is wrong with what was not.
    pub said: Result<String, String>,
}

/// Something that is looked at again and again.
pub trait Watch: Send {
    /// Looks, and loads what changed. `urgent`: somebody asked for it, so nothing is put off, and
    /// what did not change is loaded, or complained of, again.
    fn look(&mut self, now: Instant, urgent: bool, news: &mut Vec<News>);
}

/// Loads a text, or says what is wrong with it.
type Take = Box<dyn FnMut(&str) -> Result<(), String> + Send>;

/// A file that is read whole: its text is handed over when it changed.
pub struct FileWatch {
    which: Which,
    path: PathBuf,
    /// Bytes of it that are read at most.
    most: u64,
    take: Take,
    last: Last,
}

impl FileWatch {
    /// Watches the file at `path`; the first look hands over what is in it then. `take` loads a
    /// text or says what is wrong with it; then it has changed nothing.
    pub fn new(
        which: Which,
        path: &Path,
        most: u64,
        take: impl FnMut(&str) -> Result<(), String> + Send + 'static,
    ) -> Self {
        Self { which, path: path.to_owned(), most, take: Box::new(take), last: Last::Never }
    }
}

impl Watch for FileWatch {
    fn look(&mut self, _: Instant, urgent: bool, news: &mut Vec<News>) {
        if urgent {
            self.last = Last::Never;
        }
        let Some(content) = self.last.changed(&self.path, self.most) else { return };
        let text = content.and_then(|content| {
            String::from_utf8(content).map_err(|_| format!("{} is not UTF-8", self.path.display()))
        });
        let said = text.and_then(|text| (self.take)(&text));
        let said = said.map(|()| self.path.display().to_string());
        news.push(News { which: self.which, said });
    }
}

/// What a file was when it was read last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Last {
    /// It was not.
    #[default]
    Never,
    /// This was in it.
    Read(Vec<u8>),
    /// It could not be read.
    Unreadable(String),
}

impl Last {
    /// What the file is now, if that is not what it was.
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

/// The thread that looks.
pub struct Reload(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asked: bool,
    stop: bool,
    rounds: u64,
}

/// Told of each piece of news: which it was, and whether it was loaded.
pub type Hook = Box<dyn Fn(Which, bool) + Send>;

/// Looks at all of them at once, and then every two seconds on a thread of its own.
pub fn start(watches: Vec<Box<dyn Watch>>, hook: Hook) -> std::io::Result<Reload> {
    start_at(EVERY, watches, hook)
}

fn start_at(every: Duration, mut watches: Vec<Box<dyn Watch>>, hook: Hook) -> std::io::Result<Reload> {
    let shared = Arc::new(Shared::default());
    if watches.is_empty() {
        shared.lock().rounds = 1;
    } else {
        let shared = Arc::clone(&shared);
        let look = move || {
            let mut urgent = false;
            loop {
                let mut news = Vec::new();
                for watch in &mut watches {
                    let look = || watch.look(Instant::now(), urgent, &mut news);
                    if catch_unwind(AssertUnwindSafe(look)).is_err() {
                        tracing::error!(
                            "a reload panicked, what was loaded before stays: a bug of ours, please report it"
                        );
                    }
                }
                news.into_iter().for_each(|news| tell(news, &hook));
                match shared.next(every) {
                    Some(asked) => urgent = asked,
                    None => return,
                }
            }
        };
        thread::Builder::new().name("reload".to_owned()).spawn(look)?;
    }
    Ok(Reload(shared))
}

fn tell(News { which, said }: News, hook: &Hook) {
    hook(which, said.is_ok());
    match said {
        Ok(what) => tracing::info!(file = which.name(), "loaded {what}"),
        Err(why) => {
            tracing::warn!(file = which.name(), "not loaded, what was loaded before stays: {why}");
        }
    }
}

impl Shared {
    /// Waits for the next look; whether it was asked for, or nothing if there is to be none.
    fn next(&self, every: Duration) -> Option<bool> {
        let mut state = self.lock();
        state.rounds += 1;
        self.changed.notify_all();
        let until = Instant::now() + every;
        while !state.asked && !state.stop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let asked = std::mem::take(&mut state.asked);
        (!state.stop).then_some(asked)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is three plain values: no panic leaves it half written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reload {
    /// Looks at once, at what is otherwise put off too: somebody says that something changed.
    pub fn now(&self) {
        self.0.lock().asked = true;
        self.0.changed.notify_all();
    }

    /// Waits until a first look is over, so that nobody is served before the keys are there; no
    /// longer than `most`, since they may never be.
    pub fn wait_first(&self, most: Duration) {
        let waiting = |state: &mut State| state.rounds == 0;
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), most, waiting);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Reload {
    fn drop(&mut self) {
        // Not joined: it may be waiting for somebody's server.
        self.0.lock().stop = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[path = "reload_tests.rs"]
mod tests;
