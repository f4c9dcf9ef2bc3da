//! The part of a response that was handed to the HTTP/2 library and waits for its client.

use meter::Tick;

use crate::request::in_flight::InFlight;
use crate::{clock, limits};

/// The time at which the last piece was handed over, and its bytes.
#[derive(Default)]
pub(super) struct Handed(Option<(Tick, usize)>);

impl Handed {
    /// Records that forwarded bytes wait for the client until the library polls again.
    pub(super) fn hand(&mut self, in_flight: &InFlight, bytes: usize, at: Tick) {
        if let Some(stream) = &in_flight.stream {
            self.0 = Some((at, bytes));
            stream.taking.wait();
        }
    }

    /// Reports to the exchange how long a slice waited for the client. With HTTP/1.1 the socket itself measures it. With
    /// HTTP/2 it is the time until the library polls again, if that is longer than a turn: it polls at once unless the
    /// stream's or the connection's window is full.
    pub(super) fn waited(&mut self, in_flight: &InFlight) {
        in_flight.waited();
        if let Some((handed, bytes)) = self.0.take() {
            in_flight.downloading().moved(bytes);
            let ns = clock::now().since(handed);
            if ns >= limits::CLIENT_WAIT_MIN_NS {
                in_flight.meter(|metering| metering.exchange.add_client_wait(ns));
            }
        }
    }
}
