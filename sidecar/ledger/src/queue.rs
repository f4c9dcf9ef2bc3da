//! The queue of items that wait for the disk, and the overflow totals of those for which it has no room.
//!
//! Laws: entering an item never waits for the disk. A batch that the writer took counts as waiting until it is
//! acknowledged, so that the bound holds however long the disk fails.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Row;
use crate::audit_event::AuditEvent;
use crate::energy::EnergyRow;
use crate::lost_cost::LostCost;
use crate::overflow::{Loss, OverflowTotals, Span};
use crate::source::DeviceTotal;

/// The most items that wait; one is about a kilobyte.
pub(crate) const QUEUE_MAX_ITEMS: usize = 65_536;

/// The number of waiting items for which a commit begins at once.
const COMMIT_MIN_ITEMS: usize = 256;

/// The longest wait of the first item if fewer wait.
const COMMIT_MAX_DELAY: Duration = Duration::from_millis(50);

/// The most items of one commit.
const COMMIT_MAX_ITEMS: usize = 4_096;

/// The most rows of anonymous failures in a time; the others of that time go into totals, which are entered at its end.
const FAILURES_MAX_ROWS: u32 = 60;
const FAILURES_TIME: Duration = Duration::from_secs(60);

/// An item to enter.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Row(Box<Row>),
    Energy(Box<EnergyRow>),
    Device(Box<DeviceTotal>),
    Audit(Box<AuditEvent>),
}

impl Item {
    /// Returns true if it is a row.
    pub(crate) fn is_row(&self) -> bool {
        matches!(self, Self::Row(_))
    }

    /// Returns the rank of the item if items are entered one by one: a row before its GPU use.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Row(_) => 0,
            Self::Energy(_) => 1,
            Self::Device(_) => 2,
            Self::Audit(_) => 3,
        }
    }
}

/// The items of one commit.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub items: VecDeque<Item>,
    pub shed: OverflowTotals,
}

impl Batch {
    /// Returns the number of rows, as items and in totals, and of other items.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let rows = self.items.iter().filter(|item| item.is_row()).count() as u64;
        let others = self.items.len() as u64 - rows;
        (rows + self.shed.rows().0, others + self.shed.others())
    }

    /// Returns its rows, also those that are in totals or lost, as a loss.
    pub(crate) fn loss(&self) -> Loss {
        let mut loss = Loss { span: self.shed.span(), cost: self.shed.cost() };
        for item in &self.items {
            if let Item::Row(row) = item {
                loss.add(row.ended_us, 1, LostCost::of_row(&row.charge));
            }
        }
        loss
    }
}

/// The way in which the writer is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Enter all that waits, until this time.
    By(Instant),
    /// Stop at once, as after a kill.
    #[cfg(test)]
    Now,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    items: VecDeque<(Instant, Item)>,
    /// The number of items that the writer took and has not acknowledged, and the time from which the first of them
    /// waits.
    held: usize,
    held_since: Option<Instant>,
    held_counts: (u64, u64),
    /// Its rows, in case the writer panics.
    held_rows: Loss,
    /// The rows in `items`. Rows that were taken since it had none may extend its times.
    span: Span,
    shed: OverflowTotals,
    failures: Failures,
    /// The time from which the first item in the overflow totals waits.
    shed_since: Option<Instant>,
    shed_rows: u64,
    lost_others: u64,
    lost_rows: u64,
    end: Option<End>,
}

/// The anonymous failures of a time.
#[derive(Debug, Default)]
struct Failures {
    since: Option<Instant>,
    rows: u32,
    totals: OverflowTotals,
}

/// The state of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub items: u64,
    pub lag: Duration,
    pub shed_rows: u64,
    /// Energies, idle shares and audit events of which nothing is stored.
    pub lost_others: u64,
    pub lost_rows: u64,
}

impl Queue {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // The state is whole after each statement, so that a panic under the lock leaves nothing to repair.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item: to the queue, or to the overflow totals if that is full.
    pub(crate) fn put(&self, item: Item) {
        let mut inner = self.inner();
        if inner.end.is_some() {
            // The writer takes no more.
            inner.lose_in_gap(&item);
            return;
        }
        if inner.items.len() + inner.held >= QUEUE_MAX_ITEMS {
            inner.shed(&item);
            return;
        }
        if let Item::Row(row) = &item {
            inner.span.add(row.ended_us, 1);
        }
        inner.items.push_back((Instant::now(), item));
        // Two notifications per batch suffice: for the first the writer starts its timer.
        if inner.items.len() == 1 || inner.items.len() == COMMIT_MIN_ITEMS {
            self.more.notify_all();
        }
    }

    /// Adds an anonymous failure: as a row, or to totals if there were many.
    pub(crate) fn put_failure(&self, row: Box<Row>) {
        let mut inner = self.inner();
        if inner.failures.is_over() {
            inner.enter_failures();
        }
        let has_ended = inner.end.is_some();
        let failures = &mut inner.failures;
        failures.since.get_or_insert_with(Instant::now);
        if failures.rows < FAILURES_MAX_ROWS || has_ended {
            failures.rows += 1;
            drop(inner);
            return self.put(Item::Row(row));
        }
        if failures.totals.merge(&row) {
            inner.shed_rows += 1;
        } else {
            inner.lost_rows += 1;
        }
    }

    /// Waits for items worth a commit, for at most `at_most`. Returns `None` after that time or at the end.
    pub(crate) fn take(&self, at_most: Duration) -> Option<Batch> {
        let until = Instant::now() + at_most;
        let mut inner = self.inner();
        loop {
            let now = Instant::now();
            if inner.failures.is_over() || inner.end.is_some() {
                inner.enter_failures();
            }
            let first = inner.items.front().map(|(since, _)| *since);
            let ripe = match first {
                Some(since) => {
                    inner.items.len() >= COMMIT_MIN_ITEMS
                        || now >= since + COMMIT_MAX_DELAY
                        || inner.end.is_some()
                }
                None => !inner.shed.is_empty(),
            };
            if ripe {
                return Some(inner.take(first));
            }
            if inner.end.is_some() || now >= until {
                return None;
            }
            let wake = first.map_or(until, |since| (since + COMMIT_MAX_DELAY).min(until));
            inner = self.more.wait_timeout(inner, wake - now).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Notes that the writer's batch is on the disk.
    pub(crate) fn done(&self) {
        let mut inner = self.inner();
        inner.release();
    }

    /// Returns the time at which the first row ended that is in no file, and the same without the writer's batch.
    pub(crate) fn first_us(&self) -> (Option<i64>, Option<i64>) {
        let inner = self.inner();
        let totals = [&inner.shed, &inner.failures.totals].map(|totals| totals.span().first_us());
        let waiting = totals.into_iter().chain([inner.span.first_us()]).flatten().min();
        (waiting.into_iter().chain(inner.held_rows.span.first_us()).min(), waiting)
    }

    /// Counts an item that the writer could not enter; a row leaves a gap.
    pub(crate) fn lose(&self, item: &Item) {
        self.inner().lose_in_gap(item);
    }

    /// Counts as lost rows that never reached the queue; a gap records them.
    pub(crate) fn lose_unseen(&self, at_us: i64, rows: u64) {
        let mut inner = self.inner();
        inner.lost_rows += rows;
        inner.shed.lose(at_us, rows, LostCost::UNKNOWN);
        inner.shed_since.get_or_insert_with(Instant::now);
        self.more.notify_all();
    }

    /// Counts the batch of a writer that panicked as lost; the next writer enters a gap. Some of it may be on the disk.
    pub(crate) fn drop_held(&self) {
        let mut inner = self.inner();
        let ((rows, others), lost) = (inner.held_counts, inner.held_rows);
        inner.release();
        inner.lost_rows += rows;
        inner.lost_others += others;
        inner.shed.lose_all(lost);
        inner.shed_since.get_or_insert_with(Instant::now);
    }

    /// Counts rows and other items of the writer's batch as lost.
    pub(crate) fn lose_all(&self, (rows, others): (u64, u64)) {
        let mut inner = self.inner();
        inner.lost_rows += rows;
        inner.lost_others += others;
    }

    /// Waits for a time, or until the end is near.
    pub(crate) fn pause(&self, so_long: Duration) {
        let until = Instant::now() + so_long;
        let mut inner = self.inner();
        while inner.end.is_none() {
            let now = Instant::now();
            if now >= until {
                return;
            }
            inner = self.more.wait_timeout(inner, until - now).unwrap_or_else(PoisonError::into_inner).0;
        }
        let left = match inner.end {
            Some(End::By(end)) => end.saturating_duration_since(Instant::now()),
            _ => Duration::ZERO,
        };
        drop(inner);
        // At the end no notification follows; short waits keep retrying until the deadline.
        std::thread::sleep(so_long.min(left).min(Duration::from_millis(50)));
    }

    /// Tells the writer to end.
    pub(crate) fn end(&self, how: End) {
        self.inner().end.get_or_insert(how);
        self.more.notify_all();
    }

    /// Returns the way in which the writer is to end, if it is.
    pub(crate) fn requested_end(&self) -> Option<End> {
        self.inner().end
    }

    /// Counts all waiting items as lost. Returns them.
    pub(crate) fn abandon(&self) -> Batch {
        let mut inner = self.inner();
        inner.enter_failures();
        let items = inner.items.drain(..).map(|(_, item)| item).collect();
        let lost = Batch { items, shed: std::mem::take(&mut inner.shed) };
        inner.release();
        (inner.span, inner.shed_since) = (Span::default(), None);
        let (rows, others) = lost.counts();
        inner.lost_rows += rows;
        inner.lost_others += others;
        lost
    }

    /// Returns the state of the queue.
    pub(crate) fn waiting(&self) -> Waiting {
        let inner = self.inner();
        let first = inner.items.front().map(|(since, _)| *since);
        let since = [inner.held_since, first, inner.shed_since].into_iter().flatten().min();
        Waiting {
            items: (inner.items.len() + inner.held) as u64,
            lag: since.map_or(Duration::ZERO, |since| since.elapsed()),
            shed_rows: inner.shed_rows,
            lost_others: inner.lost_others,
            lost_rows: inner.lost_rows,
        }
    }
}

impl Failures {
    fn is_over(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= FAILURES_TIME)
    }
}

impl Inner {
    /// Moves the totals of failures to those that the writer takes.
    fn enter_failures(&mut self) {
        let Failures { totals, .. } = std::mem::take(&mut self.failures);
        if totals.is_empty() {
            return;
        }
        self.shed_since.get_or_insert_with(Instant::now);
        let lost = self.shed.rows().1;
        self.shed.join(totals);
        self.lost_rows += self.shed.rows().1 - lost;
    }

    fn lose(&mut self, item: &Item) {
        self.lost_rows += u64::from(item.is_row());
        self.lost_others += u64::from(!item.is_row());
    }

    /// Counts an item as lost; a row leaves a gap.
    fn lose_in_gap(&mut self, item: &Item) {
        self.lose(item);
        if let Item::Row(row) = item {
            self.shed.lose(row.ended_us, 1, LostCost::of_row(&row.charge));
            self.shed_since.get_or_insert_with(Instant::now);
        }
    }

    /// Forgets the writer's batch.
    fn release(&mut self) {
        (self.held, self.held_since) = (0, None);
        (self.held_counts, self.held_rows) = ((0, 0), Loss::default());
    }

    fn shed(&mut self, item: &Item) {
        self.shed_since.get_or_insert_with(Instant::now);
        match item {
            Item::Row(row) if self.shed.row(row) => self.shed_rows += 1,
            Item::Row(_) => self.lost_rows += 1,
            Item::Energy(row) => {
                self.lost_others += u64::from(!self.shed.energy(row));
            }
            Item::Device(line) => {
                self.lost_others += u64::from(!self.shed.device(line));
            }
            Item::Audit(act) => {
                self.lost_others += 1;
                tracing::error!(
                    what = &*act.what,
                    detail = &*act.detail,
                    "the queue is full, and this audit event is lost"
                );
            }
        }
    }

    fn take(&mut self, since: Option<Instant>) -> Batch {
        let most = self.items.len().min(COMMIT_MAX_ITEMS);
        let items: VecDeque<_> = self.items.drain(..most).map(|(_, item)| item).collect();
        self.held = items.len();
        self.held_since = since.into_iter().chain(self.shed_since.take()).min();
        let batch = Batch { items, shed: std::mem::take(&mut self.shed) };
        self.held_counts = batch.counts();
        self.held_rows = batch.loss();
        self.span.rows -= self.held_counts.0 - batch.shed.rows().0;
        batch
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{COMMIT_MAX_ITEMS, End, Item, QUEUE_MAX_ITEMS, Queue};
    use crate::GpuSums;
    use crate::source::{DeviceTotal, Share, Used};
    use crate::testing::row;
    use crate::{AuditEvent, EnergyRow};

    /// Returns one item of each kind that is not a row.
    fn others() -> [Item; 3] {
        let share = DeviceTotal {
            day: 1,
            hw_id: "GPU-0".into(),
            share: Share::Idle,
            sums: GpuSums { energy_nj: 1, gpu_ns: 1, gpu_hours_pico: 0, gpu_energy_pico: 0 },
        };
        let act = AuditEvent { at_us: 1, what: "price_book".into(), who: "test".into(), detail: "{}".into() };
        [
            Item::Energy(Box::new(EnergyRow::of(&row(1), Used::default()))),
            Item::Device(Box::new(share)),
            Item::Audit(Box::new(act)),
        ]
    }

    fn put(queue: &Queue, n: u64) {
        queue.put(Item::Row(Box::new(row(n))));
    }

    #[test]
    fn rows_beyond_the_bound_go_into_totals() {
        let queue = Queue::default();
        let all = QUEUE_MAX_ITEMS as u64;
        (0..all).for_each(|n| put(&queue, n));
        assert_eq!(queue.waiting().shed_rows, 0);
        let batch = queue.take(Duration::ZERO).unwrap();
        assert_eq!(batch.items.len(), COMMIT_MAX_ITEMS);
        put(&queue, all);
        assert_eq!((queue.waiting().shed_rows, queue.waiting().items), (1, all), "taken is not done");
        queue.done();
        put(&queue, all + 1);
        assert_eq!(
            (queue.waiting().shed_rows, queue.waiting().items),
            (1, all - COMMIT_MAX_ITEMS as u64 + 1)
        );
        assert_eq!(queue.take(Duration::ZERO).unwrap().shed.rows(), (1, 0));
    }

    /// After the end, at abandoning, and among overflow totals.
    #[test]
    fn whatever_is_lost_is_counted() {
        let queue = Queue::default();
        let lost = || (queue.waiting().lost_rows, queue.waiting().lost_others);
        put(&queue, 1);
        others().into_iter().for_each(|item| queue.put(item));
        (4..QUEUE_MAX_ITEMS as u64).for_each(|n| put(&queue, n));
        assert_eq!((lost(), queue.waiting().shed_rows), ((0, 0), 0));
        // Overflow totals take a row, an energy and a share, and no audit event.
        put(&queue, 0);
        others().into_iter().for_each(|item| queue.put(item));
        assert_eq!(lost(), (0, 1));
        let taken = queue.take(Duration::ZERO).unwrap().counts();
        assert_eq!((taken.0 + taken.1, taken.1), (COMMIT_MAX_ITEMS as u64 + 3, 5));
        queue.lose_all(taken);
        queue.end(End::By(Instant::now()));
        put(&queue, 1);
        others().into_iter().for_each(|item| queue.put(item));
        assert_eq!(queue.abandon().counts(), ((QUEUE_MAX_ITEMS - COMMIT_MAX_ITEMS) as u64, 0));
        assert_eq!(lost(), (QUEUE_MAX_ITEMS as u64 - 3 + 1 + 1, 1 + 5 + 3));
        assert_eq!((queue.waiting().items, queue.waiting().lag), (0, Duration::ZERO));
    }

    /// Overflow totals wait for the disk as rows do.
    #[test]
    fn lag_includes_overflow_totals() {
        let queue = Queue::default();
        queue.inner().shed(&Item::Row(Box::new(row(0))));
        let waits = || queue.waiting().lag > Duration::ZERO;
        assert!(queue.waiting().items == 0 && waits());
        assert_eq!(queue.take(Duration::ZERO).unwrap().shed.rows(), (1, 0));
        assert!(waits(), "taken is not done");
        queue.done();
        assert_eq!(queue.waiting().lag, Duration::ZERO);
    }

    #[test]
    fn single_row_waits_until_the_end() {
        let queue = Queue::default();
        put(&queue, 1);
        assert!(queue.take(Duration::ZERO).is_none(), "too few, too early");
        assert!(queue.take(Duration::from_secs(60)).is_some(), "in its time");
        queue.done();
        put(&queue, 2);
        queue.end(End::By(Instant::now()));
        assert!(queue.take(Duration::ZERO).is_some());
        assert!(queue.take(Duration::from_secs(60)).is_none(), "the end is not waited for");
    }
}
