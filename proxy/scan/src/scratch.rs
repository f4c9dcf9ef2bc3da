//! The state inside a frame. Between two frames it is empty, and most slices end there. So it belongs to the thread; a
//! scanner holds one only from a slice that ends inside a frame to the slice that ends the frame.

use std::cell::Cell;

use crate::frame::Frame;
use crate::json::Json;
use crate::limits::FREE_SCRATCHES;

/// The state inside a frame.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) json: Json,
    pub(crate) frame: Frame,
}

thread_local! {
    /// The states that no scanner of this thread holds.
    #[expect(clippy::vec_box, reason = "a scanner has it boxed")]
    static FREE: Cell<Vec<Box<Scratch>>> = const { Cell::new(Vec::new()) };
}

impl Scratch {
    /// Returns an empty state.
    pub(crate) fn take() -> Box<Self> {
        let free = FREE.try_with(|free| {
            let mut list = free.take();
            let last = list.pop();
            free.set(list);
            last
        });
        free.ok().flatten().unwrap_or_else(|| Box::new(Self { json: Json::new(), frame: Frame::new() }))
    }

    /// Returns an empty state to the thread.
    pub(crate) fn give_back(self: Box<Self>) {
        // The list is gone only while the thread ends.
        let _ = FREE.try_with(|free| {
            let mut list = free.take();
            if list.len() < FREE_SCRATCHES {
                list.push(self);
            }
            free.set(list);
        });
    }
}
