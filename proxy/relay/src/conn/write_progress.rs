//! The progress of the writes to a client's socket, by which a client that reads too slowly is detected.

use std::cell::Cell;
use std::io;

use meter::Tick;

use super::pace::Pace;
use crate::clock;

/// The progress of the writes to one socket.
#[derive(Default)]
pub(crate) struct WriteProgress {
    /// The speed at which the client reads its responses.
    pub(crate) taking: Pace,
    /// The tick since which the socket accepts no more bytes.
    blocked: Cell<Option<Tick>>,
    /// The tick of the last write.
    last: Cell<Tick>,
    /// Nanoseconds for which bytes waited, since they were taken last.
    waited: Cell<u64>,
    timeout: Cell<Timeout>,
}

/// The state of the kernel's timeout for a client that acknowledges nothing.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Timeout {
    #[default]
    Unset,
    Set,
    Passed,
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
        self.last.set(clock::now());
        if let Some(since) = self.blocked.take() {
            self.waited.set(self.waited.get() + clock::now().since(since));
        }
    }

    /// Stores an error of the socket, which reports it once, to the first caller.
    pub(crate) fn note(&self, error: Option<&io::Error>) {
        let is_passed = error.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut);
        if is_passed && self.timeout.get() == Timeout::Set {
            self.timeout.set(Timeout::Passed);
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

    /// Returns true if something was written after `at`.
    pub(crate) fn has_written_since(&self, at: Tick) -> bool {
        self.last.get() > at
    }

    /// Records that the kernel's timeout is set. Returns false if it was before.
    pub(crate) fn arm_timeout(&self) -> bool {
        let is_new = self.timeout.get() == Timeout::Unset;
        if is_new {
            self.timeout.set(Timeout::Set);
        }
        is_new
    }

    /// Returns true if the kernel's timeout has passed.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.timeout.get() == Timeout::Passed
    }
}
