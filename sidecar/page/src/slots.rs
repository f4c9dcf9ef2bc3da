//! The slots of concurrent connections. Invariant: a new connection always gets a slot while another connection has not
//! sent a whole request, so that probes are answered even if clients hold connections open.
//!
//! A peer's share applies only when all slots are in use: then slots of a peer above its share are evicted first.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;

use tokio::sync::Notify;

use tokio::time::sleep;

use crate::limits::{MAX_WAITERS, PEER_CONNECTIONS, SLOT_PAUSE};

/// The progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// No byte received.
    Silent,
    /// A part of a request head received.
    Head,
    /// The response is a stream, whose reader opens another after an eviction.
    Stream,
    /// The request is being answered.
    Answer,
    /// The request waits for the end of the drain.
    Drain,
}

/// All slots.
#[derive(Debug)]
pub(crate) struct Slots {
    max: usize,
    /// Oldest first.
    entries: RefCell<Vec<Rc<Entry>>>,
    waiting: Cell<usize>,
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    progress: Cell<Progress>,
    evicted: Notify,
}

/// One connection's slot; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Rc<Slots>,
    entry: Rc<Entry>,
}

/// The result of a request for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamPlace {
    /// A free place.
    Free,
    /// The place of another peer's stream, which was evicted.
    Evicting,
    /// None: no other peer has more streams than this one would have.
    Full,
}

/// A connection that waits for a slot.
#[derive(Debug)]
pub(crate) struct Waiting(Rc<Slots>);

/// The result of a request for a slot.
#[derive(Debug)]
pub(crate) enum Taken {
    /// A free slot.
    Free(Slot),
    /// The slot of another connection, which was evicted.
    Evicting(Slot),
    /// None: every connection is being answered, and no other peer is above its share.
    Full,
}

impl Slots {
    /// Returns this number of free slots.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, entries: RefCell::default(), waiting: Cell::new(0) }
    }

    /// Takes a slot for a new connection from `peer`.
    pub(crate) fn take(self: &Rc<Self>, peer: IpAddr) -> Taken {
        let mut entries = self.entries.borrow_mut();
        let full = entries.len() >= self.max;
        if full {
            let Some(victim) = victim(&entries, peer) else { return Taken::Full };
            entries.remove(victim).evicted.notify_one();
        }
        let entry = Rc::new(Entry { peer, progress: Cell::new(Progress::Silent), evicted: Notify::new() });
        entries.push(Rc::clone(&entry));
        let slot = Slot { slots: Rc::clone(self), entry };
        if full { Taken::Evicting(slot) } else { Taken::Free(slot) }
    }

    /// Registers a waiting connection; `None` if as many wait as there are slots.
    pub(crate) fn wait(self: &Rc<Self>) -> Option<Waiting> {
        let waiting = self.waiting.get();
        (waiting < self.max).then(|| {
            self.waiting.set(waiting + 1);
            Waiting(Rc::clone(self))
        })
    }

    /// Returns true while a connection waits for the end of the drain.
    pub(crate) fn has_waiters(&self) -> bool {
        self.entries.borrow().iter().any(|entry| entry.progress.get() == Progress::Drain)
    }
}

impl Waiting {
    /// Waits for a slot for the connection of `peer`.
    pub(crate) async fn slot(self, peer: IpAddr) -> Slot {
        loop {
            sleep(SLOT_PAUSE).await;
            if let Taken::Free(slot) | Taken::Evicting(slot) = self.0.take(peer) {
                return slot;
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

/// Returns the connection to evict: preferably of a peer above its share, then with the least progress, then the
/// oldest. A peer above its share evicts no connection of a peer within its own, and a connection being answered is
/// evicted only for another peer.
fn victim(entries: &[Rc<Entry>], asking: IpAddr) -> Option<usize> {
    let is_above =
        |peer: IpAddr| entries.iter().filter(|entry| entry.peer == peer).count() > PEER_CONNECTIONS;
    let is_asking_above = is_above(asking);
    let candidates = entries.iter().enumerate().filter_map(|(at, entry)| {
        let (progress, above) = (entry.progress.get(), is_above(entry.peer));
        let is_evictable = progress < Progress::Answer || above && entry.peer != asking;
        (is_evictable && (above || !is_asking_above)).then_some(((!above, progress), at))
    });
    candidates.min().map(|(_, at)| at)
}

/// Returns the number of connections with this progress, of one peer or of all.
fn count(entries: &[Rc<Entry>], progress: Progress, peer: Option<IpAddr>) -> usize {
    let counted =
        |entry: &&Rc<Entry>| entry.progress.get() == progress && peer.is_none_or(|peer| entry.peer == peer);
    entries.iter().filter(counted).count()
}

/// Returns the oldest connection with this progress of the peer that has the most of them, and their number.
fn oldest_of_largest(entries: &[Rc<Entry>], progress: Progress) -> Option<(usize, usize)> {
    let with = entries.iter().enumerate().filter(|(_, entry)| entry.progress.get() == progress);
    let of_peer = with.map(|(at, entry)| (at, count(entries, progress, Some(entry.peer))));
    // Of equal ones, `max_by_key` returns the last.
    of_peer.rev().max_by_key(|(_, most)| *most)
}

impl Slot {
    /// Records the progress of the connection.
    pub(crate) fn reached(&self, progress: Progress) {
        self.entry.progress.set(progress);
    }

    /// Evicts the connection.
    pub(crate) fn evict(&self) {
        self.entry.evicted.notify_one();
    }

    /// Records that the connection waits for the end of the drain. If more than [`MAX_WAITERS`] do, the oldest of the
    /// peer with the most is evicted.
    pub(crate) fn waits_for_drain(&self) {
        self.reached(Progress::Drain);
        let mut entries = self.slots.entries.borrow_mut();
        if count(&entries, Progress::Drain, None) > MAX_WAITERS
            && let Some((at, _)) = oldest_of_largest(&entries, Progress::Drain)
        {
            entries.remove(at).evicted.notify_one();
        }
    }

    /// Makes the connection a stream. If there are `max` already, it evicts the oldest one of the peer with the most, so
    /// that no peer can hold all of them: each other peer gets an equal share.
    pub(crate) fn streams(&self, max: usize) -> StreamPlace {
        let mut entries = self.slots.entries.borrow_mut();
        let mut place = StreamPlace::Free;
        if count(&entries, Progress::Stream, None) >= max {
            let own = count(&entries, Progress::Stream, Some(self.entry.peer)) + 1;
            match oldest_of_largest(&entries, Progress::Stream) {
                Some((at, most)) if most > own => entries.remove(at).evicted.notify_one(),
                _ => return StreamPlace::Full,
            }
            place = StreamPlace::Evicting;
        }
        self.reached(Progress::Stream);
        place
    }

    /// Returns the progress of the connection.
    pub(crate) fn progress(&self) -> Progress {
        self.entry.progress.get()
    }

    /// Resolves when the slot is evicted.
    pub(crate) async fn evicted(&self) {
        self.entry.evicted.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.entries.borrow_mut().retain(|entry| !Rc::ptr_eq(entry, &self.entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CONNECTIONS;

    fn peer(last: u8) -> IpAddr {
        [127, 0, 0, last].into()
    }

    fn slot(taken: Taken) -> Slot {
        match taken {
            Taken::Free(slot) | Taken::Evicting(slot) => slot,
            Taken::Full => panic!("there is no slot"),
        }
    }

    fn fill(slots: &Rc<Slots>, peer: IpAddr, progress: Progress) -> Vec<Slot> {
        let taken = (0..CONNECTIONS).map(|_| slot(slots.take(peer)));
        taken.inspect(|slot| slot.reached(progress)).collect()
    }

    fn is_held(slots: &Slots, slot: &Slot) -> bool {
        slots.entries.borrow().iter().any(|entry| Rc::ptr_eq(entry, &slot.entry))
    }

    #[test]
    fn oldest_silent_connection_is_evicted_first() {
        let slots = Rc::new(Slots::new(CONNECTIONS));
        let held = fill(&slots, peer(1), Progress::Silent);
        held[0].reached(Progress::Head);
        held[2].reached(Progress::Answer);
        let first = slots.take(peer(1));
        assert!(matches!(first, Taken::Evicting(_)) && !is_held(&slots, &held[1]));
        let second = slots.take(peer(1));
        assert!(matches!(second, Taken::Evicting(_)) && !is_held(&slots, &held[3]));
        assert!(is_held(&slots, &held[0]) && is_held(&slots, &held[2]));
    }

    #[test]
    fn stream_gives_way_to_a_probe_and_an_answer_does_not() {
        let slots = Rc::new(Slots::new(CONNECTIONS));
        let held: Vec<_> = (0..CONNECTIONS)
            .map(|n| slot(slots.take(peer(u8::try_from(n / PEER_CONNECTIONS).unwrap()))))
            .collect();
        held.iter().for_each(|slot| slot.reached(Progress::Answer));
        held[5].reached(Progress::Stream);
        let probe = slot(slots.take(peer(200)));
        assert!(is_held(&slots, &probe) && !is_held(&slots, &held[5]));
        probe.reached(Progress::Answer);
        assert!(matches!(slots.take(peer(201)), Taken::Full));
    }

    #[test]
    fn peer_above_its_share_loses_an_answer() {
        let slots = Rc::new(Slots::new(CONNECTIONS));
        let held = fill(&slots, peer(1), Progress::Answer);
        assert!(matches!(slots.take(peer(1)), Taken::Full), "its own connection waits");
        let other = slot(slots.take(peer(2)));
        assert!(!is_held(&slots, &held[0]) && is_held(&slots, &held[1]));
        assert!(matches!(slots.take(peer(1)), Taken::Full), "it evicts no connection of the other peer");
        assert!(is_held(&slots, &other));
    }

    #[test]
    fn streams_are_shared_equally_among_peers() {
        const MAX: usize = 8;
        let slots = Rc::new(Slots::new(CONNECTIONS));
        let stream = |peer| {
            let slot = slot(slots.take(peer));
            (slot.streams(MAX), slot)
        };
        let first: Vec<_> = (0..MAX).map(|_| stream(peer(1))).collect();
        assert!(first.iter().all(|(place, _)| *place == StreamPlace::Free));
        assert_eq!(stream(peer(1)).0, StreamPlace::Full, "a peer evicts no stream of its own");
        let second: Vec<_> = (0..MAX / 2).map(|_| stream(peer(2))).collect();
        assert!(second.iter().all(|(place, _)| *place == StreamPlace::Evicting));
        assert!(!is_held(&slots, &first[3].1) && is_held(&slots, &first[4].1), "the oldest ones gave way");
        assert_eq!(stream(peer(2)).0, StreamPlace::Full, "both have the half");
        assert_eq!(stream(peer(3)).0, StreamPlace::Evicting);
        drop(second);
        assert_eq!(stream(peer(1)).0, StreamPlace::Free);
    }

    #[test]
    fn peers_within_their_share_keep_answers() {
        let slots = Rc::new(Slots::new(CONNECTIONS));
        let held: Vec<_> = (0..CONNECTIONS)
            .map(|n| slot(slots.take(peer(u8::try_from(n / PEER_CONNECTIONS).unwrap()))))
            .inspect(|slot| slot.reached(Progress::Answer))
            .collect();
        assert!(matches!(slots.take(peer(200)), Taken::Full));
        drop(held);
        assert!(matches!(slots.take(peer(200)), Taken::Free(_)));
    }
}
