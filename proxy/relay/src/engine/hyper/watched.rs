//! The requests that the sweep looks at. A request leaves when it ends, so that none is kept for the sweep.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::visit::Visit;

/// Requests by their place.
#[derive(Default)]
pub(super) struct Watched {
    places: RefCell<Vec<Option<Weak<Visit>>>>,
    free: RefCell<Vec<usize>>,
}

impl Watched {
    /// Adds a request; its place.
    pub(super) fn add(&self, visit: Weak<Visit>) -> usize {
        let mut places = self.places.borrow_mut();
        if let Some(place) = self.free.borrow_mut().pop() {
            places[place] = Some(visit);
            return place;
        }
        places.push(Some(visit));
        places.len() - 1
    }

    /// Removes the request at a place.
    pub(super) fn remove(&self, place: usize) {
        self.places.borrow_mut()[place] = None;
        self.free.borrow_mut().push(place);
    }

    /// All requests.
    pub(super) fn all(&self) -> Vec<Rc<Visit>> {
        self.places.borrow().iter().flatten().filter_map(Weak::upgrade).collect()
    }
}
