//! A capacity that all workers share, such as memory for buffered request bodies: one number, from which requests
//! reserve and to which they release. A request that finds it full goes on without, or waits a moment while other
//! requests release some, and slow ones give way (`claims`).

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use meter::Tick;

use crate::claims::{Need, may_take};
use crate::holder::{Holder, Resource};
use crate::{clock, limits};

/// An amount of bytes or of countable things, of which parts can be reserved.
#[derive(Clone, Debug)]
pub(crate) struct Capacity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    taken: AtomicUsize,
    most: usize,
    /// The resource by which holders are charged for it, if they are.
    resource: Option<Resource>,
    /// The number of holders with a part of it. Two threads may count one holder's last release and next reservation in
    /// either order.
    holders: AtomicIsize,
    /// The amount for which requests wait.
    waiting: AtomicUsize,
    /// Ticks of the last time that a holder found it full, and that a holder within its share did.
    full_at: AtomicU64,
    wanted_at: AtomicU64,
}

/// A reserved part of a capacity; released when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    capacity: Capacity,
    amount: usize,
    holder: Option<Arc<Holder>>,
}

/// An amount of a capacity for which a request waits, until it is dropped.
pub(crate) struct Waiting(Capacity, usize);

impl Capacity {
    /// A capacity of this amount. `resource`: the one by which holders are charged for it, if they are.
    pub(crate) fn new(most: usize, resource: Option<Resource>) -> Self {
        let (taken, holders, waiting, full_at, wanted_at) = Default::default();
        Self(Arc::new(Inner { taken, most, resource, holders, waiting, full_at, wanted_at }))
    }

    /// Reserves `amount`, if it is free.
    pub(crate) fn room_for(&self, amount: usize) -> Option<Permit> {
        let mut share = self.permit(None);
        share.grow(amount).then_some(share)
    }

    /// An empty part for this holder; without a holder, no share limits it.
    pub(crate) fn permit(&self, holder: Option<Arc<Holder>>) -> Permit {
        Permit { capacity: self.clone(), amount: 0, holder }
    }

    /// The reserved amount.
    pub(crate) fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// The total amount.
    pub(crate) fn most(&self) -> usize {
        self.0.most
    }

    /// The amount of which a holder is sure while another one waits. If all holders are within their shares, one share
    /// is free.
    pub(crate) fn share_max(&self) -> usize {
        let holders = usize::try_from(self.0.holders.load(Ordering::Relaxed)).unwrap_or(0);
        (self.0.most / limits::SHARES.max(holders.saturating_add(1))).max(1)
    }

    /// The amounts to free: what requests wait for, and what is missing to one share if a holder within its own found
    /// the capacity full lately.
    pub(crate) fn need(&self, now: Tick) -> Need {
        let missing = if self.is_crowded(now) { self.share_max().saturating_sub(self.free()) } else { 0 };
        Need { within_shares: missing, in_all: self.0.waiting.load(Ordering::Relaxed) }
    }

    /// Returns true if it was full lately for a holder within its share.
    fn is_crowded(&self, now: Tick) -> bool {
        is_recent(&self.0.wanted_at, now, limits::SHORT_NS)
    }

    fn free(&self) -> usize {
        self.0.most.saturating_sub(self.taken())
    }

    /// The amount by which a holder exceeds its share.
    pub(crate) fn excess(&self, holder: Option<&Arc<Holder>>) -> usize {
        let held = self.0.resource.and_then(|resource| Some(holder?.held(resource)));
        held.unwrap_or(0).saturating_sub(self.share_max())
    }

    /// Returns true if the capacity was full lately, so that some of it should be freed.
    pub(crate) fn is_short(&self, now: Tick) -> bool {
        is_recent(&self.0.full_at, now, limits::SHORT_NS)
    }

    /// Returns true if the holder gets no more connections, because it exceeds its share and another one waits.
    pub(crate) fn binds(&self, holder: Option<&Arc<Holder>>) -> bool {
        self.excess(holder) > 0 && is_recent(&self.0.wanted_at, clock::now(), limits::SHARES_BIND_NS)
    }

    /// Records that the holder found it full.
    pub(crate) fn note_full(&self, holder: Option<&Arc<Holder>>) {
        let now = clock::now();
        self.0.full_at.store(now.0, Ordering::Relaxed);
        if self.excess(holder) == 0 {
            self.0.wanted_at.store(now.0, Ordering::Relaxed);
        }
    }
}

fn is_recent(at: &AtomicU64, now: Tick, ns: u64) -> bool {
    let at = at.load(Ordering::Relaxed);
    at > 0 && now.0.saturating_sub(at) < ns
}

impl Permit {
    /// Reserves `amount` more. Returns false, and reserves nothing, if that is not free for its holder.
    pub(crate) fn grow(&mut self, amount: usize) -> bool {
        if !self.may_grow(amount) {
            self.capacity.note_full(self.holder.as_ref());
            return false;
        }
        self.grow_unbound(amount)
    }

    /// As [`grow`](Self::grow), even above the holder's share.
    pub(crate) fn grow_unbound(&mut self, amount: usize) -> bool {
        let inner = &self.capacity.0;
        let taken = inner.taken.fetch_add(amount, Ordering::Relaxed);
        if taken.saturating_add(amount) > inner.most {
            inner.taken.fetch_sub(amount, Ordering::Relaxed);
            self.capacity.note_full(self.holder.as_ref());
            return false;
        }
        self.count(amount);
        true
    }

    /// Reserves `amount` more even if the capacity is full: it is in use already.
    pub(crate) fn add(&mut self, amount: usize) {
        self.capacity.0.taken.fetch_add(amount, Ordering::Relaxed);
        self.count(amount);
    }

    /// Charges the part to this holder from now on.
    pub(crate) fn charge(&mut self, holder: Option<Arc<Holder>>) {
        self.discharge();
        let amount = std::mem::take(&mut self.amount);
        self.holder = holder;
        self.count(amount);
    }

    fn count(&mut self, amount: usize) {
        if let (Some(holder), Some(resource)) = (&self.holder, self.capacity.0.resource)
            && amount > 0
            && holder.take(resource, amount) == 0
        {
            self.capacity.0.holders.fetch_add(1, Ordering::Relaxed);
        }
        self.amount += amount;
    }

    fn discharge(&self) {
        if let (Some(holder), Some(resource)) = (&self.holder, self.capacity.0.resource)
            && self.amount > 0
            && holder.give_back(resource, self.amount) == self.amount
        {
            self.capacity.0.holders.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// As [`grow`](Self::grow), but the first part of a holder that is not within a share of its own overtakes no request
    /// that waits.
    pub(crate) fn grow_in_turn(&mut self, amount: usize) -> bool {
        !self.must_wait() && self.grow(amount)
    }

    /// As [`grow_in_turn`](Self::grow_in_turn), but waits up to [`limits::CAPACITY_WAIT_NS`] for free capacity, with
    /// this pause between two attempts. A part above its holder's share does not wait for more while a holder within its
    /// own waits for the part.
    pub(crate) async fn grow_soon(&mut self, amount: usize, pause: Duration) -> bool {
        let mut is_turn = !self.must_wait();
        let _waiting = self.wait_for(amount);
        let begun = clock::now();
        while !(is_turn && self.grow(amount)) {
            let now = clock::now();
            let is_above = self.capacity.excess(self.holder.as_ref()) > 0;
            let gives_way = self.amount > 0 && is_above && self.capacity.is_crowded(now);
            if gives_way || now.since(begun) >= limits::CAPACITY_WAIT_NS {
                return false;
            }
            tokio::time::sleep(pause).await;
            is_turn = true;
        }
        true
    }

    fn must_wait(&self) -> bool {
        self.amount == 0
            && self.capacity.0.waiting.load(Ordering::Relaxed) > 0
            && (self.holder.is_none() || self.capacity.excess(self.holder.as_ref()) > 0)
    }

    /// Records that a request waits for `amount` more.
    pub(crate) fn wait_for(&self, amount: usize) -> Waiting {
        self.capacity.0.waiting.fetch_add(amount, Ordering::Relaxed);
        Waiting(self.capacity.clone(), amount)
    }

    /// The holder that is charged for it.
    pub(crate) fn holder(&self) -> Option<&Arc<Holder>> {
        self.holder.as_ref()
    }

    /// The reserved amount.
    pub(crate) fn amount(&self) -> usize {
        self.amount
    }

    fn may_grow(&self, amount: usize) -> bool {
        let (Some(holder), Some(resource)) = (&self.holder, self.capacity.0.resource) else { return true };
        may_take(holder.held(resource), amount, self.capacity.free())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.waiting.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.capacity.0.taken.fetch_sub(self.amount, Ordering::Relaxed);
        self.discharge();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holder::{Holders, Key};

    #[test]
    fn dropped_permits_release_their_amount() {
        let room = Capacity::new(10, None);
        let mut one = room.permit(None);
        assert!(one.grow(4) && one.grow(4));
        let mut other = room.permit(None);
        assert!(!other.grow(3) && other.grow(2));
        drop(one);
        assert!(other.grow(8) && !other.grow(1));
    }

    #[test]
    fn holder_leaves_some_for_others() {
        let (room, holders) = (Capacity::new(16, Some(Resource::GatheredBytes)), Holders::new(0));
        let holder = |n| Some(holders.of(Key::network([127, 0, 0, n].into())));
        let mut greedy = room.permit(holder(1));
        assert!(greedy.grow(12) && !greedy.grow(1));
        assert_eq!(room.need(clock::now()), Need::default(), "no other one waits");
        let mut other = room.permit(holder(2));
        assert!(other.grow(3) && !other.grow(1));
        assert_eq!(room.need(clock::now()), Need { within_shares: 3, in_all: 0 });
        let waiting = other.wait_for(1);
        assert_eq!(room.need(clock::now()).in_all, 1);
        let [more_greedy, more] = [1, 2].map(|n| room.permit(holder(n)));
        assert!(more_greedy.must_wait() && !more.must_wait(), "the first one exceeds its share");
        drop(waiting);
        assert!(!more_greedy.must_wait());
        let mut trusted = room.permit(None);
        assert!(trusted.grow(1), "no share limits a trusted peer");
    }

    #[test]
    fn shares_of_many_leave_one_free() {
        let (room, holders) = (Capacity::new(60, Some(Resource::GatheredBytes)), Holders::new(0));
        let holder = |n| Some(holders.of(Key::network([127, 0, 0, n].into())));
        let mut greedy: Vec<_> = (1..=4).map(|n| room.permit(holder(n))).collect();
        assert!(greedy.iter_mut().all(|share| share.grow_unbound(15)));
        assert_eq!(room.share_max(), 12);
        assert_eq!(room.need(clock::now()).within_shares, 0);
        assert!(!room.permit(holder(5)).grow(1));
        assert!(room.binds(holder(1).as_ref()));
        assert_eq!((room.need(clock::now()).within_shares, room.excess(holder(1).as_ref())), (12, 3));
        greedy.truncate(2);
        assert_eq!(room.share_max(), 15, "those that hold nothing have no share");
        assert_eq!(room.need(clock::now()).within_shares, 0);
    }

    #[test]
    fn charge_moves_to_another_holder() {
        let (room, holders) = (Capacity::new(16, Some(Resource::Sockets)), Holders::new(0));
        let (one, other) = (
            holders.of(Key::network([127, 0, 0, 1].into())),
            holders.of(Key::network([127, 0, 0, 2].into())),
        );
        let mut share = room.permit(Some(Arc::clone(&one)));
        assert!(share.grow(3));
        share.charge(None);
        assert_eq!((one.held(Resource::Sockets), room.taken()), (0, 3));
        share.charge(Some(Arc::clone(&other)));
        assert_eq!((other.held(Resource::Sockets), room.taken()), (3, 3));
        drop(share);
        assert_eq!((other.held(Resource::Sockets), room.taken()), (0, 0));
        assert_eq!(room.0.holders.load(Ordering::Relaxed), 0);
    }
}
