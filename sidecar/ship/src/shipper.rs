//! The shipping thread: polls the ledger, sends new rows, waits, and retries after a failure.
//!
//! Laws: it never blocks the ledger's writer; the cursor of each file is kept in the store and written in the
//! transaction of its rows, so that neither a crash here nor a restored backup there loses or doubles a row;
//! a file that cannot be read does not stop the others.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ledger::export::{Cursor, ExportReader, Opened, Origin, ShipBatch};
use ledger::source::{DeviceTotal, Month};
use ledger::{DailyTotal, month, now_us};
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

/// The settings of shipping.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The ledger: the file of its open month.
    pub ledger: PathBuf,
    /// The store.
    pub address: Address,
    /// The name of the machine or pod, for readers of the store.
    pub host: Arc<str>,
    /// The interval between two polls of the ledger; `POLL_INTERVAL` outside tests.
    pub poll_interval: Duration,
    /// The delay after the first failure; each further failure doubles it, up to sixty times. `RETRY_FIRST_DELAY`
    /// outside tests.
    pub retry_delay: Duration,
    /// Maximum rows of one batch; `BATCH_MAX_ROWS` outside tests and measurements.
    pub batch_max_rows: usize,
    /// Number of polls that end in a panic, for the tests.
    #[cfg(test)]
    pub(crate) panics: Arc<std::sync::atomic::AtomicU32>,
}

impl Plan {
    /// Creates a plan with the default intervals and limits.
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

/// The interval between two polls: ten thousand sidecars make a thousand transactions a second.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum rows in one transaction: about two megabytes.
pub(crate) const BATCH_MAX_ROWS: usize = 4096;

/// The delay after the first failure.
pub(crate) const RETRY_FIRST_DELAY: Duration = Duration::from_secs(1);

/// The interval at which an idle connection is checked, and so the delay until `up` shows a lost one.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Number of polls between two refreshes of the store's state: cursors, files to send again, and forgotten months.
const REFRESH_POLLS: u32 = 6;

/// The longest retry delay, as a multiple of the first.
const RETRY_MAX_FACTOR: u32 = 60;

/// Duration from which an attempt counts as hanging.
const ATTEMPT_MAX_DURATION: Duration = Duration::from_secs(150);

/// A running shipper. Dropping it stops the thread after its current attempt, without waiting.
#[derive(Debug)]
pub struct Shipper {
    shared: Arc<Mutex<Shared>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    status: Status,
    /// End of the oldest unsent row, in microseconds since 1970.
    oldest_us: Option<i64>,
    /// Start of the current attempt.
    attempt_since: Option<Instant>,
}

/// Starts the shipping thread.
///
/// # Errors
/// If the thread cannot be started.
pub fn start(plan: Plan) -> std::io::Result<Shipper> {
    let shared = Arc::new(Mutex::new(Shared::default()));
    let (stop, stopped) = mpsc::channel();
    let mut worker = Worker {
        feed: ExportReader::of(&plan.ledger),
        plan,
        shared: Arc::clone(&shared),
        client: None,
        refreshed_at: None,
        fetched: HashMap::new(),
        cursors: HashMap::new(),
        confirmed: HashSet::new(),
        resends: HashSet::new(),
        forgotten: BTreeSet::new(),
        ended: HashSet::new(),
        totals: HashMap::new(),
        stopped,
    };
    let thread = std::thread::Builder::new().name("ship".into()).spawn(move || worker.run())?;
    Ok(Shipper { shared, stop: Some(stop), thread: Some(thread) })
}

/// A handle that reads the status of a shipper.
#[derive(Clone, Debug)]
pub struct StatusReader {
    shared: Arc<Mutex<Shared>>,
}

impl StatusReader {
    /// Returns the status.
    pub fn status(&self) -> Status {
        let shared = lock(&self.shared);
        let mut status = shared.status.clone();
        if let Some(oldest) = shared.oldest_us {
            status.lag = Duration::from_micros(now_us().saturating_sub(oldest).max(0).unsigned_abs());
        }
        status.up &= shared.attempt_since.is_none_or(|since| since.elapsed() < ATTEMPT_MAX_DURATION);
        status
    }

    /// Returns true if the store has confirmed everything that a file had at the last poll, so that its rows may be
    /// deleted. False for a file that was not polled since the start.
    pub fn has_all(&self, file: &Path) -> bool {
        lock(&self.shared).status.files.iter().any(|seen| seen.path == file && seen.complete)
    }
}

impl Shipper {
    /// Returns the status.
    pub fn status(&self) -> Status {
        self.status_reader().status()
    }

    /// Returns a handle that reads the status.
    pub fn status_reader(&self) -> StatusReader {
        StatusReader { shared: Arc::clone(&self.shared) }
    }

    /// Polls the ledger once more, sends what is new, and stops. Returns false if that took longer than `within`;
    /// the rest is sent after the next start.
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
    feed: ExportReader,
    shared: Arc<Mutex<Shared>>,
    client: Option<Client>,
    /// Time of the last refresh over this connection.
    refreshed_at: Option<Instant>,
    /// Progress fetched by the refresh, of files not yet compared with it.
    fetched: HashMap<Origin, FileProgress>,
    /// The cursors that the store last reported.
    cursors: HashMap<Origin, Cursor>,
    /// Files whose cursor was reported since the last refresh.
    confirmed: HashSet<Origin>,
    /// Files that the store requests again.
    resends: HashSet<Origin>,
    /// Months whose rows the store does not accept.
    forgotten: BTreeSet<Month>,
    /// Files of which the store knows that they are ended.
    ended: HashSet<Origin>,
    /// The totals without rows that were last sent.
    totals: HashMap<Origin, Totals>,
    stopped: Receiver<()>,
}

type Totals = (Vec<DailyTotal>, Vec<DeviceTotal>);

/// The store's progress with a file.
#[derive(Default)]
struct FileProgress {
    cursor: Cursor,
    /// The last exchange, and the instant of the last act, that the store has; set only right after a fetch.
    last: (Option<Id>, Option<values::Instant>),
    /// True if the store requests the file again.
    is_resend: bool,
}

fn totals(batch: &ShipBatch) -> Totals {
    (batch.shed.clone(), batch.devices.clone())
}

impl Worker {
    fn run(&mut self) {
        let mut wait = self.plan.retry_delay;
        loop {
            let last = self.is_stopped();
            lock(&self.shared).attempt_since = Some(Instant::now());
            // Only the connection and the state fetched over it outlive a poll, and `failed` drops both.
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
                    self.record_error(left, "not shipping all", "the other files are shipped");
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
            // A stop ends the wait, not the loop: one last poll follows.
            self.wait_for(pause);
        }
    }

    /// Waits for `pause`, or until the shipper stops. After a lost connection the wait is as short as after a
    /// failure, so that the status is soon right.
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

    /// Returns true if the server has closed the connection. Sends nothing.
    fn is_lost(&mut self) -> bool {
        let Some(client) = &mut self.client else { return false };
        // Polls the socket; notifications themselves are ignored.
        let received = client.notifications().timeout_iter(Duration::from_millis(1)).next();
        received.is_err() || client.is_closed()
    }

    fn is_stopped(&self) -> bool {
        matches!(self.stopped.try_recv(), Err(mpsc::TryRecvError::Disconnected))
    }

    /// Sends everything new, file by file, the oldest first. Returns the first error of a file that was left out.
    fn poll(&mut self) -> Result<Option<ShipError>, ShipError> {
        #[cfg(test)]
        self.plan.panic_if_asked();
        let files = self.feed.files().map_err(|error| ShipError::ledger_unreadable(&error))?;
        let mut seen = Vec::with_capacity(files.len());
        let mut left: Option<ShipError> = None;
        let origins = self.count_pending(&files);
        self.refresh()?;
        for path in files {
            match self.ship_file(&path, &origins)? {
                Ok(status) => seen.extend(status),
                Err(error) => {
                    left.get_or_insert(error);
                }
            }
        }
        lock(&self.shared).status.files = seen;
        Ok(left)
    }

    /// Sends everything new of one file, if it still exists. `origins` are the ledger's files, if all are known. The inner
    /// error is the file's, the outer one the store's.
    fn ship_file(
        &mut self,
        path: &Path,
        origins: &[Origin],
    ) -> Result<Result<Option<FileStatus>, ShipError>, ShipError> {
        loop {
            let opened = match self.open_file(path) {
                Ok(Some(opened)) => opened,
                Ok(None) => return Ok(Ok(None)),
                Err(error) => return Ok(Err(error)),
            };
            let origin = opened.origin();
            // The open file is the last of the list, and at the end of a month not always the latest.
            let before = origins.iter().filter(|other| other.month < origin.month);
            let previous = before.max_by_key(|other| other.month).copied();
            let FileProgress { cursor: after, last, .. } = self.progress(origin)?;
            // The end is read after the cursor: in the other order a second shipper could have passed it.
            let read = || -> Result<_, ledger::Error> {
                let there = (opened.at(after.exchange)?, opened.act_at(after.act)?);
                Ok((opened.end()?, there, opened.batch(after, self.plan.batch_max_rows, &self.forgotten)?))
            };
            let (end, there, batch) = match read() {
                Ok((end, there, batch)) => (end, there, ShipBatch { previous, ..batch }),
                Err(failure) => return Ok(Err(ShipError::ledger_unreadable(&failure))),
            };
            // A restored file may have grown past the cursor with other exchanges or acts.
            let is_other = last.0.zip(there.0).is_some_and(|(last, there)| last.0 != there.0)
                || last.1.zip(there.1).is_some_and(|(last, there)| last.0 != there);
            if after.is_beyond(end) || is_other {
                // Fetched again at each poll, because the store's owner may have fixed it.
                self.confirmed.remove(&origin);
                return Ok(Err(ShipError::diverged(path, origin, after, end)));
            }
            drop(opened);
            let is_end = batch.is_rest && batch.is_empty();
            // Totals without rows have no cursor: they are compared with those sent last. A requested file is sent to
            // its empty end, which tells the store that it is complete.
            let is_news = !batch.is_empty() || self.totals.get(&origin) != Some(&totals(&batch));
            let is_ended = is_end && batch.is_clean && !self.ended.contains(&origin);
            if is_news || is_ended || (is_end && self.resends.contains(&origin)) {
                match self.send_batch(origin, &batch) {
                    Err(error) if error.scope != Scope::Store => {
                        // The store has refused the batch, so the fetched state is out of date. It is fetched before
                        // the next attempt, which would otherwise send the same batch.
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
                    "{} rows of {} were removed by retention before they were shipped, or the store was restored from a \
                     backup: the store has a gap and their totals instead",
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

    /// Counts unsent rows before an attempt, so that a missing store shows as lag. A file that cannot be read
    /// is left out here and reported when it is sent. Returns the identities of the files; none if one cannot be read,
    /// which may be the month before any other.
    fn count_pending(&mut self, files: &[PathBuf]) -> Vec<Origin> {
        let (mut pending, mut oldest) = (0, None);
        let mut origins = Vec::with_capacity(files.len());
        for path in files {
            let Ok(Some(opened)) = self.open_file(path) else { continue };
            origins.push(opened.origin());
            let after = self.cursors.get(&opened.origin()).copied().unwrap_or_default();
            let Ok((count, first)) = opened.waiting(after) else { continue };
            pending += count;
            oldest = oldest.into_iter().chain(first).min();
        }
        let mut shared = lock(&self.shared);
        shared.status.pending_rows = pending;
        shared.oldest_us = oldest;
        if origins.len() == files.len() { origins } else { Vec::new() }
    }

    /// Opens a file; `None` if it was renamed, because the next poll finds it under its new name.
    fn open_file(&self, path: &Path) -> Result<Option<Opened>, ShipError> {
        match self.feed.open(path) {
            Ok(opened) => Ok(Some(opened)),
            Err(_) if !path.exists() => Ok(None),
            Err(error) => Err(ShipError::ledger_unreadable(&error)),
        }
    }

    fn send_batch(&mut self, origin: Origin, batch: &ShipBatch) -> Result<(), ShipError> {
        let host = Arc::clone(&self.plan.host);
        send(self.client()?, origin, &host, batch)?;
        // Committed: the store has this cursor too.
        self.cursors.insert(origin, batch.next);
        if batch.is_rest {
            self.totals.insert(origin, totals(batch));
        }
        let is_end = batch.is_rest && batch.is_empty();
        if is_end {
            self.resends.remove(&origin);
        }
        if is_end && batch.is_clean {
            self.ended.insert(origin);
        } else {
            self.ended.remove(&origin);
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

    /// Refreshes the store's state if it is old: its progress with known files, and the forgotten months.
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

    /// Returns the store's progress with a file, with its last rows if they are not compared yet.
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

    /// Fetches the store's progress with files; unknown files are left out.
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
                // It may be another store, or the same one restored from a backup: nothing known of it still holds.
                self.refreshed_at = None;
                self.fetched.clear();
                self.cursors.clear();
                self.ended.clear();
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
        // The connection may be within a transaction; a new one is clean.
        self.client = None;
        // The store may return restored from a backup, so no row may be deleted before its cursors are fetched again.
        for file in &mut lock(&self.shared).status.files {
            file.complete = false;
        }
        self.record_error(error, "not shipping", "rows wait in the ledger");
    }

    /// Counts an error, and logs it if it is new.
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

/// Returns 0.5 to 1.5 times `wait`, so that thousands of sidecars do not connect at once.
fn jittered(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(wait) as f64 / u64::MAX as f64;
    wait.mul_f64(0.5 + random)
}
