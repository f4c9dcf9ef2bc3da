//! A capacity that all workers share, such as memory for buffered request bodies: one number, from which requests
//! reserve and to which they release. A request that finds it full goes on without, or waits a moment while other
//! requests release some.
//!
//! A holder's share of it limits the holder only while another one waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

use meter::Tick;

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
    /// Ticks of the last time that a holder found it full, and that a holder within its share did.
    full_at: AtomicU64,
    wanted_at: AtomicU64,
}

/// A reserved part of a capacity; released when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    capacity: Capacity,
    bytes: usize,
    holder: Option<Arc<Holder>>,
}

impl Capacity {
    /// A capacity of `most` bytes, without holders.
    pub(crate) fn new(most: usize) -> Self {
        Self::with(most, None)
    }

    /// A capacity of `most` of a resource, with holders.
    pub(crate) fn held(most: usize, resource: Resource) -> Self {
        Self::with(most, Some(resource))
    }

    fn with(most: usize, resource: Option<Resource>) -> Self {
        let (taken, holders, full_at, wanted_at) = Default::default();
        Self(Arc::new(Inner { taken, most, resource, holders, full_at, wanted_at }))
    }

    /// Reserves `bytes`, if they are free.
    pub(crate) fn room_for(&self, bytes: usize) -> Option<Permit> {
        let mut share = self.permit(None);
        share.grow(bytes).then_some(share)
    }

    /// An empty part for this holder; without a holder, no share limits it.
    pub(crate) fn permit(&self, holder: Option<Arc<Holder>>) -> Permit {
        Permit { capacity: self.clone(), bytes: 0, holder }
    }

    /// The reserved amount.
    pub(crate) fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// The total amount.
    pub(crate) fn most(&self) -> usize {
        self.0.most
    }

    /// The amount that a holder may have while another one waits. If all holders are within their shares, one share is
    /// free.
    pub(crate) fn share_max(&self) -> usize {
        let holders = usize::try_from(self.0.holders.load(Ordering::Relaxed)).unwrap_or(0);
        (self.0.most / limits::SHARES.max(holders.saturating_add(1))).max(1)
    }

    /// The amount by which less than one share is free.
    pub(crate) fn missing(&self) -> usize {
        self.share_max().saturating_sub(self.0.most.saturating_sub(self.taken()))
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

    /// Returns true if it was full lately for a holder within its share.
    pub(crate) fn is_crowded(&self, now: Tick) -> bool {
        is_recent(&self.0.wanted_at, now, limits::SHORT_NS)
    }

    /// Returns true if the holder gets no more, because it exceeds its share and another one waits.
    pub(crate) fn binds(&self, holder: Option<&Arc<Holder>>) -> bool {
        self.excess(holder) > 0 && self.is_wanted()
    }

    /// Records that the holder found it full.
    pub(crate) fn note_full(&self, holder: Option<&Arc<Holder>>) {
        let now = clock::now();
        self.0.full_at.store(now.0, Ordering::Relaxed);
        if self.excess(holder) == 0 {
            self.0.wanted_at.store(now.0, Ordering::Relaxed);
        }
    }

    fn is_wanted(&self) -> bool {
        is_recent(&self.0.wanted_at, clock::now(), limits::SHARES_BIND_NS)
    }
}

fn is_recent(at: &AtomicU64, now: Tick, ns: u64) -> bool {
    let at = at.load(Ordering::Relaxed);
    at > 0 && now.0.saturating_sub(at) < ns
}

impl Permit {
    /// Reserves `bytes` more. Returns false, and reserves nothing, if they are not free.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        if self.is_bound(bytes) {
            self.capacity.note_full(self.holder.as_ref());
            return false;
        }
        self.grow_unbound(bytes)
    }

    /// As [`grow`](Self::grow), even above the holder's share.
    pub(crate) fn grow_unbound(&mut self, bytes: usize) -> bool {
        let inner = &self.capacity.0;
        let taken = inner.taken.fetch_add(bytes, Ordering::Relaxed);
        if taken.saturating_add(bytes) > inner.most {
            inner.taken.fetch_sub(bytes, Ordering::Relaxed);
            self.capacity.note_full(self.holder.as_ref());
            return false;
        }
        self.count(bytes);
        true
    }

    /// Reserves `n` more even if the capacity is full: they are in use already.
    pub(crate) fn add(&mut self, n: usize) {
        self.capacity.0.taken.fetch_add(n, Ordering::Relaxed);
        self.count(n);
    }

    /// Charges the part to this holder from now on.
    pub(crate) fn charge(&mut self, holder: Option<Arc<Holder>>) {
        self.discharge();
        let n = std::mem::take(&mut self.bytes);
        self.holder = holder;
        self.count(n);
    }

    fn count(&mut self, n: usize) {
        if let (Some(holder), Some(resource)) = (&self.holder, self.capacity.0.resource)
            && n > 0
            && holder.take(resource, n) == 0
        {
            self.capacity.0.holders.fetch_add(1, Ordering::Relaxed);
        }
        self.bytes += n;
    }

    fn discharge(&self) {
        if let (Some(holder), Some(resource)) = (&self.holder, self.capacity.0.resource)
            && self.bytes > 0
            && holder.give_back(resource, self.bytes) == self.bytes
        {
            self.capacity.0.holders.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// As [`grow`](Self::grow), but waits up to [`limits::CAPACITY_WAIT_NS`] for free capacity. A holder above its
    /// share does not wait.
    pub(crate) async fn grow_soon(&mut self, bytes: usize) -> bool {
        let begun = clock::now();
        loop {
            if self.grow(bytes) {
                return true;
            }
            let waited = clock::now().since(begun);
            if waited >= limits::CAPACITY_WAIT_NS || self.capacity.excess(self.holder.as_ref()) > 0 {
                return false;
            }
            tokio::time::sleep(limits::CAPACITY_RETRY_PAUSE).await;
        }
    }

    /// The holder that is charged for it.
    pub(crate) fn holder(&self) -> Option<&Arc<Holder>> {
        self.holder.as_ref()
    }

    /// The reserved amount.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if `bytes` more exceed the holder's share while another holder waits.
    fn is_bound(&self, bytes: usize) -> bool {
        let (Some(holder), Some(resource)) = (&self.holder, self.capacity.0.resource) else { return false };
        holder.held(resource).saturating_add(bytes) > self.capacity.share_max() && self.capacity.is_wanted()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.capacity.0.taken.fetch_sub(self.bytes, Ordering::Relaxed);
        self.discharge();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holder::{Holders, Key};

    #[test]
    fn dropped_permits_release_their_amount() {
        let room = Capacity::new(10);
        let mut one = room.permit(None);
        assert!(one.grow(4) && one.grow(4));
        let mut other = room.permit(None);
        assert!(!other.grow(3) && other.grow(2));
        drop(one);
        assert!(other.grow(8) && !other.grow(1));
    }

    #[test]
    fn share_binds_only_while_another_waits() {
        let (room, holders) = (Capacity::held(16, Resource::GatheredBytes), Holders::new(0));
        let holder = |n| Some(holders.of(Key::network([127, 0, 0, n].into())));
        let mut greedy = room.permit(holder(1));
        assert!(greedy.grow(16) && !greedy.grow(1));
        drop(greedy);
        let mut greedy = room.permit(holder(1));
        assert!(greedy.grow(15), "a single holder may have everything");
        let mut other = room.permit(holder(2));
        assert!(!other.grow(2));
        drop(greedy);
        let mut greedy = room.permit(holder(1));
        assert!(greedy.grow(4) && !greedy.grow(1), "another one waited");
        assert!(other.grow(2));
        let mut trusted = room.permit(None);
        assert!(trusted.grow(8), "no share limits a trusted peer");
    }

    #[test]
    fn shares_of_many_leave_one_free() {
        let (room, holders) = (Capacity::held(60, Resource::GatheredBytes), Holders::new(0));
        let holder = |n| Some(holders.of(Key::network([127, 0, 0, n].into())));
        let mut greedy: Vec<_> = (1..=4).map(|n| room.permit(holder(n))).collect();
        assert!(greedy.iter_mut().all(|share| share.grow(15)), "a quarter each while no other one waits");
        assert_eq!((room.share_max(), room.missing()), (12, 12));
        assert!(!room.is_crowded(clock::now()));
        assert!(!room.permit(holder(5)).grow(1));
        assert!(room.is_crowded(clock::now()) && room.binds(holder(1).as_ref()));
        assert_eq!(room.excess(holder(1).as_ref()), 3);
        greedy.truncate(2);
        assert_eq!((room.share_max(), room.missing()), (15, 0), "those that hold nothing have no share");
    }

    #[test]
    fn charge_moves_to_another_holder() {
        let (room, holders) = (Capacity::held(16, Resource::Sockets), Holders::new(0));
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
