//! The progress of the writes to a client's socket, by which a client that reads too slowly is detected.

use std::cell::Cell;
use std::io;

use meter::Tick;

use super::pace::Pace;
use crate::clock;

/// The progress of the writes to one socket.
#[derive(Default)]
pub(crate) struct WriteProgress {
    /// The tick since which the socket accepts no more bytes.
    blocked: Cell<Option<Tick>>,
    /// Nanoseconds for which bytes waited, since they were taken last.
    waited: Cell<u64>,
    /// The speed at which the client reads its responses.
    pub(crate) taking: Pace,
    /// True once the kernel has reported that the client acknowledges nothing.
    has_timed_out: Cell<bool>,
}

impl WriteProgress {
    /// Records that bytes are ready and that the socket accepts none.
    pub(crate) fn block(&self) {
        if self.blocked.get().is_none() {
            self.blocked.set(Some(clock::now()));
            self.taking.wait();
        }
    }

    /// Records the result of a write that was not blocked.
    pub(crate) fn wrote(&self, written: &io::Result<usize>) {
        self.note(written.as_ref().err());
        self.taking.moved(*written.as_ref().unwrap_or(&0));
        if let Some(since) = self.blocked.take() {
            self.waited.set(self.waited.get() + clock::now().since(since));
        }
    }

    /// Stores an error of the socket, which reports it once, to the first caller.
    pub(crate) fn note(&self, error: Option<&io::Error>) {
        if error.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            self.has_timed_out.set(true);
        }
    }

    /// Takes the time since the last call in which bytes were ready and the socket did not accept them.
    pub(crate) fn take_waited(&self) -> u64 {
        if let Some(since) = self.blocked.get() {
            let now = clock::now();
            self.blocked.set(Some(now));
            self.waited.set(self.waited.get() + now.since(since));
        }
        self.waited.take()
    }

    /// Returns true if the socket accepts no more bytes.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.get().is_some()
    }

    /// Returns true if an error was that the client acknowledges nothing.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.has_timed_out.get()
    }
}
