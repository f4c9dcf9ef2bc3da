//! When which server is asked: one thread, one task for each upstream, one request at a time.
//!
//! ```text
//!            unreachable                  reachable
//!   silent ◀───────────── watching ◀────────────── silent
//!                    │ recognise it, until it is known
//!                    │ read its page, again and again
//! ```
//!
//! The law: nothing here is on anyone's way. What cannot be read is a reading without numbers.

use std::future::pending;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use metrics::EngineReading;
use relay::Kind;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::task::LocalSet;
use tokio::time::sleep;

use crate::detect::{self, Detected, Verdict};
use crate::kinds;
use crate::limits::REFUSED_WAIT;
use crate::reckoning::{Ours, Reckoning};
use crate::vocabulary::Vocabulary;
use scrape::Page;
use scrape::{Asker, Failure};

/// What to watch.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The upstreams; their order gives them the numbers by which the hooks and [`Reach`] know them.
    pub targets: Vec<Target>,
    /// From the end of one reading to the next.
    pub every: Duration,
}

/// An upstream.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name, for messages.
    pub name: Arc<str>,
    /// Name or address of its host.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
    /// Put before every path: empty, or `/prefix` without a slash at its end.
    pub prefix: Arc<str>,
    /// The kind of server, if a person named it; else it is recognised.
    pub kind: Option<Kind>,
    /// Whether its page is read.
    pub scrape: Scrape,
}

/// Whether a server's page is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scrape {
    /// If that changes nothing there: not llama.cpp's, some gauges of which are averages since
    /// the last reading, by whoever.
    #[default]
    Auto,
    /// Whichever it is.
    On,
    /// Not. With the kind named too, no request of ours reaches the server.
    Off,
}

impl Scrape {
    fn reads(self, kind: Kind) -> bool {
        match self {
            Self::Auto => kind != Kind::LlamaCpp,
            Self::On => true,
            Self::Off => false,
        }
    }
}

/// Where what is learned goes. All are called on the watching thread, and should be quick.
pub struct Hooks {
    /// An upstream was recognised, or recognised anew.
    pub detected: Box<dyn Fn(usize, Detected) + Send>,
    /// The last that an upstream says of itself; replaces what it said before.
    pub reading: Box<dyn Fn(usize, EngineReading) + Send>,
    /// Our own totals of an upstream at this moment.
    pub ours: Box<dyn Fn(usize) -> Ours + Send>,
}

/// Begins to watch. Nothing is asked until [`Reach::note`] says that an upstream is there.
pub fn start(plan: Plan, hooks: Hooks) -> io::Result<Running> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (senders, receivers): (Vec<_>, Vec<_>) =
        plan.targets.iter().map(|_| watch::channel(Seen::default())).unzip();
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
        let hooks = Rc::new(hooks);
        LocalSet::new().block_on(&runtime, async {
            for (number, (target, seen)) in plan.targets.into_iter().zip(receivers).enumerate() {
                let watcher = Watcher::new(number, target, plan.every, Rc::clone(&hooks));
                tokio::task::spawn_local(watcher.watch(seen));
            }
            // An error is the sender's drop: the signal itself.
            let _ = stopped.await;
        });
        // A name that is still being resolved would hold us up.
        runtime.shutdown_background();
    })?;
    Ok(Running { reach: Reach(senders.into()), stop: Some(stop), thread: Some(thread) })
}

/// The watching thread. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    reach: Reach,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// For whoever knows which upstreams can be reached.
    pub fn reach(&self) -> Reach {
        self.reach.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Takes word of which upstreams can be reached. Cheap to clone; the clones are one.
#[derive(Clone, Debug)]
pub struct Reach(Arc<[watch::Sender<Seen>]>);

impl Reach {
    /// Whether an upstream can be reached now. May be said again and again.
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

/// What is known of the way to an upstream; counted, so that no outage is too short to be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    up: bool,
    changes: u64,
}

/// One upstream's task.
struct Watcher {
    number: usize,
    target: Target,
    asker: Asker,
    every: Duration,
    hooks: Rc<Hooks>,
    reckoning: Reckoning,
    kind: Option<Kind>,
    /// What was logged last, so that nothing is logged twice.
    told: String,
    /// True if the log says that cached tokens are hidden.
    told_hidden: bool,
}

/// Why a page gave no reading.
enum NoReading {
    Failed(Failure),
    Status(u16),
    /// A page without a name of the kind it should be of.
    Foreign,
}

impl Watcher {
    fn new(number: usize, target: Target, every: Duration, hooks: Rc<Hooks>) -> Self {
        let asker =
            Asker { host: Arc::clone(&target.host), port: target.port, prefix: Arc::clone(&target.prefix) };
        let (kind, told) = (target.kind, String::new());
        let reckoning = Reckoning::default();
        Self { number, target, asker, every, hooks, reckoning, kind, told, told_hidden: false }
    }

    /// Until nobody says any more what can be reached.
    async fn watch(mut self, mut seen: watch::Receiver<Seen>) {
        loop {
            let Ok(now) = seen.wait_for(|seen| seen.up).await.map(|seen| *seen) else { return };
            tokio::select! {
                () = self.session() => {}
                gone = seen.wait_for(|seen| seen.changes != now.changes) => if gone.is_err() { return },
            }
            self.report_nothing();
        }
    }

    /// While it can be reached: does not end by itself.
    async fn session(&mut self) {
        loop {
            match self.recognise().await {
                Ok(Verdict::Known(detected)) => {
                    self.kind = Some(detected.kind);
                    (self.hooks.detected)(self.number, detected);
                    self.tell_kind(detected);
                    self.read_again_and_again(detected.kind).await;
                }
                Ok(Verdict::UnknownPage) => {
                    self.tell("its metrics page has no name we know, so nothing of it is read");
                    self.report_nothing();
                    sleep(self.every.max(UNKNOWN_WAIT)).await;
                }
                Ok(Verdict::NoPage) => {
                    self.tell("it is no server that we recognise; name its kind if it is one of them");
                    self.report_nothing();
                    sleep(REFUSED_WAIT).await;
                }
                Err(failure) => {
                    self.tell(&format!("it cannot be recognised yet: {failure}"));
                    self.report_nothing();
                    sleep(self.every).await;
                }
            }
        }
    }

    async fn recognise(&self) -> Result<Verdict, Failure> {
        match (self.target.kind, self.target.scrape) {
            (Some(kind), Scrape::Off) => Ok(Verdict::Known(Detected { kind, front_end: None })),
            (Some(kind), _) => detect::configured(&self.asker, kind).await.map(Verdict::Known),
            (None, _) => detect::detect(&self.asker).await,
        }
    }

    /// Ends when the page is no longer this kind's.
    async fn read_again_and_again(&mut self, kind: Kind) {
        let vocabulary = kinds::of(kind).filter(|_| self.target.scrape.reads(kind));
        let Some(vocabulary) = vocabulary else {
            self.report_nothing();
            // Nothing to do until it was gone.
            return pending().await;
        };
        loop {
            let wait = match self.read(vocabulary).await {
                Ok(reading) => {
                    self.tell("its own metrics are read");
                    self.tell_hidden(&reading);
                    (self.hooks.reading)(self.number, reading);
                    self.every
                }
                Err(why) => {
                    self.report_nothing();
                    self.tell_no_reading(vocabulary, &why);
                    match why {
                        // Another server may have come in its place.
                        NoReading::Foreign if self.target.kind.is_none() => return sleep(self.every).await,
                        NoReading::Status(401 | 403 | 404 | 405 | 410 | 501) => self.every.max(REFUSED_WAIT),
                        _ => self.every,
                    }
                }
            };
            sleep(wait).await;
        }
    }

    async fn read(&mut self, vocabulary: &Vocabulary) -> Result<EngineReading, NoReading> {
        let answer = self.asker.get(vocabulary.page).await.map_err(NoReading::Failed)?;
        if answer.status != 200 {
            return Err(NoReading::Status(answer.status));
        }
        let ours = (self.hooks.ours)(self.number);
        let page = Page::read(&answer.text);
        // A server that has counted nothing yet may have an empty page; one of others' names is not its.
        if !vocabulary.is_on(&page) && (page.skipped > 0 || detect::by_names(&page).is_some()) {
            return Err(NoReading::Foreign);
        }
        if page.skipped > 0 {
            let (upstream, lines) = (&*self.target.name, page.skipped);
            tracing::debug!(upstream, lines, "lines of its metrics page cannot be read");
        }
        let mut said = vocabulary.read(&page);
        said.started = answer.started.or(said.started);
        Ok(self.reckoning.take(vocabulary.kind, said, ours))
    }

    /// Its page was not read, or is not to be.
    fn report_nothing(&self) {
        let asked = match self.kind {
            Some(kind) => kinds::of(kind).is_some() && self.target.scrape.reads(kind),
            None => self.target.scrape != Scrape::Off,
        };
        let up = asked.then_some(false);
        (self.hooks.reading)(self.number, EngineReading { up, kind: self.kind, ..EngineReading::default() });
    }

    fn tell_kind(&mut self, detected: Detected) {
        let kind = detected.kind.name();
        self.tell(&match detected.front_end {
            Some(front_end) => format!("it is {kind} ({} front end)", front_end.name()),
            None => format!("it is {kind}"),
        });
    }

    fn tell_no_reading(&mut self, vocabulary: &Vocabulary, why: &NoReading) {
        let page = vocabulary.page;
        self.tell(&match why {
            NoReading::Failed(failure) => format!("its {page} cannot be read: {failure}"),
            NoReading::Foreign => format!("its {page} is not the page of {}", vocabulary.kind.name()),
            NoReading::Status(status) => {
                let remedy = match (vocabulary.kind, status) {
                    (_, 401 | 403) => "; it wants a key, which we do not have",
                    (Kind::LlamaCpp, _) => "; start it with --metrics",
                    (Kind::Sglang | Kind::Lmdeploy, _) => "; start it with --enable-metrics",
                    (Kind::TensorrtLlm, _) => "; start it with return_perf_metrics set",
                    _ => "",
                };
                format!("its {page} cannot be read: it answers {status}{remedy}")
            }
        });
    }

    /// Logs once that the server hides cached tokens, and once more after it no longer did.
    fn tell_hidden(&mut self, reading: &EngineReading) {
        let hides = reading.hides_cached_tokens();
        if hides && !self.told_hidden {
            let (upstream, cached_tokens) = (&*self.target.name, reading.hidden_cached_tokens);
            let remedy = reading.kind.map_or("", kinds::hidden_cached_remedy);
            tracing::warn!(
                upstream,
                cached_tokens,
                "its page shows cached prompt tokens that its usage does not report, so they are counted and \
                 priced as computed ones{remedy}"
            );
        }
        self.told_hidden = hides;
    }

    fn tell(&mut self, what: &str) {
        if self.told != what {
            tracing::info!(upstream = &*self.target.name, "{what}");
            what.clone_into(&mut self.told);
        }
    }
}

/// How long until a page without a name we know is looked at again.
const UNKNOWN_WAIT: Duration = Duration::from_secs(60);
