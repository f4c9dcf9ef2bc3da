//! A capacity that workers share, such as memory for request bodies that are gathered to be edited: one number
//! for all, taken and given back with each such request. A request that finds it full does without, or waits for a
//! moment in which room is made.
//!
//! A holder's share of it binds only while another holder waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

use meter::Tick;

use crate::holder::{Holder, Resource};
use crate::{clock, limits};

/// An amount that may be taken together, of bytes or of things that are counted.
#[derive(Clone, Debug)]
pub(crate) struct Capacity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    taken: AtomicUsize,
    most: usize,
    /// The number of each holder that is charged for it, if any is.
    resource: Option<Resource>,
    /// The number of holders that hold some of it. Two threads may count one's last give-back and next taking in
    /// either order.
    holders: AtomicIsize,
    /// Ticks of the last time that a holder found it full, and that one within its share did.
    full_at: AtomicU64,
    wanted_at: AtomicU64,
}

/// A part of the room; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    room: Capacity,
    bytes: usize,
    holder: Option<Arc<Holder>>,
}

impl Capacity {
    /// Capacity for `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self::with(most, None)
    }

    /// Capacity for `most` of what holders hold.
    pub(crate) fn held(most: usize, resource: Resource) -> Self {
        Self::with(most, Some(resource))
    }

    fn with(most: usize, resource: Option<Resource>) -> Self {
        let (taken, holders, full_at, wanted_at) = Default::default();
        Self(Arc::new(Inner { taken, most, resource, holders, full_at, wanted_at }))
    }

    /// A part of so many bytes, if there is room for them.
    pub(crate) fn room_for(&self, bytes: usize) -> Option<Permit> {
        let mut share = self.permit(None);
        share.grow(bytes).then_some(share)
    }

    /// An empty part of it for this holder; one without a holder is bound by no share.
    pub(crate) fn permit(&self, holder: Option<Arc<Holder>>) -> Permit {
        Permit { room: self.clone(), bytes: 0, holder }
    }

    /// The amount that is taken.
    pub(crate) fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// The amount that may be taken.
    pub(crate) fn most(&self) -> usize {
        self.0.most
    }

    /// The amount that a holder may hold while another one waits: together, holders within their shares leave
    /// one share free.
    pub(crate) fn share_max(&self) -> usize {
        let holders = usize::try_from(self.0.holders.load(Ordering::Relaxed)).unwrap_or(0);
        (self.0.most / limits::SHARES.max(holders.saturating_add(1))).max(1)
    }

    /// The amount that is missing until one share is free.
    pub(crate) fn missing(&self) -> usize {
        self.share_max().saturating_sub(self.0.most.saturating_sub(self.taken()))
    }

    /// The amount by which a holder is above its share.
    pub(crate) fn excess(&self, holder: Option<&Arc<Holder>>) -> usize {
        let held = self.0.resource.and_then(|resource| Some(holder?.held(resource)));
        held.unwrap_or(0).saturating_sub(self.share_max())
    }

    /// Returns true if room was missing lately, so that it should be made.
    pub(crate) fn is_short(&self, now: Tick) -> bool {
        is_recent(&self.0.full_at, now, limits::SHORT_NS)
    }

    /// Returns true if a holder within its share found no room lately.
    pub(crate) fn is_crowded(&self, now: Tick) -> bool {
        is_recent(&self.0.wanted_at, now, limits::SHORT_NS)
    }

    /// Returns true if the holder gets no more, because it is above its share and another one waits.
    pub(crate) fn binds(&self, holder: Option<&Arc<Holder>>) -> bool {
        self.excess(holder) > 0 && self.is_wanted()
    }

    /// Notes that the holder found no room.
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
    /// Takes `bytes` more; false, and nothing is taken, if there is no room for them.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        if self.is_bound(bytes) {
            self.room.note_full(self.holder.as_ref());
            return false;
        }
        self.grow_unbound(bytes)
    }

    /// The same, though it may be above the holder's share.
    pub(crate) fn grow_unbound(&mut self, bytes: usize) -> bool {
        let inner = &self.room.0;
        let taken = inner.taken.fetch_add(bytes, Ordering::Relaxed);
        if taken.saturating_add(bytes) > inner.most {
            inner.taken.fetch_sub(bytes, Ordering::Relaxed);
            self.room.note_full(self.holder.as_ref());
            return false;
        }
        self.count(bytes);
        true
    }

    /// Takes `n` more though there may be no room: what is there has to be counted.
    pub(crate) fn add(&mut self, n: usize) {
        self.room.0.taken.fetch_add(n, Ordering::Relaxed);
        self.count(n);
    }

    /// Charges this holder for it from now on.
    pub(crate) fn charge(&mut self, holder: Option<Arc<Holder>>) {
        self.discharge();
        let n = std::mem::take(&mut self.bytes);
        self.holder = holder;
        self.count(n);
    }

    fn count(&mut self, n: usize) {
        if let (Some(holder), Some(resource)) = (&self.holder, self.room.0.resource)
            && n > 0
            && holder.take(resource, n) == 0
        {
            self.room.0.holders.fetch_add(1, Ordering::Relaxed);
        }
        self.bytes += n;
    }

    fn discharge(&self) {
        if let (Some(holder), Some(resource)) = (&self.holder, self.room.0.resource)
            && self.bytes > 0
            && holder.give_back(resource, self.bytes) == self.bytes
        {
            self.room.0.holders.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The same as [`grow`](Self::grow), after waiting for at most [`limits::CAPACITY_WAIT_NS`] until
    /// room is made. A holder above its share gets no wait.
    pub(crate) async fn grow_soon(&mut self, bytes: usize) -> bool {
        let begun = clock::now();
        loop {
            if self.grow(bytes) {
                return true;
            }
            let waited = clock::now().since(begun);
            if waited >= limits::CAPACITY_WAIT_NS || self.room.excess(self.holder.as_ref()) > 0 {
                return false;
            }
            tokio::time::sleep(limits::CAPACITY_RETRY_PAUSE).await;
        }
    }

    /// The part's size.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if these bytes more are above the holder's share, while another holder waits.
    fn is_bound(&self, bytes: usize) -> bool {
        let (Some(holder), Some(resource)) = (&self.holder, self.room.0.resource) else { return false };
        holder.held(resource).saturating_add(bytes) > self.room.share_max() && self.room.is_wanted()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.room.0.taken.fetch_sub(self.bytes, Ordering::Relaxed);
        self.discharge();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holder::{Holders, Key};

    #[test]
    fn what_is_taken_is_given_back() {
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
        assert!(greedy.grow(15), "alone it may have everything");
        let mut other = room.permit(holder(2));
        assert!(!other.grow(2));
        drop(greedy);
        let mut greedy = room.permit(holder(1));
        assert!(greedy.grow(4) && !greedy.grow(1), "another one waited");
        assert!(other.grow(2));
        let mut trusted = room.permit(None);
        assert!(trusted.grow(8), "no share binds a trusted peer");
    }

    #[test]
    fn shares_of_many_leave_one_free() {
        let (room, holders) = (Capacity::held(60, Resource::GatheredBytes), Holders::new(0));
        let holder = |n| Some(holders.of(Key::network([127, 0, 0, n].into())));
        let mut greedy: Vec<_> = (1..=4).map(|n| room.permit(holder(n))).collect();
        assert!(
            greedy.iter_mut().all(|share| share.grow(15)),
            "a quarter each, as long as no other one waits"
        );
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
