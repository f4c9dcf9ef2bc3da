//! The connections to one upstream that carry several requests at once (HTTP/2), of one worker. Requests take the oldest
//! connection with a free stream, so that the others become idle. While one is being opened to an upstream that is known
//! to speak HTTP/2, requests for which it will suffice wait for it.

use std::cell::{Cell, RefCell};
use std::future::Future;

use meter::Tick;
use tokio::sync::Notify;

use crate::wire::h2::shared_connection::Http2Connection;
use crate::wire::h2::waiting::Place;
use crate::{clock, limits};

/// Shared connections, oldest first.
pub(crate) struct SharedPool {
    entries: RefCell<Vec<Entry>>,
    /// Maximum connections without a stream, and the nanoseconds for which one may be.
    size: usize,
    idle_max_ns: u64,
    /// True once the upstream agreed on HTTP/2.
    is_known: Cell<bool>,
    /// The number of streams that the server allows on a connection, as far as is known.
    streams_max: Cell<usize>,
    /// Connections opened so far.
    added: Cell<usize>,
    /// Connections that are being opened, and requests that wait for one of them.
    opening: Cell<usize>,
    waiting: Cell<usize>,
    opened: Notify,
}

struct Entry {
    connection: Http2Connection,
    /// The sweep that first found it without a stream.
    idle_since: Cell<Option<Tick>>,
}

/// An attempt to open a connection; its drop ends the wait of others, whatever the outcome.
pub(crate) struct Opening<'p> {
    opening: &'p Cell<usize>,
    opened: &'p Notify,
}

impl SharedPool {
    /// A pool of at most `size` connections without a stream, each for at most this many nanoseconds.
    pub(crate) fn new(size: usize, idle_max_ns: u64) -> Self {
        Self {
            entries: RefCell::default(),
            size,
            idle_max_ns,
            is_known: Cell::new(false),
            streams_max: Cell::new(limits::H2_UPSTREAM_STREAMS),
            added: Cell::new(0),
            opening: Cell::new(0),
            waiting: Cell::new(0),
            opened: Notify::new(),
        }
    }

    /// Takes a stream of an open connection, if one has a free stream.
    pub(crate) fn take(&self) -> Option<Place> {
        let mut entries = self.entries.borrow_mut();
        entries.retain(|entry| entry.connection.is_open());
        let free = entries.iter().find(|entry| {
            // Kept for the next connection, whose own limit is unknown until its first frame.
            if let Some(max) = entry.connection.streams_max() {
                self.streams_max.set(max.max(1));
            }
            entry.connection.streams() < entry.connection.streams_max().unwrap_or(self.streams_max.get())
        })?;
        free.idle_since.set(None);
        Some(free.connection.place())
    }

    /// Returns true if the next stream may be the only one of its connection.
    pub(crate) fn is_idle(&self) -> bool {
        self.entries.borrow().first().is_some_and(|entry| entry.connection.streams() == 0)
    }

    /// Adds a new connection, if other requests may share it, and takes its first stream.
    pub(crate) fn add(&self, connection: Http2Connection, may_share: bool) -> Place {
        self.is_known.set(true);
        self.added.set(self.added.get().wrapping_add(1));
        let place = connection.place();
        if may_share && self.size > 0 {
            self.entries.borrow_mut().push(Entry { connection, idle_since: Cell::new(None) });
        }
        place
    }

    /// Records that the upstream agreed on HTTP/1.1.
    pub(crate) fn forget(&self) {
        self.is_known.set(false);
    }

    /// Records an attempt to open a connection.
    pub(crate) fn opening(&self) -> Opening<'_> {
        self.opening.set(self.opening.get() + 1);
        Opening { opening: &self.opening, opened: &self.opened }
    }

    /// Returns a wait for the next end of an attempt to open a connection, if a connection will have a stream for this
    /// request, too. It yields true if a connection was opened meanwhile.
    pub(crate) fn awaited(&self) -> Option<impl Future<Output = bool>> {
        // Each attempt has a stream for its own request.
        let streams = self.opening.get() * (self.streams_max.get() - 1);
        if !self.is_known.get() || self.waiting.get() >= streams {
            return None;
        }
        // Made now, not at the first poll: an attempt that ends in between is not missed.
        let opened = self.opened.notified();
        let (waiting, before) = (Waiting::new(&self.waiting), self.added.get());
        Some(async move {
            opened.await;
            drop(waiting);
            self.added.get() != before
        })
    }

    /// Closes connections that have had no stream for too long, and those without one beyond the size.
    pub(crate) fn sweep(&self) {
        let (now, mut idle) = (clock::now(), 0);
        self.entries.borrow_mut().retain(|entry| {
            // One that takes no more requests leaves the list; its streams keep it open until they end.
            if entry.connection.streams() > 0 {
                entry.idle_since.set(None);
                return entry.connection.is_open();
            }
            idle += 1;
            let since = entry.idle_since.get().unwrap_or(now);
            entry.idle_since.set(Some(since));
            idle <= self.size && now.since(since) < self.idle_max_ns && entry.connection.is_open()
        });
    }

    /// Closes connections without a stream.
    pub(crate) fn close_idle(&self) {
        self.entries.borrow_mut().retain(|entry| entry.connection.streams() > 0);
    }

    /// Closes all connections, those with streams after their last one.
    pub(crate) fn leave(&self) {
        self.entries.take();
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.opening.set(self.opening.get() - 1);
        self.opened.notify_waiters();
    }
}

/// A request that waits for a connection.
struct Waiting<'p>(&'p Cell<usize>);

impl<'p> Waiting<'p> {
    fn new(waiting: &'p Cell<usize>) -> Self {
        waiting.set(waiting.get() + 1);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
