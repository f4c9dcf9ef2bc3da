//! The writer thread: takes batches from the queue and enters them into the files of their months.
//!
//! Laws: the items of a batch stay in memory until they are on the disk. After a fault the files are opened again and
//! the whole batch is entered again: rows have ids, the rest is protected by the batch's token, so nothing counts
//! twice. A row that no file can hold is counted as lost and delays no other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use price::{Charge, Rate};
use rusqlite::types::ValueRef;

use crate::error::{Error, Fault};
use crate::month_files::{MonthFiles, gone, heartbeat};
use crate::month_part::MonthPart;
use crate::overflow::Loss;
use crate::queue::{Batch, End, Item, Queue};
use crate::redirects::Redirect;
use crate::retain::{self, Next};
use crate::running::MayForget;
use crate::source::Month;
use crate::status::Status;
use crate::table::{ENERGY, EXCHANGE};
use crate::txn::Txn;
use crate::yield_policy::YieldPolicy;
use crate::{Calendar, Clock, Plan, month, utc};
use crate::{file, files};

/// The interval of heartbeats (fact `alive_us`) while there is nothing else to write.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// The first pause after a fault, and the longest.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The pause between two steps of retention, and between two searches for old rows.
const RETAIN_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3_600));

/// The pause while old rows may not be deleted yet, and the number of pauses after which that is logged.
const UNSHIPPED_PAUSE: (Duration, u32) = (Duration::from_secs(60), 10);

/// The state that the writer shares with its callers.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub queue: Queue,
    status: Mutex<Status>,
    calendar: Mutex<Calendar>,
}

impl Shared {
    pub(crate) fn status(&self) -> MutexGuard<'_, Status> {
        // The status is whole after each statement, so that a panic under the lock leaves nothing to repair.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calendar of the ledger.
    pub(crate) fn calendar(&self) -> MutexGuard<'_, Calendar> {
        self.calendar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The batch that is being entered.
struct PendingBatch {
    batch: Batch,
    /// The batch's own id, written into each file in the transaction of its items. If a commit succeeded although it
    /// returned an error, the retry finds the token and does not add totals again, which have no id.
    token: [u8; 16],
    /// The months whose part is on the disk.
    done: BTreeSet<Month>,
    /// True if items are entered one by one, because no file can hold one of them.
    one_by_one: bool,
}

/// The state of the writer thread.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    month_files: MonthFiles,
    yield_policy: YieldPolicy,
    who: Arc<str>,
    keep_days: u32,
    may_forget: Option<MayForget>,
    /// The number of checks in a row that found old rows that may not be deleted yet.
    held_back: u32,
    clock: Clock,
    /// The number of tokens made, and the part that makes them unique among processes.
    tokens: u64,
    nonce: [u8; 8],
}

impl Writer {
    pub(crate) fn new(plan: Plan, shared: Arc<Shared>) -> Self {
        let seed = format!("{} {} {:?}", (plan.clock)(), std::process::id(), Instant::now());
        let mut nonce = [0; 8];
        nonce.copy_from_slice(&blake3::hash(seed.as_bytes()).as_bytes()[..8]);
        let calendar = shared.calendar().clone();
        Self {
            shared,
            month_files: MonthFiles::new(plan.path, plan.who.to_string(), calendar)
                .shipping_to(plan.ships_to),
            yield_policy: YieldPolicy::new(Duration::ZERO),
            who: plan.who,
            keep_days: plan.keep_days,
            may_forget: plan.may_forget,
            held_back: 0,
            clock: plan.clock,
            tokens: 0,
            nonce,
        }
    }

    /// Runs until the end is requested and all items are entered, or the time for that is over.
    pub(crate) fn run(mut self) {
        let mut pending: Option<PendingBatch> = None;
        let mut pause = RETRY_PAUSE.0;
        let mut retain_at = Instant::now();
        loop {
            // Read before the queue: every item that was put before the end was requested is still taken.
            let end = self.shared.queue.requested_end();
            #[cfg(test)]
            if end == Some(End::Now) {
                // Dropping would close the files in order, unlike a crash.
                std::mem::forget(self);
                return;
            }
            if pending.is_none() {
                // Without an open file the next step tries to open one, also if no row comes.
                let mut wait =
                    if self.month_files.open_month().is_some() { HEARTBEAT_INTERVAL } else { Duration::ZERO };
                if self.keep_days > 0 {
                    wait = wait.min(retain_at.saturating_duration_since(Instant::now()));
                }
                pending = self.shared.queue.take(wait).map(|batch| self.pending_batch(batch));
            }
            let done = pending.is_none() && end.is_some();
            let result = self.step(&mut pending, done);
            self.publish(&result);
            match result {
                Ok(()) => {
                    pause = RETRY_PAUSE.0;
                    if done {
                        return;
                    }
                    if self.keep_days > 0 && Instant::now() >= retain_at {
                        retain_at = Instant::now() + self.retain();
                    }
                }
                Err(error) if matches!(end, Some(End::By(by)) if Instant::now() >= by || self.is_idle(&pending, &error)) =>
                {
                    self.give_up(pending);
                    return;
                }
                // `pending` stays, and the queue holds what comes meanwhile.
                Err(_) => {
                    self.shared.queue.pause(pause);
                    pause = (pause * 2).min(RETRY_PAUSE.1);
                }
            }
        }
    }

    /// Returns true if another process has the ledger and this one has nothing to enter, so that it can end at once.
    fn is_idle(&self, pending: &Option<PendingBatch>, error: &Error) -> bool {
        error.fault == Fault::Locked
            && self.month_files.open_month().is_none()
            && pending.as_ref().is_none_or(|pending| pending.batch.counts() == (0, 0))
            && self.shared.queue.waiting().items == 0
    }

    fn pending_batch(&mut self, batch: Batch) -> PendingBatch {
        self.month_files.begin_batch();
        self.tokens += 1;
        let mut token = [0; 16];
        token[..8].copy_from_slice(&self.nonce);
        token[8..].copy_from_slice(&self.tokens.to_le_bytes());
        PendingBatch { batch, token, done: BTreeSet::new(), one_by_one: false }
    }

    /// Takes one step: enters the pending batch, or writes a heartbeat, or closes the files at the end.
    fn step(&mut self, pending: &mut Option<PendingBatch>, end: bool) -> Result<(), Error> {
        let now_us = (self.clock)();
        self.month_files.first_waiting_us = self.shared.queue.first_us().0;
        self.month_files.ready(now_us)?;
        self.publish_calendar();
        if end {
            return self.month_files.end(now_us);
        }
        let Some(taken) = pending else { return self.month_files.tick(now_us) };
        let began = Instant::now();
        self.yield_policy = YieldPolicy::new(self.shared.queue.waiting().lag);
        self.enter(taken, now_us)?;
        // Every month of the batch is on the disk. Only now it may be dropped from memory.
        *pending = None;
        self.shared.queue.done();
        let mut status = self.shared.status();
        status.commits_total += 1;
        status.commit_time += began.elapsed();
        drop(status);
        // After the acknowledgement, which a checkpoint would only delay: the rows are on the disk, in the log.
        self.month_files.checkpoint_long_logs(now_us)
    }

    /// Publishes the calendar of the files if it differs from the one that was read when this process began.
    fn publish_calendar(&self) {
        let mut calendar = self.shared.calendar();
        if *calendar != self.month_files.calendar {
            *calendar = self.month_files.calendar.clone();
            tracing::warn!(
                "the days of the ledger are those of {calendar} from now on: another process changed its time zones, \
                 or they could not be read before; restart this process, so that budgets use them, too"
            );
        }
    }

    /// Enters a pending batch into its months and acknowledges the rows. A batch with an item that no file can hold is
    /// entered item by item.
    fn enter(&mut self, pending: &mut PendingBatch, now_us: i64) -> Result<(), Error> {
        if !pending.one_by_one {
            // Once the open month, which is last, has its part.
            self.month_files.first_waiting_us = self.shared.queue.first_us().1;
            match self.enter_whole(&pending.batch, &pending.token, &mut pending.done, now_us) {
                Ok(rows) => {
                    self.acknowledge(rows);
                    return Ok(());
                }
                Err(error) if error.of_row => {}
                Err(error) => return Err(error),
            }
            self.month_files.first_waiting_us = self.shared.queue.first_us().0;
            // For all further attempts: the batch as a whole would fail again.
            pending.one_by_one = true;
            pending.batch.items.make_contiguous().sort_by_key(Item::rank);
        }
        self.enter_items(pending, now_us)?;
        self.enter_overflow(pending, now_us)
    }

    /// Enters the items of the pending batch one by one, and removes each that is entered.
    fn enter_items(&mut self, pending: &mut PendingBatch, now_us: i64) -> Result<(), Error> {
        while let Some(item) = pending.batch.items.front() {
            let one = Batch { items: [item.clone()].into(), ..Batch::default() };
            // The number of remaining items makes the token of this one, the same at each attempt.
            let token = item_token(&pending.token, 0xff, pending.batch.items.len());
            // A copy of `done`: its months have this item, and another month is not done after one of its items.
            match self.enter_whole(&one, &token, &mut pending.done.clone(), now_us) {
                Ok(rows) => self.acknowledge(rows),
                Err(error) if error.of_row => {
                    tracing::error!(reason = %error, "a row cannot be entered into the ledger; it is counted as lost");
                    self.shared.queue.lose(item);
                }
                Err(error) => return Err(error),
            }
            pending.batch.items.pop_front();
        }
        Ok(())
    }

    /// Enters the overflow totals of the pending batch, one by one if no file can hold them all, and at last the gaps.
    fn enter_overflow(&mut self, pending: &mut PendingBatch, now_us: i64) -> Result<(), Error> {
        match self.enter_whole(&pending.batch, &pending.token, &mut pending.done, now_us) {
            Err(error) if error.of_row => {}
            other => return other.map(|_| ()),
        }
        while let Some(one) = pending.batch.shed.one() {
            let place = pending.batch.shed.totals().count() + pending.batch.shed.devices().count();
            let batch = Batch { shed: one, ..Batch::default() };
            let token = item_token(&pending.token, 0xfe, place);
            match self.enter_whole(&batch, &token, &mut pending.done.clone(), now_us) {
                Ok(_) => pending.batch.shed.without(&batch.shed),
                Err(error) if error.of_row => {
                    tracing::error!(reason = %error, "totals cannot be entered into the ledger; their rows are counted as lost");
                    self.shared.queue.lose_all(pending.batch.shed.lose_one(&batch.shed));
                }
                Err(error) => return Err(error),
            }
        }
        self.enter_whole(&pending.batch, &pending.token, &mut pending.done, now_us).map(|_| ())
    }

    /// Enters a batch: one transaction for each month, the open month last. Months in `done` are skipped, and others
    /// are added to it. Returns the number of rows in the batch.
    ///
    /// Items of a month that is closed, or cannot be written for long, go to the open month. An error leaves the
    /// remaining months for the next attempt.
    fn enter_whole(
        &mut self,
        batch: &Batch,
        token: &[u8; 16],
        done: &mut BTreeSet<Month>,
        now_us: i64,
    ) -> Result<u64, Error> {
        let Some(open) = self.month_files.open_month() else {
            return Err(Error::new(Fault::Other, "no month is open"));
        };
        let mut parts: BTreeMap<Month, MonthPart<'_>> = BTreeMap::new();
        for item in &batch.items {
            match item {
                Item::Audit(act) => parts.entry(open).or_default().audit.push(act),
                Item::Row(row) => parts.entry(month::of_day(row.day())).or_default().rows.push(row),
                Item::Energy(row) => parts.entry(month::of_day(row.key.day)).or_default().energies.push(row),
                Item::Device(line) => parts.entry(month::of_day(line.day)).or_default().devices.push(line),
            }
        }
        for (key, sums) in batch.shed.totals() {
            parts.entry(month::of_day(key.day)).or_default().totals.push((key, sums));
        }
        for line in batch.shed.devices() {
            parts.entry(month::of_day(line.day)).or_default().devices.push(line);
        }
        let gaps: Vec<_> = batch.shed.gaps().collect();
        if !gaps.is_empty() {
            parts.entry(open).or_default();
        }
        let rates: HashMap<[u8; 16], &Rate> = batch.shed.rates().map(|rate| (rate.id, rate)).collect();
        let mut redirected: Option<MonthPart<'_>> = None;
        // The open month comes last, because it takes the items of redirected months.
        let mut order: Vec<Month> = parts.keys().copied().filter(|month| *month != open).collect();
        order.push(open);
        for month in order {
            let mut part = parts.remove(&month).unwrap_or_default();
            if month == open {
                part.take(redirected.take());
                part.gaps = &gaps;
            }
            if part.is_empty() || done.contains(&month) {
                continue;
            }
            if month != open && self.month_files.target(month) != month {
                redirected.get_or_insert_default().take(Some(self.not_entered(month, part, token)));
                continue;
            }
            let entered = match self.enter_part(month, &part, &rates, token, now_us) {
                // Only this file is quarantined: the open month is sound.
                Err(error) if month != open && error.fault == Fault::Corrupt => {
                    self.month_files.quarantine_past(month, &error, now_us)?;
                    if self.month_files.target(month) == month {
                        self.enter_part(month, &part, &rates, token, now_us)
                    } else {
                        Ok(false)
                    }
                }
                other => other,
            };
            match entered {
                Ok(true) => {
                    self.month_files.written(month);
                    done.insert(month);
                }
                Ok(false) if month != open => {
                    self.month_files.redirect(month, Redirect::Closed);
                    redirected.get_or_insert_default().take(Some(self.not_entered(month, part, token)));
                }
                Ok(false) => return Err(crate::txn::closed(month)),
                // The open month could not take such a row either, and a full disk has no room for it there.
                Err(error) if month != open && !error.of_row && error.fault != Fault::Full => {
                    let error = error.of(month::name(month)).elsewhere();
                    // At the end there is no later attempt: billed in the open month is better than lost.
                    if self.month_files.waits(month) && self.shared.queue.requested_end().is_none() {
                        return Err(error);
                    }
                    tracing::warn!(
                        month = month::name(month), reason = %error,
                        "a past month of the ledger cannot be written; its rows go to the open month"
                    );
                    self.shared.status().fault(error.fault);
                    self.month_files.redirect(month, Redirect::Unwritable);
                    redirected.get_or_insert_default().take(Some(self.not_entered(month, part, token)));
                }
                Err(error) => return Err(error),
            }
        }
        self.month_files.update.gaps += gaps.len() as u64;
        Ok(batch.items.iter().filter(|item| item.is_row()).count() as u64)
    }

    /// Returns the items of a redirected month that are not in its file. An earlier attempt may have entered some
    /// before the month was closed: rows are found by their ids, and the token shows that the file has the whole part.
    fn not_entered<'b>(&self, month: Month, mut part: MonthPart<'b>, token: &[u8; 16]) -> MonthPart<'b> {
        let Ok(file) = self.month_files.open_past(month) else { return part };
        if file::bytes(&file.connection, "batch").is_ok_and(|last| last.as_deref() == Some(token)) {
            return MonthPart::default();
        }
        let has = |table, id: &[u8; 16]| file::has(&file.connection, table, id).unwrap_or(false);
        part.rows.retain(|row| !has(&EXCHANGE, &row.id.0));
        part.energies.retain(|row| !has(&ENERGY, &row.id.0));
        part
    }

    /// Enters the items of one month in one transaction. Returns false if the month is closed.
    fn enter_part(
        &mut self,
        month: Month,
        part: &MonthPart<'_>,
        shed_rates: &HashMap<[u8; 16], &Rate>,
        token: &[u8; 16],
        now_us: i64,
    ) -> Result<bool, Error> {
        // The file of a closed month is read-only, so it is not opened for writing.
        if self.month_files.is_closed(month)? {
            return Ok(false);
        }
        let entered_us = self.month_files.entered_us(now_us);
        let mut txn = Txn::begin(self.month_files.file(month, now_us)?)?;
        // Another process may have closed it since; from here on the transaction excludes that.
        if txn.is_closed()? {
            return Ok(false);
        }
        if txn.token()?.as_deref() == Some(token) {
            // An earlier attempt committed this part and saw an error.
            drop(txn);
        } else {
            let mut rates: BTreeMap<[u8; 16], &Rate> = BTreeMap::new();
            for row in &part.rows {
                if let Charge::Priced { rate, .. } = &row.charge {
                    rates.insert(rate.id, rate);
                }
            }
            for id in part.totals.iter().filter_map(|(key, _)| key.rate) {
                rates.extend(shed_rates.get(&id).map(|rate| (id, *rate)));
            }
            // In this order: a row refers to its rate, and GPU use to its row.
            txn.rates(rates.into_values())?;
            txn.exchanges(part.rows.iter().copied().inspect(|_| _ = self.yield_policy.row()))?;
            txn.energies(part.energies.iter().copied().inspect(|_| _ = self.yield_policy.row()))?;
            if !part.devices.is_empty() {
                txn.devices(part.devices.iter().copied())?;
            }
            part.totals.iter().for_each(|(key, sums)| txn.total(key, sums));
            for act in &part.audit {
                txn.audit(act.at_us, &act.what, &act.who, &act.detail)?;
            }
            for gap in part.gaps {
                txn.gap(gap)?;
            }
            txn.fact("batch", ValueRef::Blob(token))?;
            heartbeat(&txn, now_us, entered_us)?;
            txn.commit()?;
            self.month_files.heartbeat_written(month, now_us);
        }
        // A commit succeeds also in a file that was removed or renamed meanwhile, where no later reader finds the rows.
        if !self.month_files.is_there(month) {
            return Err(gone(self.month_files.path()));
        }
        Ok(true)
    }

    /// Publishes rows as acknowledged, together with the gaps and faults before them.
    fn acknowledge(&mut self, rows: u64) {
        let update = std::mem::take(&mut self.month_files.update);
        let mut status = self.shared.status();
        update.apply(&mut status);
        status.rows_total += rows;
    }

    /// Publishes the status after a step, and recovers from a fault.
    fn publish(&mut self, result: &Result<(), Error>) {
        let update = std::mem::take(&mut self.month_files.update);
        let mut status = self.shared.status();
        update.apply(&mut status);
        status.bytes = files::length(self.month_files.path());
        status.wal_bytes = files::length(&files::beside(self.month_files.path(), "-wal"));
        match result {
            Ok(()) => {
                let fault_message = self.month_files.fault_message().map(str::to_owned);
                match &fault_message {
                    None if status.fault_message.is_some() => {
                        tracing::info!("the ledger can be written again")
                    }
                    Some(message) if status.fault_message != fault_message => {
                        tracing::error!("{message}; rows are entered meanwhile");
                    }
                    _ => {}
                }
                status.fault_message = fault_message;
                status.up = true;
            }
            Err(error) => {
                status.fault(error.fault);
                let message = format!("ledger {}: {error}", self.month_files.path().display());
                if status.fault_message.as_ref() != Some(&message) {
                    tracing::error!(
                        fault = error.fault.name(),
                        "{message}; requests are still forwarded, and rows wait in memory"
                    );
                }
                status.fault_message = Some(message);
                status.up = false;
            }
        }
        drop(status);
        match result {
            // Another process holds the file for a moment, so the next attempt uses the connection as it is.
            Err(error) if error.fault == Fault::Locked && self.month_files.open_month().is_some() => {}
            // The fault is in the file of a past month, and the open one stays. An I/O error is one of the disk, after
            // which no file on it is trusted.
            Err(error) if error.elsewhere && error.fault != Fault::Io => {}
            Err(error) if error.fault == Fault::Corrupt && self.month_files.open_month().is_some() => {
                let now_us = (self.clock)();
                if let Err(error) = self.month_files.quarantine_open(error, now_us) {
                    tracing::error!(reason = %error, "the damaged ledger file cannot be quarantined yet");
                }
            }
            Err(error) => self.month_files.fail(error.fault),
            Ok(()) => {}
        }
    }

    /// Takes a step of retention. Returns the pause before the next.
    fn retain(&mut self) -> Duration {
        let now_us = (self.clock)();
        let plan = self.may_forget.as_deref();
        let may_forget = |file: &Path| plan.is_none_or(|may_forget| may_forget(file));
        let calendar = &self.month_files.calendar;
        let next =
            retain::step(self.month_files.path(), calendar, self.keep_days, &may_forget, &self.who, now_us);
        let held_back = std::mem::take(&mut self.held_back);
        match next {
            Ok(Next::Step) => RETAIN_PAUSE.0,
            Ok(Next::Nothing) => RETAIN_PAUSE.1,
            Ok(Next::Wait) => {
                self.held_back = held_back.saturating_add(1);
                if self.held_back == UNSHIPPED_PAUSE.1 {
                    tracing::warn!(
                        "old rows of the ledger are kept beyond the retention time, because they are not shipped yet \
                         or their usage events are not accepted"
                    );
                }
                UNSHIPPED_PAUSE.0
            }
            Err(error) => {
                self.shared.status().fault(error.fault);
                tracing::warn!(reason = %error, "old rows of the ledger cannot be deleted");
                RETAIN_PAUSE.1
            }
        }
    }

    /// Counts all waiting items as lost, when the time for the end is over and the disk still fails.
    fn give_up(&mut self, pending: Option<PendingBatch>) {
        let mut taken = Batch::default();
        if let Some(PendingBatch { batch, done, .. }) = pending {
            taken = batch;
            let all = taken.counts().0;
            taken
                .items
                .retain(|item| !matches!(item, Item::Row(row) if done.contains(&month::of_day(row.day()))));
            self.acknowledge(all - taken.counts().0);
        }
        self.shared.queue.lose_all(taken.counts());
        let waiting = self.shared.queue.abandon();
        let mut lost = taken.loss();
        lost.join(waiting.loss());
        let is_noted = self.month_files.note_end(lost);
        let Loss { span, cost } = lost;
        let (rows, others) = (span.rows, taken.counts().1 + waiting.counts().1);
        if rows + others == 0 {
            return;
        }
        self.shared.status().is_loss_unnoted = rows > 0 && !is_noted;
        let gap = match (span.first_us(), is_noted) {
            (None, _) => String::new(),
            (Some(_), true) => "; the next start enters a gap for the rows".to_owned(),
            (Some(from_us), false) => format!(
                "; the rows ended from {} to {}, and this cannot be noted: the next start enters a gap only if this process \
                 had opened the ledger",
                utc(from_us),
                utc(span.until_us)
            ),
        };
        tracing::error!(
            rows,
            others,
            cost_pico = cost.cost_pico.map_or("unknown".to_owned(), |pico| pico.to_string()),
            unpriced_rows = cost.unpriced_rows,
            "the ledger could not be written before the process ended, so these rows and other items are lost{gap}"
        );
    }
}

/// Returns the token of one item of a pending batch that is entered item by item.
fn item_token(token: &[u8; 16], kind: u8, place: usize) -> [u8; 16] {
    let mut token = *token;
    token[0] ^= kind;
    token[1..5].copy_from_slice(&u32::try_from(place).unwrap_or(0).to_le_bytes());
    token
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
