//! The requests that the sweep checks. A request is removed when it ends, so the sweep keeps none alive.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Requests by their index.
pub(crate) struct Watched<T> {
    places: RefCell<Vec<Option<Weak<T>>>>,
    free: RefCell<Vec<usize>>,
}

impl<T> Default for Watched<T> {
    fn default() -> Self {
        Self { places: RefCell::default(), free: RefCell::default() }
    }
}

impl<T> Watched<T> {
    /// Adds a request; returns its index.
    pub(crate) fn add(&self, request: Weak<T>) -> usize {
        let mut places = self.places.borrow_mut();
        if let Some(place) = self.free.borrow_mut().pop() {
            places[place] = Some(request);
            return place;
        }
        places.push(Some(request));
        places.len() - 1
    }

    /// Removes the request at an index.
    pub(crate) fn remove(&self, place: usize) {
        self.places.borrow_mut()[place] = None;
        self.free.borrow_mut().push(place);
    }

    /// All requests.
    pub(crate) fn all(&self) -> Vec<Rc<T>> {
        self.places.borrow().iter().flatten().filter_map(Weak::upgrade).collect()
    }
}
