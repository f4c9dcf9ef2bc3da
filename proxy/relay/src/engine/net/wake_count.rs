//! A waker for tests that counts its wakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Wake;

#[derive(Default)]
pub(crate) struct WakeCount(AtomicU32);

impl WakeCount {
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

impl Wake for WakeCount {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}
