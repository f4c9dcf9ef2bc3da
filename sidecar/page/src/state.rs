//! The current state, that of the last sample. It is serialised when it is first asked for, once for all readers.

use std::cell::{OnceCell, RefCell};

use bytes::Bytes;
use live::Now;
use tokio::sync::watch;

/// The state of the last sample.
#[derive(Debug)]
pub(crate) struct State {
    now: RefCell<(Now, OnceCell<Bytes>)>,
    sampled: watch::Sender<()>,
}

impl State {
    /// Returns the state of a first sample.
    pub(crate) fn new(now: Now) -> Self {
        Self { now: RefCell::new((now, OnceCell::new())), sampled: watch::Sender::new(()) }
    }

    /// Replaces the state.
    pub(crate) fn set(&self, now: Now) {
        self.now.replace((now, OnceCell::new()));
        self.sampled.send_replace(());
    }

    /// Returns a receiver that is notified of each sample.
    pub(crate) fn samples(&self) -> watch::Receiver<()> {
        self.sampled.subscribe()
    }

    /// Returns the state as JSON.
    pub(crate) fn json(&self) -> Bytes {
        let event = self.event();
        event.slice(HEAD.len()..event.len() - TAIL.len())
    }

    /// Returns the state as an event of a stream.
    pub(crate) fn event(&self) -> Bytes {
        let (now, event) = &*self.now.borrow();
        // JSON has no line feed outside of strings, and an escaped one within.
        let serialise = || {
            let mut text = HEAD.to_vec();
            serde_json::to_writer(&mut text, now).expect("a Vec takes any bytes, and all keys are strings");
            text.extend_from_slice(TAIL);
            Bytes::from(text)
        };
        event.get_or_init(serialise).clone()
    }
}

const HEAD: &[u8] = b"event: now\ndata: ";
const TAIL: &[u8] = b"\n\n";
