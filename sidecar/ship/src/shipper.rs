//! The thread that ships: looks at the ledger, sends what came, waits, and starts over when something fails.
//!
//! Laws: it never holds the ledger's writer up; how far each file has got is asked of the store, in whose
//! transactions it is written, so that neither a crash here nor a backup restored there loses or doubles a
//! row; a file that cannot be read keeps no other from being sent.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ledger::feed::{Cursor, Feed, Opened, Origin, Parcel};
use ledger::source::{DeviceLine, Month};
use ledger::{Line, month, now_us};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::Type;
use postgres::{Client, Row};

use crate::address::Address;
use crate::connect::connect;
use crate::error::{Scope, ShipError};
use crate::schema;
use crate::send::{self, send};
use crate::status::{FileStatus, Status};
use crate::values::{self, Id};

/// What is shipped where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The ledger: the file of its open month.
    pub ledger: PathBuf,
    /// The store.
    pub address: Address,
    /// The name of the machine or the pod, for people.
    pub host: Arc<str>,
    /// How often the ledger is looked at; `POLL_INTERVAL` unless somebody is in a hurry.
    pub poll_interval: Duration,
    /// The first wait after a failure; each further one doubles it, up to sixty of it. `RETRY_FIRST_DELAY` unless
    /// somebody is in a hurry.
    pub retry_delay: Duration,
    /// Rows sent at once, at most; `BATCH_MAX_ROWS` unless somebody tries something.
    pub batch_max_rows: usize,
    /// So many looks break off by a panic, for the tests.
    #[cfg(test)]
    pub(crate) panics: Arc<std::sync::atomic::AtomicU32>,
}

impl Plan {
    /// The ordinary plan.
    pub fn new(ledger: &Path, address: Address, host: &str) -> Self {
        Self {
            ledger: ledger.to_owned(),
            address,
            host: host.into(),
            poll_interval: POLL_INTERVAL,
            retry_delay: RETRY_FIRST_DELAY,
            batch_max_rows: BATCH_MAX_ROWS,
            #[cfg(test)]
            panics: Arc::default(),
        }
    }
}

#[cfg(test)]
impl Plan {
    fn panic_if_asked(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        if self.panics.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            panic!("as the test wants it");
        }
    }
}

/// How often the ledger is looked at: ten thousand sidecars make a thousand transactions a second of it.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Rows in one transaction: some two megabytes.
pub(crate) const BATCH_MAX_ROWS: usize = 4096;

/// The first wait after a failure.
pub(crate) const RETRY_FIRST_DELAY: Duration = Duration::from_secs(1);

/// How often it is looked whether an idle connection is still there; the least of all times here that
/// somebody would wait for `up`.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The store is asked again how far each file has got after so many looks: whether one is to be sent again, and which
/// months it has forgotten, is decided there.
const REFRESH_POLLS: u32 = 6;

/// The longest wait, in first ones.
const RETRY_MAX_FACTOR: u32 = 60;

/// An attempt that takes longer counts as hanging.
const ATTEMPT_MAX_DURATION: Duration = Duration::from_secs(150);

/// A running shipper. Dropped, it stops when its attempt is over; nobody waits.
#[derive(Debug)]
pub struct Shipper {
    shared: Arc<Mutex<Shared>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    status: Status,
    /// When the first row that waits ended, microseconds since 1970.
    oldest_us: Option<i64>,
    /// Since when an attempt has been going on.
    attempt_since: Option<Instant>,
}

/// Starts to ship. Returns at once.
///
/// # Errors
/// If the system starts no thread.
pub fn start(plan: Plan) -> std::io::Result<Shipper> {
    let shared = Arc::new(Mutex::new(Shared::default()));
    let (stop, stopped) = mpsc::channel();
    let mut worker = Worker {
        feed: Feed::of(&plan.ledger),
        plan,
        shared: Arc::clone(&shared),
        client: None,
        refreshed_at: None,
        fetched: HashMap::new(),
        cursors: HashMap::new(),
        confirmed: HashSet::new(),
        resends: HashSet::new(),
        forgotten: BTreeSet::new(),
        totals: HashMap::new(),
        stopped,
    };
    let thread = std::thread::Builder::new().name("ship".into()).spawn(move || worker.run())?;
    Ok(Shipper { shared, stop: Some(stop), thread: Some(thread) })
}

/// A look at how shipping goes, for as many as want one.
#[derive(Clone, Debug)]
pub struct StatusReader {
    shared: Arc<Mutex<Shared>>,
}

impl StatusReader {
    /// How it goes.
    pub fn status(&self) -> Status {
        let shared = lock(&self.shared);
        let mut status = shared.status.clone();
        if let Some(oldest) = shared.oldest_us {
            status.lag = Duration::from_micros(now_us().saturating_sub(oldest).max(0).unsigned_abs());
        }
        status.up &= shared.attempt_since.is_none_or(|since| since.elapsed() < ATTEMPT_MAX_DURATION);
        status
    }

    /// Whether the store has confirmed all that a file held at the last look, so that its rows may go. A
    /// file that was not looked at since the start is not known to be there.
    pub fn has_all(&self, file: &Path) -> bool {
        lock(&self.shared).status.files.iter().any(|seen| seen.path == file && seen.complete)
    }
}

impl Shipper {
    /// How it goes.
    pub fn status(&self) -> Status {
        self.status_reader().status()
    }

    /// Something to look with that others may have.
    pub fn status_reader(&self) -> StatusReader {
        StatusReader { shared: Arc::clone(&self.shared) }
    }

    /// Looks at the ledger once more, sends what is there, and stops; gives up after so long. Whether it
    /// came to its end; what is left is sent after the next start.
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

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Worker {
    plan: Plan,
    feed: Feed,
    shared: Arc<Mutex<Shared>>,
    client: Option<Client>,
    /// When the store was last asked; `None`: not over this connection.
    refreshed_at: Option<Instant>,
    /// The store's answers then, for files that were not checked since.
    fetched: HashMap<Origin, FileProgress>,
    /// The cursors that the store last reported, however long ago.
    cursors: HashMap<Origin, Cursor>,
    /// The files of which it said so since it was last asked.
    confirmed: HashSet<Origin>,
    /// The files that it wants to be sent again.
    resends: HashSet<Origin>,
    /// The months whose rows it does not take.
    forgotten: BTreeSet<Month>,
    /// What was last sent of totals that stand for themselves.
    totals: HashMap<Origin, Totals>,
    stopped: Receiver<()>,
}

type Totals = (Vec<Line>, Vec<DeviceLine>);

/// How far the store has got with a file.
#[derive(Default)]
struct FileProgress {
    cursor: Cursor,
    /// The exchange and the instant of the act that it has last, if it was asked just now and knows.
    last: (Option<Id>, Option<values::Instant>),
    /// Whether it wants the file to be sent again.
    is_resend: bool,
}

fn totals(batch: &Parcel) -> Totals {
    (batch.shed.clone(), batch.devices.clone())
}

impl Worker {
    fn run(&mut self) {
        let mut wait = self.plan.retry_delay;
        loop {
            let last = self.is_stopped();
            lock(&self.shared).attempt_since = Some(Instant::now());
            // Nothing outlives a pass but the connection and what was learnt by it, and `failed` drops both.
            let result =
                catch_unwind(AssertUnwindSafe(|| self.poll())).unwrap_or_else(|_| Err(ShipError::panic()));
            lock(&self.shared).attempt_since = None;
            let pause = match result {
                Ok(None) => {
                    self.succeeded();
                    wait = self.plan.retry_delay;
                    jittered(self.plan.poll_interval)
                }
                Ok(Some(left)) => {
                    self.record_error(left, "not shipping all", "what is in the other files is sent");
                    wait = self.plan.retry_delay;
                    jittered(self.plan.poll_interval)
                }
                Err(error) => {
                    self.failed(error);
                    let pause = jittered(wait);
                    wait = (wait * 2).min(self.plan.retry_delay * RETRY_MAX_FACTOR);
                    pause
                }
            };
            if last {
                return;
            }
            // A stop is no reason to leave without a last look.
            self.wait_for(pause);
        }
    }

    /// Waits so long, until it is to stop, or until the store has gone: then only for as long as after a
    /// failure, so that it is known soon whether it is there.
    fn wait_for(&mut self, pause: Duration) {
        let mut until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.stopped.recv_timeout(left.min(IDLE_CHECK_INTERVAL)) != Err(RecvTimeoutError::Timeout)
                || left <= IDLE_CHECK_INTERVAL
            {
                return;
            }
            if self.is_lost() {
                self.client = None;
                until = until.min(Instant::now() + jittered(self.plan.retry_delay));
            }
        }
    }

    /// Whether the other side has closed the connection. Nothing is sent to find out.
    fn is_lost(&mut self) -> bool {
        let Some(client) = &mut self.client else { return false };
        // Long enough for the connection to be looked at; what it says is nothing we listen for.
        let heard = client.notifications().timeout_iter(Duration::from_millis(1)).next();
        heard.is_err() || client.is_closed()
    }

    fn is_stopped(&self) -> bool {
        matches!(self.stopped.try_recv(), Err(mpsc::TryRecvError::Disconnected))
    }

    /// Everything that is there, file by file, the oldest first. What was left because its file cannot be
    /// read.
    fn poll(&mut self) -> Result<Option<ShipError>, ShipError> {
        #[cfg(test)]
        self.plan.panic_if_asked();
        let files = self.feed.files().map_err(|error| ShipError::ledger_unreadable(&error))?;
        let mut seen = Vec::with_capacity(files.len());
        let mut left: Option<ShipError> = None;
        self.count_pending(&files);
        self.refresh()?;
        for path in files {
            match self.ship_file(&path)? {
                Ok(status) => seen.extend(status),
                Err(error) => {
                    left.get_or_insert(error);
                }
            }
        }
        lock(&self.shared).status.files = seen;
        Ok(left)
    }

    /// Everything of one file, if it is still there. The inner error is its own, the outer one the store's.
    fn ship_file(&mut self, path: &Path) -> Result<Result<Option<FileStatus>, ShipError>, ShipError> {
        loop {
            let opened = match self.open_file(path) {
                Ok(Some(opened)) => opened,
                Ok(None) => return Ok(Ok(None)),
                Err(error) => return Ok(Err(error)),
            };
            let origin = opened.origin();
            let FileProgress { cursor: after, last, .. } = self.progress(origin)?;
            // The end is read after the cursor: the other way round a second shipper could have passed it.
            let read = || -> Result<_, ledger::Error> {
                let there = (opened.at(after.exchange)?, opened.act_at(after.act)?);
                Ok((opened.end()?, there, opened.parcel(after, self.plan.batch_max_rows, &self.forgotten)?))
            };
            let (end, there, batch) = match read() {
                Ok(read) => read,
                Err(failure) => return Ok(Err(ShipError::ledger_unreadable(&failure))),
            };
            // It may have grown past it since, with other exchanges or another past.
            let is_other = last.0.zip(there.0).is_some_and(|(last, there)| last.0 != there.0)
                || last.1.zip(there.1).is_some_and(|(last, there)| last.0 != there);
            if after.is_beyond(end) || is_other {
                // Asked again each time: only the store's owner can set it right.
                self.confirmed.remove(&origin);
                return Ok(Err(ShipError::diverged(path, origin, after, end)));
            }
            drop(opened);
            let is_end = batch.is_rest && batch.is_empty();
            let is_news = !batch.is_empty() || self.totals.get(&origin) != Some(&totals(&batch));
            if is_news || (is_end && self.resends.contains(&origin)) {
                match self.send_batch(origin, &batch) {
                    Err(error) if error.scope != Scope::Store => {
                        // Whatever the store said before does not hold any more.
                        self.refreshed_at = None;
                        self.refresh()?;
                        if error.scope == Scope::Batch {
                            continue;
                        }
                        return Ok(Err(error));
                    }
                    delivered => delivered?,
                }
            }
            if batch.taken > 0 && !self.resends.contains(&origin) {
                tracing::warn!(
                    store = %self.plan.address,
                    "{} rows of {} were taken away by retention before this store had them, or it was put back to an \
                     earlier day: it has a gap instead, and their totals",
                    batch.taken,
                    path.display()
                );
            }
            if is_end {
                return Ok(Ok(Some(FileStatus {
                    path: path.to_owned(),
                    origin,
                    shipped: after,
                    complete: true,
                })));
            }
        }
    }

    /// Says what waits before anything is tried, so that a store that is gone shows as lag. What waits in a
    /// file that cannot be read nobody knows; it is told when it is to be sent.
    fn count_pending(&mut self, files: &[PathBuf]) {
        let (mut pending, mut oldest) = (0, None);
        for path in files {
            let Ok(Some(opened)) = self.open_file(path) else { continue };
            let after = self.cursors.get(&opened.origin()).copied().unwrap_or_default();
            let Ok((count, first)) = opened.waiting(after) else { continue };
            pending += count;
            oldest = oldest.into_iter().chain(first).min();
        }
        let mut shared = lock(&self.shared);
        shared.status.pending_rows = pending;
        shared.oldest_us = oldest;
    }

    /// A file that has another name by now is seen under that at the next look.
    fn open_file(&self, path: &Path) -> Result<Option<Opened>, ShipError> {
        match self.feed.open(path) {
            Ok(opened) => Ok(Some(opened)),
            Err(_) if !path.exists() => Ok(None),
            Err(error) => Err(ShipError::ledger_unreadable(&error)),
        }
    }

    fn send_batch(&mut self, origin: Origin, batch: &Parcel) -> Result<(), ShipError> {
        let host = Arc::clone(&self.plan.host);
        send(self.client()?, origin, &host, batch)?;
        self.cursors.insert(origin, batch.next);
        if batch.is_rest {
            self.totals.insert(origin, totals(batch));
        }
        if batch.is_rest && batch.is_empty() {
            self.resends.remove(&origin);
        }
        let mut shared = lock(&self.shared);
        let sent = batch.rows.len() as u64;
        shared.status.rows_total += sent;
        shared.status.pending_rows = shared.status.pending_rows.saturating_sub(sent);
        if let Some(last) = batch.rows.last() {
            shared.oldest_us = (shared.status.pending_rows > 0).then_some(last.ended_us);
        }
        Ok(())
    }

    /// Asks the store anew, if it was not asked for a while: how far it has got with the files that were seen, and
    /// which months it has forgotten.
    fn refresh(&mut self) -> Result<(), ShipError> {
        self.client()?;
        if self.refreshed_at.is_some_and(|at| at.elapsed() < self.plan.poll_interval * REFRESH_POLLS) {
            return Ok(());
        }
        self.confirmed.clear();
        self.resends.clear();
        let seen: Vec<Origin> = self.cursors.keys().copied().collect();
        self.fetched = self.fetch_progress(&seen)?;
        let sql = "SELECT f - date '1970-01-01' FROM tokenmeter.forgotten() AS f";
        let rows = self.client()?.query_typed(sql, &[])?;
        self.forgotten = rows.iter().map(|row| month::of_day(row.get(0))).collect();
        self.refreshed_at = Some(Instant::now());
        Ok(())
    }

    /// How far the store has got with a file, and what it has last of it if that is not checked yet.
    fn progress(&mut self, origin: Origin) -> Result<FileProgress, ShipError> {
        let is_known = self.client.is_some() && self.confirmed.contains(&origin);
        if let Some(cursor) = self.cursors.get(&origin).filter(|_| is_known) {
            return Ok(FileProgress { cursor: *cursor, ..FileProgress::default() });
        }
        let progress = match self.fetched.remove(&origin) {
            Some(progress) => progress,
            None => self.fetch_progress(&[origin])?.remove(&origin).unwrap_or_default(),
        };
        self.cursors.insert(origin, progress.cursor);
        self.confirmed.insert(origin);
        if progress.is_resend {
            self.resends.insert(origin);
        }
        Ok(progress)
    }

    /// Asks the store how far it has got with files; those that it does not know are left out.
    fn fetch_progress(&mut self, origins: &[Origin]) -> Result<HashMap<Origin, FileProgress>, ShipError> {
        if origins.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<Id> = origins.iter().map(|origin| Id(origin.instance)).collect();
        let rows = self.client()?.query_typed(
            "SELECT instance, exchange, energy, correction, act, gap, last, last_act, \
             resend_since IS NOT NULL AS is_resend FROM tokenmeter.file WHERE instance = ANY ($1)",
            &[(&ids, Type::UUID_ARRAY)],
        )?;
        let progress = |row: &Row| {
            let instance = row.get::<_, Id>("instance").0;
            let origin = origins.iter().find(|origin| origin.instance == instance)?;
            let last = (row.get("last"), row.get("last_act"));
            Some((*origin, FileProgress { cursor: send::cursor(row), last, is_resend: row.get("is_resend") }))
        };
        Ok(rows.iter().filter_map(progress).collect())
    }

    fn client(&mut self) -> Result<&mut Client, ShipError> {
        let client = match self.client.take() {
            Some(client) if !client.is_closed() => client,
            _ => {
                let mut client = connect(&self.plan.address)?;
                schema::ensure(&mut client)?;
                // It may be another store than before, or the same from a backup.
                self.refreshed_at = None;
                self.fetched.clear();
                self.cursors.clear();
                self.totals.clear();
                client
            }
        };
        Ok(self.client.insert(client))
    }

    fn succeeded(&mut self) {
        let mut shared = lock(&self.shared);
        if let Some(error) = shared.status.error.take() {
            tracing::info!(store = %self.plan.address, was = error, "shipping again");
        }
        shared.status.up = true;
        shared.status.pending_rows = 0;
        shared.oldest_us = None;
    }

    fn failed(&mut self, error: ShipError) {
        // Whatever the connection was in the middle of, the next one begins anew.
        self.client = None;
        // It may come back as it was on an earlier day: what it had is asked anew before any row may go.
        for file in &mut lock(&self.shared).status.files {
            file.complete = false;
        }
        self.record_error(error, "not shipping", "rows wait in the ledger");
    }

    /// Counts what is wrong, and says it once.
    fn record_error(&self, error: ShipError, effect: &str, rest: &str) {
        let mut shared = lock(&self.shared);
        let status = &mut shared.status;
        status.up = false;
        status.failures[error.reason as usize] += 1;
        if status.error.as_ref() != Some(&error.message) {
            let (message, reason) = (&error.message, error.reason.name());
            tracing::warn!(store = %self.plan.address, reason, "{effect}: {message}; {rest}");
            status.error = Some(error.message);
        }
    }
}

/// Between half and one and a half of it, so that ten thousand do not come at once.
fn jittered(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(wait) as f64 / u64::MAX as f64;
    wait.mul_f64(0.5 + random)
}
