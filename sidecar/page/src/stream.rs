//! Streams of the state, one event per second. Invariants: an event is serialised once for all streams; a reader that
//! does not take its events in [`STREAM_MAX_STALL`] is closed, and until then only one event waits for it.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::limits::{MAX_STREAMS, STREAM_MAX_STALL};
use crate::slots::Slot;
use crate::state::State;

/// Returns the maximum number of streams: a quarter of the listener's connections, and at most [`MAX_STREAMS`].
pub(crate) fn most(connections: usize) -> usize {
    (connections / 4).clamp(1, MAX_STREAMS)
}

/// The events of one stream, as the body of a response.
#[derive(Debug)]
pub(crate) struct Events(Receiver<Bytes>);

impl Events {
    /// Opens a stream of `state`. It ends with the connection of `slot`, which it closes if the reader stalls, and before
    /// the first event for which `may_go_on` is false.
    pub(crate) fn open(state: Rc<State>, slot: Rc<Slot>, may_go_on: impl Fn() -> bool + 'static) -> Self {
        let (sender, receiver) = channel(1);
        spawn_local(async move {
            if feed(&state, &sender, may_go_on).await.is_err() {
                slot.evict();
            }
        });
        Self(receiver)
    }

    /// Returns the next event.
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

/// The reader did not take its events in time.
struct Stalled;

/// Sends an event for each sample, until the connection ends or `may_go_on` is false.
async fn feed(state: &State, to: &Sender<Bytes>, may_go_on: impl Fn() -> bool) -> Result<(), Stalled> {
    let mut samples = state.samples();
    while may_go_on() {
        match timeout(STREAM_MAX_STALL, to.send(state.event())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(Stalled),
        }
        tokio::select! {
            sampled = samples.changed() => if sampled.is_err() { return Ok(()) },
            () = to.closed() => return Ok(()),
        }
    }
    Ok(())
}
