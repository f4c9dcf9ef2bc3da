//! The time for which a connection rests after a stream, by what the upstream did with earlier connections.
//!
//! Some servers (llama.cpp) close a connection after each stream without announcing it, and a request sent on the
//! closing socket is lost. A connection therefore rests after a stream, long enough for the close to arrive; for a
//! server that did so recently, each stream gets a new connection. A new connection costs 0.1 ms, a stream lasts
//! seconds. If the server kept several connections open, they rest for a short time only, so that the next stream does
//! not wait for a new connection.

use std::cell::Cell;

use meter::Tick;

use crate::limits;

/// The connections that one upstream kept open or closed after streams.
#[derive(Debug, Default)]
pub(crate) struct StreamRest {
    /// Connections that the server kept open, since the last one that it closed.
    kept: Cell<u32>,
    /// The last time that the server closed a connection after a stream.
    closed: Cell<Option<Tick>>,
}

impl StreamRest {
    /// Returns the time for which a connection rests, in nanoseconds.
    pub(crate) fn rest_ns(&self) -> u64 {
        match self.kept.get() < limits::KEPT_CONNECTIONS {
            true => limits::REST_AFTER_STREAM_NS,
            false => limits::SHORT_REST_NS,
        }
    }

    /// Returns true if the server closed a connection so recently that none is kept after a stream.
    pub(crate) fn is_pointless(&self, now: Tick) -> bool {
        self.closed.get().is_some_and(|seen| now.since(seen) < limits::CLOSING_REMEMBERED_NS)
    }

    /// Records that the server has kept a connection open for the long rest.
    pub(crate) fn note_kept(&self) {
        self.kept.set(self.kept.get().saturating_add(1));
    }

    /// Records that the server closed a connection after a stream.
    pub(crate) fn note_closed(&self, now: Tick) {
        self.kept.set(0);
        self.closed.set(Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_is_short_once_the_server_keeps_connections() {
        let rest = StreamRest::default();
        for _ in 0..limits::KEPT_CONNECTIONS {
            assert_eq!(rest.rest_ns(), limits::REST_AFTER_STREAM_NS);
            rest.note_kept();
        }
        assert_eq!(rest.rest_ns(), limits::SHORT_REST_NS);
        rest.note_closed(Tick(7));
        assert_eq!(rest.rest_ns(), limits::REST_AFTER_STREAM_NS);
        assert!(rest.is_pointless(Tick(8)) && !rest.is_pointless(Tick(8 + limits::CLOSING_REMEMBERED_NS)));
    }
}
