//! A connection that the trial serves, until it leaves it to hyper with the bytes that it read.

use super::Client;

impl Client {
    /// Records whether the trial serves the connection.
    pub(crate) fn set_raw(&self, is_raw: bool) {
        self.is_raw.set(is_raw);
    }

    /// Returns true while the trial serves the connection.
    pub(crate) fn is_raw(&self) -> bool {
        self.is_raw.get()
    }

    /// Returns true if its socket has nothing to read, as far as the runtime knows. Registers no task.
    pub(crate) fn is_quiet(&self) -> bool {
        self.socket.is_quiet()
    }

    /// The number of bytes that were read and put back.
    pub(crate) fn first_len(&self) -> usize {
        self.first.borrow().len()
    }

    /// Puts back bytes that were read, after those that were put back before, for the engine of the next request.
    pub(crate) fn put_back(&self, bytes: &[u8]) {
        let mut first = self.first.borrow_mut();
        *first = [&first[..], bytes].concat().into();
    }
}
