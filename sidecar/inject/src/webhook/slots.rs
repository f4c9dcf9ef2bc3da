//! The connections that hold a slot. While all slots are in use, a new connection evicts the one whose last request is
//! the oldest: idle and slow peers cannot keep a review out.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::sync::Notify;

/// The connections, in the order of their last request, or of their start.
#[derive(Debug, Default)]
pub(super) struct Slots(RefCell<Vec<Rc<Notify>>>);

/// One connection's entry; dropping it removes the entry.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Rc<Slots>,
    evicted: Rc<Notify>,
}

impl Slots {
    /// Adds a connection.
    pub(super) fn add(self: &Rc<Self>) -> Slot {
        let evicted = Rc::new(Notify::new());
        self.0.borrow_mut().push(evicted.clone());
        Slot { slots: self.clone(), evicted }
    }

    /// Evicts the first connection, if there is one.
    pub(super) fn evict(&self) {
        let mut entries = self.0.borrow_mut();
        if !entries.is_empty() {
            entries.remove(0).notify_one();
        }
    }
}

impl Slot {
    /// Records a request.
    pub(super) fn touch(&self) {
        let mut entries = self.slots.0.borrow_mut();
        if let Some(at) = entries.iter().position(|entry| Rc::ptr_eq(entry, &self.evicted)) {
            entries[at..].rotate_left(1);
        }
    }

    /// Resolves when the connection is evicted.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.0.borrow_mut().retain(|entry| !Rc::ptr_eq(entry, &self.evicted));
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::{Slot, Slots};

    async fn is_evicted(slot: &Slot) -> bool {
        timeout(Duration::ZERO, slot.evicted()).await.is_ok()
    }

    #[tokio::test]
    async fn connection_with_the_oldest_request_is_evicted() {
        let slots = Rc::new(Slots::default());
        let [active, gone, idle, newest] = [(); 4].map(|()| slots.add());
        active.touch();
        drop(gone);
        slots.evict();
        assert!(is_evicted(&idle).await);
        slots.evict();
        assert!(is_evicted(&newest).await && !is_evicted(&active).await);
        newest.touch();
        slots.evict();
        assert!(is_evicted(&active).await);
        slots.evict();
    }
}
