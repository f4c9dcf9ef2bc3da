//! The one queue between data plane and control plane. Bounded; a full one loses the record and
//! says so, and never makes a stream wait. What goes through it is boxed, so that the room for it
//! costs nothing until it comes. Words of refusals go the same way, where a log of them is kept.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use meter::Record;

use crate::room::Share;
use crate::turned::TurnedAway;

/// What the data plane tells.
pub enum Notice {
    /// An exchange has finished.
    Finished(Box<Finished>),
    /// A request was answered here and makes no record; only where [`Plan::tell_turned_away`](crate::Plan)
    /// asks for it.
    TurnedAway(Box<TurnedAway>),
}

impl Notice {
    /// The finished exchange, if it is one.
    pub fn finished(self) -> Option<Box<Finished>> {
        match self {
            Self::Finished(finished) => Some(finished),
            Self::TurnedAway(_) => None,
        }
    }
}

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
pub struct Outbox(SyncSender<Notice>);

/// The control plane's end.
pub type Inbox = Receiver<Notice>;

/// An outbox with room for `exchanges` finished exchanges, or words of refusals.
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
        let finished = Notice::Finished(Box::new(Finished { record, text }));
        self.0.try_send(finished).map_err(|refused| match refused {
            TrySendError::Full(Notice::Finished(back))
            | TrySendError::Disconnected(Notice::Finished(back)) => back,
            _ => unreachable!("what comes back is what was put"),
        })
    }

    /// Puts word of a refusal out; whether there was room and somebody listens.
    #[must_use]
    pub fn tell(&self, turned: TurnedAway) -> bool {
        self.0.try_send(Notice::TurnedAway(Box::new(turned))).is_ok()
    }
}
