//! The one queue between data plane and control plane. Bounded; a full one loses the record and
//! says so, and never makes a stream wait. What goes through it is boxed, so that the room for it
//! costs nothing until it comes.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use meter::Record;

use crate::room::Share;

/// A finished exchange.
pub struct Finished {
    /// What is known of it.
    pub record: Record,
    /// The answer's text, if its server counts nothing and somebody else can.
    pub text: Option<Text>,
}

/// A text to be counted: the insides of JSON strings, joined, escapes as they stand. It is counted
/// and dropped; nothing may keep it, and no part of it may be shown (law 11).
pub struct Text {
    bytes: Vec<u8>,
    /// Its part of the room for all of them.
    _share: Share,
}

impl Text {
    pub(crate) fn new(bytes: Vec<u8>, share: Share) -> Self {
        Self { bytes, _share: share }
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The data plane's end; one clone per worker.
#[derive(Clone)]
pub struct Outbox(SyncSender<Box<Finished>>);

/// The control plane's end.
pub type Inbox = Receiver<Box<Finished>>;

/// An outbox with room for `exchanges` finished exchanges.
pub fn outbox(exchanges: usize) -> (Outbox, Inbox) {
    let (sender, inbox) = sync_channel(exchanges);
    (Outbox(sender), inbox)
}

impl Outbox {
    /// Puts a finished exchange out; it comes back if there was no room or nobody listens.
    ///
    /// # Errors
    ///
    /// What was not taken.
    pub fn put(&self, record: Record, text: Option<Text>) -> Result<(), Box<Finished>> {
        self.0.try_send(Box::new(Finished { record, text })).map_err(|refused| match refused {
            TrySendError::Full(back) | TrySendError::Disconnected(back) => back,
        })
    }
}
