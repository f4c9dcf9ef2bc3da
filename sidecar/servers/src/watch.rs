//! The schedule of requests: one thread, one task for each upstream, one request at a time.
//!
//! ```text
//!            unreachable                  reachable
//!   silent ◀───────────── watching ◀────────────── silent
//!                    │ detect it
//!                    │ read its page periodically
//! ```
//!
//! Invariant: the thread blocks no other. A failed read yields a reading without values.

use std::future::pending;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use metrics::EngineReading;
use metrics::ServerKind;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::task::LocalSet;
use tokio::time::sleep;

use crate::detect::{self, Detected, Detection};
use crate::kinds;
use crate::limits::REFUSED_PAUSE;
use crate::tracker::{ProxyTotals, Tracker};
use crate::vocabulary::Vocabulary;
use scrape::Page;
use scrape::{Error, Fetcher};

/// The upstreams to watch.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The upstreams; hooks and [`Reach`] refer to them by index.
    pub targets: Vec<Target>,
    /// Time from the end of one read to the next.
    pub every: Duration,
}

/// An upstream.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name, for messages.
    pub name: Arc<str>,
    /// The client of its pages.
    pub fetcher: Fetcher,
    /// The configured kind of server; `None` to detect it.
    pub kind: Option<ServerKind>,
    /// The policy for reading its page.
    pub scrape: Scrape,
}

/// The policy for reading a server's page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scrape {
    /// Read, unless a read changes the page: llama.cpp has gauges that are averages since the last read of any client.
    #[default]
    Auto,
    /// Read for every kind.
    On,
    /// Not read. With a configured kind, no request is sent to the server.
    Off,
}

impl Scrape {
    fn reads(self, kind: ServerKind) -> bool {
        match self {
            Self::Auto => kind != ServerKind::LlamaCpp,
            Self::On => true,
            Self::Off => false,
        }
    }
}

/// The callbacks for results. They are called on the watching thread and should return quickly.
pub struct Hooks {
    /// Called when an upstream is detected, also after an outage.
    pub detected: Box<dyn Fn(usize, Detected) + Send>,
    /// Receives the latest reading of an upstream, which replaces the previous one.
    pub reading: Box<dyn Fn(usize, EngineReading) + Send>,
    /// Returns the proxy's current totals of an upstream.
    pub totals: Box<dyn Fn(usize) -> ProxyTotals + Send>,
}

/// Starts the watching thread. It sends no request to an upstream before [`Reach::note`] reports it reachable.
pub fn start(plan: Plan, hooks: Hooks) -> io::Result<Running> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (senders, receivers): (Vec<_>, Vec<_>) =
        plan.targets.iter().map(|_| watch::channel(Seen::default())).unzip();
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::Builder::new().name("servers".to_owned()).spawn(move || {
        let hooks = Rc::new(hooks);
        LocalSet::new().block_on(&runtime, async {
            for (number, (target, seen)) in plan.targets.into_iter().zip(receivers).enumerate() {
                let watcher = Watcher::new(number, target, plan.every, Rc::clone(&hooks));
                tokio::task::spawn_local(watcher.watch(seen));
            }
            // An error means that the sender was dropped, which is the signal to end.
            let _ = stopped.await;
        });
        // A pending name resolution must not block the end of the thread.
        runtime.shutdown_background();
    })?;
    Ok(Running { reach: Reach(senders.into()), stop: Some(stop), thread: Some(thread) })
}

/// The handle of the watching thread. Dropping it ends the thread.
#[derive(Debug)]
pub struct Running {
    reach: Reach,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Returns the handle for reports of reachability.
    pub fn reach(&self) -> Reach {
        self.reach.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

/// Receives reports of reachability. Clones share their state.
#[derive(Clone, Debug)]
pub struct Reach(Arc<[watch::Sender<Seen>]>);

impl Reach {
    /// Reports if an upstream is reachable now. Repeated reports have no effect.
    pub fn note(&self, upstream: usize, up: bool) {
        let Some(seen) = self.0.get(upstream) else { return };
        seen.send_if_modified(|seen| {
            let changed = seen.up != up;
            seen.up = up;
            seen.changes += u64::from(changed);
            changed
        });
    }
}

/// The reachability of an upstream, with a count of changes, so that even a short outage is noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    up: bool,
    changes: u64,
}

/// One upstream's task.
struct Watcher {
    number: usize,
    target: Target,
    fetcher: Fetcher,
    every: Duration,
    hooks: Rc<Hooks>,
    tracker: Tracker,
    kind: Option<ServerKind>,
    /// The last logged message, so that none is repeated.
    last_message: String,
    /// True after a warning that cached tokens are hidden.
    has_warned_hidden: bool,
    /// True after a message that the name has several servers.
    has_told_several: bool,
}

/// The error of a read.
enum ReadError {
    Failed(Error),
    Status(u16),
    /// A page without names of the expected kind.
    Foreign,
}

impl Watcher {
    fn new(number: usize, target: Target, every: Duration, hooks: Rc<Hooks>) -> Self {
        let fetcher = target.fetcher.clone();
        let (kind, last_message) = (target.kind, String::new());
        let tracker = Tracker::default();
        let (has_warned_hidden, has_told_several) = (false, false);
        Self {
            number,
            target,
            fetcher,
            every,
            hooks,
            tracker,
            kind,
            last_message,
            has_warned_hidden,
            has_told_several,
        }
    }

    /// Runs until all [`Reach`] handles are dropped.
    async fn watch(mut self, mut seen: watch::Receiver<Seen>) {
        loop {
            let Ok(now) = seen.wait_for(|seen| seen.up).await.map(|seen| *seen) else { return };
            tokio::select! {
                () = self.session() => {}
                changed = seen.wait_for(|seen| seen.changes != now.changes) => if changed.is_err() { return },
            }
            self.report_absent();
        }
    }

    /// Detects and reads a reachable server; it never returns.
    async fn session(&mut self) {
        loop {
            match self.detect().await {
                Ok(Detection::Known(detected)) => {
                    self.kind = Some(detected.kind);
                    (self.hooks.detected)(self.number, detected);
                    self.log_kind(detected);
                    self.poll_page(detected.kind).await;
                }
                Ok(Detection::UnknownPage) => {
                    self.log("the server's metrics page has no known name; it is not read");
                    self.report_absent();
                    sleep(self.every.max(UNKNOWN_PAGE_PAUSE)).await;
                }
                Ok(Detection::NoPage) => {
                    self.log("the server could not be detected; set kind if it is a supported one");
                    self.report_absent();
                    sleep(REFUSED_PAUSE).await;
                }
                Err(failure) => {
                    self.log(&format!("the server cannot be detected yet: {failure}"));
                    self.report_absent();
                    sleep(self.every).await;
                }
            }
        }
    }

    async fn detect(&self) -> Result<Detection, Error> {
        match (self.target.kind, self.target.scrape) {
            (Some(kind), Scrape::Off) => Ok(Detection::Known(Detected { kind, front_end: None })),
            (Some(kind), _) => detect::configured(&self.fetcher, kind).await.map(Detection::Known),
            (None, _) => detect::detect(&self.fetcher).await,
        }
    }

    /// Reads the page periodically; returns when it is no longer of this kind.
    async fn poll_page(&mut self, kind: ServerKind) {
        let vocabulary = kinds::of(kind).filter(|_| self.target.scrape.reads(kind));
        let Some(vocabulary) = vocabulary else {
            self.report_absent();
            // Nothing to do until the next outage.
            return pending().await;
        };
        loop {
            let wait = match self.read(vocabulary).await {
                Ok(reading) => {
                    self.log("the server's metrics page is read");
                    self.warn_hidden(&reading);
                    (self.hooks.reading)(self.number, reading);
                    self.every
                }
                Err(why) => {
                    self.report_absent();
                    self.log_read_error(vocabulary, &why);
                    match why {
                        // The server may have been replaced.
                        ReadError::Foreign if self.target.kind.is_none() => return sleep(self.every).await,
                        ReadError::Status(401 | 403 | 404 | 405 | 410 | 501) => self.every.max(REFUSED_PAUSE),
                        _ => self.every,
                    }
                }
            };
            sleep(wait).await;
        }
    }

    async fn read(&mut self, vocabulary: &Vocabulary) -> Result<EngineReading, ReadError> {
        let response = self.fetcher.get(vocabulary.page).await.map_err(ReadError::Failed)?;
        if response.status != 200 {
            return Err(ReadError::Status(response.status));
        }
        let totals = (self.hooks.totals)(self.number);
        let page = Page::read(&response.text);
        // A server without requests may have an empty page; a page with names of another kind is foreign.
        if !vocabulary.is_on(&page) && (page.skipped > 0 || detect::by_names(&page).is_some()) {
            return Err(ReadError::Foreign);
        }
        if page.skipped > 0 {
            let (upstream, lines) = (&*self.target.name, page.skipped);
            tracing::debug!(upstream, lines, "invalid lines on the server's metrics page");
        }
        let mut values = vocabulary.read(&page);
        values.started = response.started.or(values.started);
        let reading = self.tracker.take(vocabulary.kind, values, totals);
        let reading = if self.has_several_servers() { reading.without_comparison() } else { reading };
        Ok(EngineReading { read_at: Some(SystemTime::now()), ..reading })
    }

    /// Returns true if the name has several addresses: each read reaches one of them, and the proxy's totals are of all.
    /// Logs it once.
    fn has_several_servers(&mut self) -> bool {
        let addresses = self.fetcher.target.server_count();
        if addresses > 1 && !std::mem::replace(&mut self.has_told_several, true) {
            let upstream = &*self.target.name;
            tracing::info!(
                upstream,
                addresses,
                "the upstream's name has several addresses: each read of the metrics page shows one of the servers, and \
                 their counts are not compared with tokenmeter's; list each server as an upstream to compare them"
            );
        }
        addresses > 1
    }

    /// Reports a reading without values: the page could not be read, or is not to be read.
    fn report_absent(&self) {
        let is_polled = match self.kind {
            Some(kind) => kinds::of(kind).is_some() && self.target.scrape.reads(kind),
            None => self.target.scrape != Scrape::Off,
        };
        let up = is_polled.then_some(false);
        (self.hooks.reading)(self.number, EngineReading { up, kind: self.kind, ..EngineReading::default() });
    }

    fn log_kind(&mut self, detected: Detected) {
        let kind = detected.kind.name();
        self.log(&match detected.front_end {
            Some(front_end) => format!("the server is {kind} ({} front end)", front_end.name()),
            None => format!("the server is {kind}"),
        });
    }

    fn log_read_error(&mut self, vocabulary: &Vocabulary, why: &ReadError) {
        let page = vocabulary.page;
        self.log(&match why {
            ReadError::Failed(failure) => format!("the server's {page} cannot be read: {failure}"),
            ReadError::Foreign => format!("the server's {page} is not a page of {}", vocabulary.kind.name()),
            ReadError::Status(status) => {
                let remedy = match (vocabulary.kind, status) {
                    (_, 401 | 403) => "; it requires a key, which is not supported",
                    (ServerKind::LlamaCpp, _) => "; start it with --metrics",
                    (ServerKind::Sglang | ServerKind::Lmdeploy, _) => "; start it with --enable-metrics",
                    (ServerKind::TensorrtLlm, _) => "; start it with return_perf_metrics set",
                    _ => "",
                };
                format!("the server's {page} cannot be read: status {status}{remedy}")
            }
        });
    }

    /// Logs once that the server hides cached tokens, and again if it does so after a recovery.
    fn warn_hidden(&mut self, reading: &EngineReading) {
        let hides = reading.hides_cached_tokens();
        if hides && !self.has_warned_hidden {
            let (upstream, cached_tokens) = (&*self.target.name, reading.hidden_cached_tokens);
            let remedy = reading.kind.map_or("", kinds::hidden_cached_remedy);
            tracing::warn!(
                upstream,
                cached_tokens,
                "the server's page shows cached prompt tokens that its usage does not report; they are counted and \
                 priced as computed ones{remedy}"
            );
        }
        self.has_warned_hidden = hides;
    }

    fn log(&mut self, message: &str) {
        if self.last_message != message {
            tracing::info!(upstream = &*self.target.name, "{message}");
            message.clone_into(&mut self.last_message);
        }
    }
}

/// Pause before a page without known names is read again.
const UNKNOWN_PAGE_PAUSE: Duration = Duration::from_secs(60);
