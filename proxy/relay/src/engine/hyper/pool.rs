//! Idle connections to one upstream, of one worker. The most recently used is taken first, so that
//! the others age and go. Nobody polls an idle connection: it is looked at when taken, and swept.

use std::cell::RefCell;
use std::task::{Context, Waker};
use std::time::Duration;

use meter::Tick;

use super::connection::Connection;
use crate::clock;

/// Idle connections, oldest first.
pub(super) struct Pool {
    idle: RefCell<Vec<(Box<Connection>, Tick)>>,
    size: usize,
    age_max_ns: u64,
}

impl Pool {
    pub(super) fn new(size: usize, age_max: Duration) -> Self {
        let age_max_ns = u64::try_from(age_max.as_nanos()).unwrap_or(u64::MAX);
        Self { idle: RefCell::default(), size, age_max_ns }
    }

    /// A connection that is still alive, if there is one.
    pub(super) fn take(&self) -> Option<Box<Connection>> {
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            let (mut connection, since) = self.idle.borrow_mut().pop()?;
            if clock::now().since(since) < self.age_max_ns && connection.is_alive(&mut cx) {
                connection.reused = true;
                return Some(connection);
            }
        }
    }

    /// Keeps a connection that is ready for another request; the oldest makes room.
    pub(super) fn give(&self, connection: Box<Connection>) {
        let mut idle = self.idle.borrow_mut();
        if self.size == 0 {
            return;
        }
        if idle.len() >= self.size {
            idle.remove(0);
        }
        idle.push((connection, clock::now()));
    }

    /// Closes what is too old, or was closed at the other end.
    pub(super) fn sweep(&self) {
        let mut idle = self.idle.borrow_mut();
        if idle.is_empty() {
            return;
        }
        let now = clock::now();
        let mut cx = Context::from_waker(Waker::noop());
        idle.retain_mut(|(connection, since)| {
            now.since(*since) < self.age_max_ns && connection.is_alive(&mut cx)
        });
    }

    /// Closes all.
    pub(super) fn clear(&self) {
        self.idle.take();
    }
}
