//! Items that wait to be sent. The law: putting one in never waits and never grows anything, and
//! the counts are under the same lock as the items, so that none is ever between two counts.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::counts::{End, SignalCounts};

/// A bounded queue and the counts of what went through it. What is on its way counts against the
/// bound as what waits does.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    /// Told when there is a whole batch.
    full_batch: Notify,
    capacity: u64,
    batch: u64,
}

#[derive(Debug)]
struct Inner<T> {
    /// Each with the number of items it makes.
    waiting: VecDeque<(T, u64)>,
    /// Items in `waiting`.
    items: u64,
    counts: SignalCounts,
    closed: bool,
}

/// Values for which there is room from the start.
const ROOM: usize = 2048;

impl<T> Queue<T> {
    pub(crate) fn new(capacity: usize, batch: usize) -> Self {
        let inner = Inner {
            // Room from the start, so that putting in does not allocate; a larger queue grows.
            waiting: VecDeque::with_capacity(capacity.min(ROOM)),
            items: 0,
            counts: SignalCounts::default(),
            closed: false,
        };
        let (capacity, batch) = (capacity as u64, batch.min(capacity) as u64);
        Self { inner: Mutex::new(inner), full_batch: Notify::new(), capacity, batch }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // Nothing in here can panic half way; a poisoned count is as good as any.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts in what makes so many items, or counts them as dropped.
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

    /// Up to a batch of them; their items stay queued until they are settled.
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

    /// Resolves once a whole batch waits.
    pub(crate) async fn whole_batch(&self) {
        loop {
            let told = self.full_batch.notified();
            if self.lock().items >= self.batch {
                return;
            }
            told.await;
        }
    }

    /// Says what became of items that were taken.
    pub(crate) fn settle(&self, items: u64, end: End, took: Duration) {
        let mut inner = self.lock();
        // They were given up already.
        if !inner.closed {
            inner.counts.settle(items, end, took);
        }
    }

    /// Whatever waits or is on its way will not be sent, and nothing comes in any more.
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
