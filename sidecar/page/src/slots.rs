//! The connections that are served at once. The law: a new connection always gets a slot while some other
//! connection has asked for nothing yet, so that a probe is answered whatever else holds connections open.
//!
//! A peer's share binds only when all slots are taken, and only the slots of a peer above it are given away
//! before those of others.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;

use tokio::sync::Notify;

use tokio::time::sleep;

use crate::limits::{PEER_CONNECTIONS, SLOT_PAUSE};

/// The progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// It has sent nothing.
    Silent,
    /// It has sent a part of a request head.
    Head,
    /// It is being answered.
    Answer,
}

/// All slots.
#[derive(Debug)]
pub(crate) struct Slots {
    most: usize,
    /// Oldest first.
    seats: RefCell<Vec<Rc<Seat>>>,
    waiting: Cell<usize>,
}

#[derive(Debug)]
struct Seat {
    peer: IpAddr,
    progress: Cell<Progress>,
    evicted: Notify,
}

/// One connection's slot; given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Rc<Slots>,
    seat: Rc<Seat>,
}

/// A connection that waits for a slot.
#[derive(Debug)]
pub(crate) struct Waiting(Rc<Slots>);

/// The result of asking for a slot.
#[derive(Debug)]
pub(crate) enum Taken {
    /// One was free.
    Free(Slot),
    /// Another connection lost its slot.
    Evicting(Slot),
    /// Every connection is being answered, and no other peer has more than its share.
    Full,
}

impl Slots {
    /// So many slots, all of them free.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, seats: RefCell::default(), waiting: Cell::new(0) }
    }

    /// A slot for a new connection from `peer`.
    pub(crate) fn take(self: &Rc<Self>, peer: IpAddr) -> Taken {
        let mut seats = self.seats.borrow_mut();
        let full = seats.len() >= self.most;
        if full {
            let Some(victim) = victim(&seats, peer) else { return Taken::Full };
            seats.remove(victim).evicted.notify_one();
        }
        let seat = Rc::new(Seat { peer, progress: Cell::new(Progress::Silent), evicted: Notify::new() });
        seats.push(Rc::clone(&seat));
        let slot = Slot { slots: Rc::clone(self), seat };
        if full { Taken::Evicting(slot) } else { Taken::Free(slot) }
    }

    /// A place among those that wait for a slot; `None` if there are as many of them as slots.
    pub(crate) fn wait(self: &Rc<Self>) -> Option<Waiting> {
        let waiting = self.waiting.get();
        (waiting < self.most).then(|| {
            self.waiting.set(waiting + 1);
            Waiting(Rc::clone(self))
        })
    }
}

impl Waiting {
    /// A slot for the connection of `peer`, as soon as there is one.
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

/// The connection that goes first: of a peer above its share if there is one, of those the one that has come
/// least far, and the oldest of those. A peer above its share takes no slot from a peer within its own, and an
/// answer under way goes only for another peer.
fn victim(seats: &[Rc<Seat>], asking: IpAddr) -> Option<usize> {
    let is_above = |peer: IpAddr| seats.iter().filter(|seat| seat.peer == peer).count() > PEER_CONNECTIONS;
    let greedy = is_above(asking);
    let candidates = seats.iter().enumerate().filter_map(|(at, seat)| {
        let (progress, above) = (seat.progress.get(), is_above(seat.peer));
        let may_go = progress < Progress::Answer || above && seat.peer != asking;
        (may_go && (above || !greedy)).then_some(((!above, progress), at))
    });
    candidates.min().map(|(_, at)| at)
}

impl Slot {
    /// The connection has come this far.
    pub(crate) fn reached(&self, progress: Progress) {
        self.seat.progress.set(progress);
    }

    /// Ends when the slot is given to another connection.
    pub(crate) async fn evicted(&self) {
        self.seat.evicted.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.seats.borrow_mut().retain(|seat| !Rc::ptr_eq(seat, &self.seat));
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
        slots.seats.borrow().iter().any(|seat| Rc::ptr_eq(seat, &slot.seat))
    }

    #[test]
    fn oldest_silent_connection_goes_first() {
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
    fn peer_above_its_share_loses_an_answer() {
        let slots = Rc::new(Slots::new(CONNECTIONS));
        let held = fill(&slots, peer(1), Progress::Answer);
        assert!(matches!(slots.take(peer(1)), Taken::Full), "its own waits");
        let other = slot(slots.take(peer(2)));
        assert!(!is_held(&slots, &held[0]) && is_held(&slots, &held[1]));
        assert!(matches!(slots.take(peer(1)), Taken::Full), "it takes none of the other's");
        assert!(is_held(&slots, &other));
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
