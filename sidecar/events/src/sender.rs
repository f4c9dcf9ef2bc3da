//! The sending thread: polls the ledger, posts new events, moves the cursor, waits, and retries after a failure.
//!
//! Laws: the cursor moves only after the receiver accepted everything before it, and the ledger's file is closed while
//! a request is in flight. A file that cannot be read does not stop the others.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agent::{Endpoint, Failure, Post, jittered};
use ledger::export::{Cursor, ExportReader, Opened, Origin};
use serde_json::Value;

use crate::batch::deliver;
use crate::cursors::{Cursors, Position};
use crate::event::event;
use crate::status::{Reason, Status};

/// The settings of usage events.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The ledger: the file of its open month.
    pub ledger: PathBuf,
    /// The receiver.
    pub endpoint: Endpoint,
    /// Reads the bearer token at each attempt, so that a new one is used at once.
    pub token: Option<Token>,
    /// Exchanges that ended before this instant, microseconds since 1970, have no events.
    pub since_us: i64,
    /// Trusted certificates (DER) in place of the system's.
    pub roots: Option<Vec<Vec<u8>>>,
    /// Uses the proxy of the environment (`HTTPS_PROXY` and the like).
    pub through_proxy: bool,
    /// The timeout of an attempt.
    pub attempt_timeout: Duration,
    /// The interval between two polls of the ledger.
    pub poll_interval: Duration,
    /// The delay after the first failure. Each further failure doubles it, to at most 60 times the first.
    pub retry_delay: Duration,
}

/// A function that reads a bearer token.
#[derive(Clone)]
pub struct Token(Arc<dyn Fn() -> io::Result<String> + Send + Sync>);

impl Token {
    /// Wraps the function.
    pub fn new(read: impl Fn() -> io::Result<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Plan {
    /// Returns the default timing: a poll each 5 s, 10 s an attempt, delays from 1 s to a minute after failures.
    pub fn new(ledger: &Path, endpoint: Endpoint) -> Self {
        Self {
            ledger: ledger.to_owned(),
            endpoint,
            token: None,
            since_us: i64::MIN,
            roots: None,
            through_proxy: true,
            attempt_timeout: Duration::from_secs(10),
            poll_interval: Duration::from_secs(5),
            retry_delay: Duration::from_secs(1),
        }
    }
}

/// Maximum events in one request: about a hundred kilobytes.
pub const BATCH_MAX_EVENTS: usize = 100;

/// The longest delay after a failure, as a multiple of the first.
const RETRY_MAX_FACTOR: u32 = 60;

/// The longest delay that a receiver can request.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(600);

/// A running sender. Dropping it stops the thread after its current attempt, without waiting.
#[derive(Debug)]
pub struct Sender {
    shared: Arc<Mutex<Status>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A handle that reads the status of a sender.
#[derive(Clone, Debug)]
pub struct StatusReader(Arc<Mutex<Status>>);

impl StatusReader {
    /// Returns the status.
    pub fn status(&self) -> Status {
        lock(&self.0).clone()
    }

    /// Returns true if every event of a file was accepted at the last poll, so that its rows may be deleted. False for
    /// a file that has not been polled since the start.
    pub fn has_all(&self, file: &Path) -> bool {
        lock(&self.0).complete.iter().any(|path| path == file)
    }
}

impl Sender {
    /// Returns a handle that reads the status.
    pub fn status_reader(&self) -> StatusReader {
        StatusReader(Arc::clone(&self.shared))
    }

    /// Polls the ledger once more, sends what is new, and stops. Returns false if that took longer than `within`; the
    /// rest is sent after the next start.
    pub fn shutdown(mut self, within: Duration) -> bool {
        drop(self.stop.take());
        let until = Instant::now() + within;
        let Some(thread) = self.thread.take() else { return true };
        while !thread.is_finished() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        thread.join().is_ok()
    }
}

/// Starts the sending thread.
///
/// # Errors
/// If the thread cannot be started.
pub fn start(plan: Plan) -> io::Result<Sender> {
    let shared = Arc::new(Mutex::new(Status::default()));
    let (stop, stopped) = mpsc::channel();
    let for_thread = Arc::clone(&shared);
    let thread = std::thread::Builder::new().name("usage-events".into()).spawn(move || {
        // On the thread, because reading the system's certificates takes a while.
        let post =
            Post::new(plan.endpoint.clone(), plan.roots.as_deref(), plan.attempt_timeout, plan.through_proxy)
                .refusing_pages();
        let reader = ExportReader::of(&plan.ledger);
        Worker { plan, post, reader, cursors: None, unsaved: None, shared: for_thread, stopped }.run();
    })?;
    Ok(Sender { shared, stop: Some(stop), thread: Some(thread) })
}

fn lock(shared: &Mutex<Status>) -> MutexGuard<'_, Status> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Worker {
    plan: Plan,
    post: Post,
    reader: ExportReader,
    /// The cursors; `None` until their file was read, and during a poll, so that a panic has them read again.
    cursors: Option<Cursors>,
    /// The error of the last attempt to write them.
    unsaved: Option<String>,
    shared: Arc<Mutex<Status>>,
    stopped: Receiver<()>,
}

/// The failure of a poll.
struct Error {
    reason: Reason,
    message: String,
    retry_after: Option<Duration>,
}

impl Error {
    fn local(message: impl fmt::Display) -> Self {
        Self { reason: Reason::Local, message: message.to_string(), retry_after: None }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let reason = Reason::from(failure.kind);
        let remedy = match reason {
            Reason::Refused => ": check the URL, the token and the receiver's rules for events",
            _ => "",
        };
        let message = format!("the receiver did not accept events: {failure}{remedy}");
        Self { reason, message, retry_after: failure.retry_after }
    }
}

/// The exchanges of one request.
struct Batch {
    events: Vec<Value>,
    /// The number of exchanges, also of those without an event.
    exchanges: usize,
    /// The position after them.
    next: Position,
    /// The number of exchanges before them that retention deleted.
    taken: u64,
    /// True if the file has no more exchanges.
    is_last: bool,
}

impl Worker {
    fn run(&mut self) {
        let mut wait = self.plan.retry_delay;
        loop {
            let last = matches!(self.stopped.try_recv(), Err(mpsc::TryRecvError::Disconnected));
            let polled = catch_unwind(AssertUnwindSafe(|| self.poll()));
            let pause = match polled.unwrap_or_else(|_| Err(Error::local("a bug: the sender panicked"))) {
                Ok(()) => {
                    self.succeeded();
                    wait = self.plan.retry_delay;
                    jittered(self.plan.poll_interval)
                }
                // The events of other files were sent, so the delay does not grow.
                Err(error) if error.reason == Reason::Local => {
                    self.failed(error);
                    wait = self.plan.retry_delay;
                    jittered(self.plan.poll_interval)
                }
                Err(error) => {
                    let asked = error.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
                    self.failed(error);
                    let pause = jittered(wait).max(asked);
                    wait = (wait * 2).min(self.plan.retry_delay * RETRY_MAX_FACTOR);
                    pause
                }
            };
            if last {
                return;
            }
            // A stop ends the wait, not the loop: one last poll follows.
            let _: Result<(), RecvTimeoutError> = self.stopped.recv_timeout(pause);
        }
    }

    /// Sends everything new, file by file, the oldest first. A file that cannot be read does not stop the others.
    fn poll(&mut self) -> Result<(), Error> {
        let mut cursors = match self.cursors.take() {
            Some(cursors) => cursors,
            None => Cursors::of(&self.plan.ledger).map_err(|error| {
                Error::local(format!(
                    "the cursor of usage events cannot be read: {error}; remove its file to send all events again"
                ))
            })?,
        };
        let polled = self.poll_from(&mut cursors);
        self.cursors = Some(cursors);
        polled
    }

    fn poll_from(&mut self, cursors: &mut Cursors) -> Result<(), Error> {
        let files = self.reader.files().map_err(Error::local)?;
        self.count_pending(&files, cursors);
        let (mut there, mut complete, mut unreadable) = (Vec::new(), Vec::new(), None);
        for path in &files {
            match self.send_file(path, cursors, &mut there) {
                Ok(()) => complete.push(path.clone()),
                Err(error) if error.reason == Reason::Local => {
                    unreadable.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        if unreadable.is_none() {
            cursors.keep(&there);
        }
        lock(&self.shared).complete = complete;
        match (unreadable, self.unsaved.take()) {
            (Some(error), _) => Err(error),
            // The events were sent, but the cursor is not on disk.
            (None, Some(error)) => Err(Error::local(format!(
                "the cursor of usage events cannot be written: {error}; after a restart events are sent again"
            ))),
            (None, None) => Ok(()),
        }
    }

    /// Sends everything new of one file.
    fn send_file(
        &mut self,
        path: &Path,
        cursors: &mut Cursors,
        there: &mut Vec<Origin>,
    ) -> Result<(), Error> {
        loop {
            let opened = match self.reader.open(path) {
                Ok(opened) => opened,
                // Its month has ended meanwhile, which renamed the file.
                Err(_) if !path.exists() => return Ok(()),
                Err(error) => return Err(Error::local(error)),
            };
            let origin = opened.origin();
            let batch = self.batch(&opened, cursors.get(origin)).map_err(Error::local)?;
            drop(opened);
            if !there.contains(&origin) {
                there.push(origin);
            }
            if !batch.events.is_empty() {
                self.deliver(&batch.events)?;
            }
            {
                let mut status = lock(&self.shared);
                status.pending = status.pending.saturating_sub(batch.exchanges as u64);
                status.deleted_total += batch.taken;
            }
            if batch.taken > 0 {
                tracing::warn!(
                    "{} exchanges of {} were deleted by retention before their usage events were sent",
                    batch.taken,
                    path.display()
                );
            }
            if cursors.get(origin) != batch.next {
                cursors.set(origin, batch.next);
                // Skipped exchanges need no durable cursor: they would be skipped again.
                if !batch.events.is_empty() || batch.is_last {
                    self.unsaved = cursors.save().err();
                }
            }
            if batch.is_last {
                return Ok(());
            }
        }
    }

    /// Reads the exchanges of a file after a position.
    fn batch(&self, opened: &Opened, mut at: Position) -> Result<Batch, ledger::Error> {
        let is_other = opened.at(at.exchange)?.is_some_and(|id| at.id.is_some_and(|last| last != id));
        if is_other || at.exchange > opened.end()?.exchange {
            tracing::warn!(
                "a file of the ledger was restored from an older copy: its usage events are sent again, with the \
                 same ids"
            );
            at = Position::default();
        }
        let read = opened.exchanges(at.exchange, BATCH_MAX_EVENTS)?;
        let is_new = |row: &&ledger::Row| row.ended_us >= self.plan.since_us;
        let events = read.rows.iter().filter(is_new).filter_map(event).collect();
        let id = match read.rows.last() {
            Some(row) => Some(row.id),
            // The last exchange was deleted by retention.
            None => at.id.filter(|_| read.next == at.exchange),
        };
        let next = Position { exchange: read.next, id };
        let exchanges = read.rows.len();
        Ok(Batch { events, exchanges, next, taken: read.taken, is_last: exchanges < BATCH_MAX_EVENTS })
    }

    fn deliver(&self, events: &[Value]) -> Result<(), Error> {
        let token = match &self.plan.token {
            Some(token) => Some((token.0)().map_err(|error| {
                Error::local(format!("the token of usage events cannot be read: {error}"))
            })?),
            None => None,
        };
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> = [("content-type", CONTENT_TYPE)]
            .into_iter()
            .chain(bearer.as_deref().map(|bearer| ("authorization", bearer)))
            .collect();
        let mut post = |list: &[Value]| {
            let body = serde_json::to_vec(list).unwrap_or_default();
            self.post.attempt(&headers, &body)
        };
        let delivery = deliver(events, &mut post)?;
        let mut status = lock(&self.shared);
        status.sent_total += delivery.accepted;
        status.rejected_total += delivery.rejected.len() as u64;
        drop(status);
        if !delivery.rejected.is_empty() {
            let (count, ids) = (delivery.rejected.len(), delivery.rejected.join(", "));
            tracing::warn!("{} rejected {count} usage events, which are not sent again: {ids}", self.post);
        }
        Ok(())
    }

    /// Counts the exchanges after the cursors. A file that cannot be read is reported when it is sent.
    fn count_pending(&self, files: &[PathBuf], cursors: &Cursors) {
        let waiting = |path: &PathBuf| {
            let opened = self.reader.open(path).ok()?;
            let Position { exchange, .. } = cursors.get(opened.origin());
            let (exchanges, _) = opened.waiting(Cursor { exchange, ..Cursor::default() }).ok()?;
            Some(exchanges)
        };
        lock(&self.shared).pending = files.iter().filter_map(waiting).sum();
    }

    fn succeeded(&self) {
        let mut status = lock(&self.shared);
        if let Some(error) = status.error.take() {
            tracing::info!(receiver = %self.post, was = error, "sending usage events again");
        }
        status.up = true;
        status.pending = 0;
    }

    /// Counts an error, and logs it if it is new.
    fn failed(&self, error: Error) {
        let mut status = lock(&self.shared);
        status.up = false;
        // Late exchanges may have been added since, so no row may be deleted before the next poll.
        status.complete.clear();
        status.failures[error.reason as usize] += 1;
        if status.error.as_ref() != Some(&error.message) {
            let (message, reason) = (&error.message, error.reason.name());
            tracing::warn!(receiver = %self.post, reason, "not sending usage events: {message}; they wait in the ledger");
            status.error = Some(error.message);
        }
    }
}

/// The media type of a list of events.
const CONTENT_TYPE: &str = "application/cloudevents-batch+json";
