//! Room that workers share, such as memory for request bodies that are gathered to be edited: one number
//! for all, taken and given back with each such request. Who finds it full does without, or waits for a
//! moment in which room is made.
//!
//! A holder's share of it binds only while another holder waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use meter::Tick;

use crate::holder::{Holder, Resource};
use crate::{clock, limits};

/// What may be taken together: bytes, or whatever is counted.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    taken: AtomicUsize,
    most: usize,
    /// The number of each holder that is charged for it, if any is.
    resource: Option<Resource>,
    /// Ticks of the last time that a holder found it full, and that one within its share did.
    full_at: AtomicU64,
    wanted_at: AtomicU64,
}

/// A part of the room; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    room: Room,
    bytes: usize,
    holder: Option<Arc<Holder>>,
}

impl Room {
    /// Room for `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self::with(most, None)
    }

    /// Room for `most` of what holders hold.
    pub(crate) fn held(most: usize, resource: Resource) -> Self {
        Self::with(most, Some(resource))
    }

    fn with(most: usize, resource: Option<Resource>) -> Self {
        let (taken, full_at, wanted_at) = Default::default();
        Self(Arc::new(Inner { taken, most, resource, full_at, wanted_at }))
    }

    /// A part of so many bytes, if there is room for them.
    pub(crate) fn room_for(&self, bytes: usize) -> Option<Share> {
        let mut share = self.share(None);
        share.grow(bytes).then_some(share)
    }

    /// An empty part of it for this holder; one without a holder is bound by no share.
    pub(crate) fn share(&self, holder: Option<Arc<Holder>>) -> Share {
        Share { room: self.clone(), bytes: 0, holder }
    }

    /// The amount that is taken.
    pub(crate) fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// The amount that may be taken.
    pub(crate) fn most(&self) -> usize {
        self.0.most
    }

    /// The amount that a holder may hold while another one waits.
    pub(crate) fn share_max(&self) -> usize {
        self.0.most / limits::SHARES
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

    fn note_full(&self, holder: Option<&Arc<Holder>>) {
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

impl Share {
    /// Takes `bytes` more; false, and nothing is taken, if there is no room for them.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        if self.is_bound(bytes) {
            self.room.note_full(self.holder.as_ref());
            return false;
        }
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

    fn count(&mut self, n: usize) {
        if let (Some(holder), Some(resource)) = (&self.holder, self.room.0.resource) {
            holder.take(resource, n);
        }
        self.bytes += n;
    }

    /// The same as [`grow`](Self::grow), after waiting for at most [`limits::ROOM_WAIT_NS`] until room is made. A holder above its
    /// share is not waited for.
    pub(crate) async fn grow_soon(&mut self, bytes: usize) -> bool {
        let begun = clock::now();
        loop {
            if self.grow(bytes) {
                return true;
            }
            let waited = clock::now().since(begun);
            if waited >= limits::ROOM_WAIT_NS || self.room.excess(self.holder.as_ref()) > 0 {
                return false;
            }
            tokio::time::sleep(limits::ROOM_PAUSE).await;
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

impl Drop for Share {
    fn drop(&mut self) {
        let inner = &self.room.0;
        inner.taken.fetch_sub(self.bytes, Ordering::Relaxed);
        if let (Some(holder), Some(resource)) = (&self.holder, inner.resource) {
            holder.give_back(resource, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holder::{Holders, Key};

    #[test]
    fn what_is_taken_is_given_back() {
        let room = Room::new(10);
        let mut one = room.share(None);
        assert!(one.grow(4) && one.grow(4));
        let mut other = room.share(None);
        assert!(!other.grow(3) && other.grow(2));
        drop(one);
        assert!(other.grow(8) && !other.grow(1));
    }

    #[test]
    fn share_binds_only_while_another_waits() {
        let (room, holders) = (Room::held(16, Resource::GatheredBytes), Holders::default());
        let holder = |n| Some(holders.of(Key::network([127, 0, 0, n].into())));
        let mut greedy = room.share(holder(1));
        assert!(greedy.grow(16) && !greedy.grow(1));
        drop(greedy);
        let mut greedy = room.share(holder(1));
        assert!(greedy.grow(15), "alone it may have everything");
        let mut other = room.share(holder(2));
        assert!(!other.grow(2));
        drop(greedy);
        let mut greedy = room.share(holder(1));
        assert!(greedy.grow(4) && !greedy.grow(1), "another one waited");
        assert!(other.grow(2));
        let mut trusted = room.share(None);
        assert!(trusted.grow(8), "no share binds a trusted peer");
    }
}
