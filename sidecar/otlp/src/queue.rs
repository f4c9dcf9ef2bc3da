//! Bounded queues of items to send. Invariants: `put` never waits and, within the initial capacity, never allocates;
//! the counts are under the lock of the items, so that every item is in exactly one count.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::counts::{End, SignalCounts};

/// A bounded queue and its counts. Items in flight count against the bound like queued ones.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    /// Notified when a full batch is queued.
    full_batch: Notify,
    capacity: u64,
    batch: u64,
}

#[derive(Debug)]
struct Inner<T> {
    /// The values, each with its number of items.
    waiting: VecDeque<(T, u64)>,
    /// Items in `waiting`.
    items: u64,
    counts: SignalCounts,
    closed: bool,
}

/// Maximum initial capacity, in values.
const INITIAL_CAPACITY_MAX: usize = 2048;

impl<T> Queue<T> {
    pub(crate) fn new(capacity: usize, batch: usize) -> Self {
        let inner = Inner {
            // Allocated at the start, so that `put` does not allocate; a larger queue grows.
            waiting: VecDeque::with_capacity(capacity.min(INITIAL_CAPACITY_MAX)),
            items: 0,
            counts: SignalCounts::default(),
            closed: false,
        };
        let (capacity, batch) = (capacity as u64, batch.min(capacity) as u64);
        Self { inner: Mutex::new(inner), full_batch: Notify::new(), capacity, batch }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // No code under the lock can panic between two changes, so poisoned counts are consistent.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a value with this number of items, or counts them as dropped.
    pub(crate) fn put(&self, value: T, items: u64) {
        let mut inner = self.lock();
        inner.counts.made += items;
        if inner.closed {
            inner.counts.dropped_shutdown += items;
        } else if inner.counts.queued + items > self.capacity {
            inner.counts.dropped_full += items;
        } else {
            inner.counts.queued += items;
            inner.items += items;
            inner.waiting.push_back((value, items));
            if inner.items >= self.batch {
                self.full_batch.notify_one();
            }
        }
    }

    /// Takes up to a batch of values. Their items count as queued until [`Self::settle`].
    pub(crate) fn take(&self) -> (Vec<T>, u64) {
        let mut inner = self.lock();
        let (mut taken, mut items) = (Vec::new(), 0);
        while let Some((value, more)) =
            inner.waiting.pop_front_if(|(_, more)| items == 0 || items + *more <= self.batch)
        {
            items += more;
            taken.push(value);
        }
        inner.items -= items;
        (taken, items)
    }

    /// Resolves once a full batch is queued.
    pub(crate) async fn full_batch(&self) {
        loop {
            let notified = self.full_batch.notified();
            if self.lock().items >= self.batch {
                return;
            }
            notified.await;
        }
    }

    /// Adds the result of taken items to the counts.
    pub(crate) fn settle(&self, items: u64, end: End, took: Duration) {
        let mut inner = self.lock();
        // `close` has already counted them as dropped.
        if !inner.closed {
            inner.counts.settle(items, end, took);
        }
    }

    /// Drops all items that are queued or in flight, and rejects later ones.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.waiting.clear();
        inner.items = 0;
        inner.counts.dropped_shutdown += inner.counts.queued;
        inner.counts.queued = 0;
    }

    pub(crate) fn counts(&self) -> SignalCounts {
        self.lock().counts.clone()
    }
}
