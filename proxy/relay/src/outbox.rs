//! The one queue between data plane and control plane. Bounded; a full one loses the record and
//! says so, and never makes a stream wait. What goes through it is boxed, so that the room for it
//! costs nothing until it comes. Words of refusals go the same way, where a log of them is kept, and take
//! a part of the room at most: a client that is refused a thousand times a second costs no other client a record.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use meter::Record;

use crate::capacity::{Capacity, Permit};
use crate::rejection::Rejection;

/// A message from the data plane.
pub enum Notice {
    /// An exchange has finished.
    Finished(Box<Finished>),
    /// A request was answered here and makes no record; only where [`Plan::report_rejections`](crate::Plan)
    /// asks for it.
    Rejection(Box<ReportedRejection>),
}

impl Notice {
    /// The finished exchange, if it is one.
    pub fn finished(self) -> Option<Box<Finished>> {
        match self {
            Self::Finished(finished) => Some(finished),
            Self::Rejection(_) => None,
        }
    }
}

/// Word of a refusal, with the room that it takes until it is dropped.
pub struct ReportedRejection {
    /// The report.
    pub rejection: Rejection,
    _seat: Permit,
}

/// A finished exchange.
pub struct Finished {
    /// Its record.
    pub record: Record,
    /// The answer's text, if its server counts nothing and a tokenizer can.
    pub text: Option<Text>,
}

/// A text to be counted: the insides of JSON strings, joined, escapes as they stand. It is counted
/// and dropped; nothing may keep it, and no part of it may be shown (law 11).
pub struct Text {
    bytes: Vec<u8>,
    /// Its part of the room for all of them.
    _share: Permit,
}

impl Text {
    pub(crate) fn new(bytes: Vec<u8>, share: Permit) -> Self {
        Self { bytes, _share: share }
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The data plane's end; one clone per worker.
#[derive(Clone)]
pub struct Outbox {
    sender: SyncSender<Notice>,
    /// The part of it that reports of rejections may take.
    words: Capacity,
    missed: Missed,
}

/// The number of finished exchanges that found no room.
#[derive(Clone, Debug, Default)]
pub struct Missed(Arc<AtomicU64>);

impl Missed {
    /// Records dropped since the last call. The ledger writes them down as a gap.
    pub fn take(&self) -> u64 {
        // Only after one was missed, so that looking costs the workers nothing.
        if self.0.load(Ordering::Relaxed) == 0 { 0 } else { self.0.swap(0, Ordering::Relaxed) }
    }
}

/// The control plane's end.
pub type Inbox = Receiver<Notice>;

/// Words of refusals take one part of so many at most.
const WORDS: usize = 4;

/// An outbox with room for `exchanges` finished exchanges, or words of refusals.
pub fn outbox(exchanges: usize) -> (Outbox, Inbox) {
    let (sender, inbox) = sync_channel(exchanges);
    (Outbox { sender, words: Capacity::new(exchanges.div_ceil(WORDS)), missed: Missed::default() }, inbox)
}

impl Outbox {
    /// Puts a finished exchange out; it comes back if there is no room or no receiver.
    ///
    /// # Errors
    ///
    /// The exchange that was not taken.
    pub fn put(&self, record: Record, text: Option<Text>) -> Result<(), Box<Finished>> {
        let finished = Notice::Finished(Box::new(Finished { record, text }));
        self.sender.try_send(finished).map_err(|refused| {
            self.missed.0.fetch_add(1, Ordering::Relaxed);
            match refused {
                TrySendError::Full(Notice::Finished(back))
                | TrySendError::Disconnected(Notice::Finished(back)) => back,
                _ => unreachable!("what comes back is what was put"),
            }
        })
    }

    /// The number of exchanges that found no room.
    pub fn missed(&self) -> Missed {
        self.missed.clone()
    }

    /// Puts a report of a rejection out; returns true if there was room and a receiver.
    #[must_use]
    pub fn tell(&self, rejection: Rejection) -> bool {
        self.words.room_for(1).is_some_and(|guard| {
            let told = ReportedRejection { rejection, _seat: guard };
            self.sender.try_send(Notice::Rejection(Box::new(told))).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Rejection, outbox};
    use crate::Refusal;

    #[test]
    fn words_of_refusals_leave_room_for_records() {
        let (outbox, inbox) = outbox(8);
        let refused =
            || Rejection { upstream: "u".into(), reason: Refusal::Budget, status: 429, known: None };
        assert!(outbox.tell(refused()) && outbox.tell(refused()));
        assert!(!outbox.tell(refused()), "six of eight are for records");
        let taken = inbox.try_recv().ok();
        assert!(!outbox.tell(refused()), "it is in hand");
        drop(taken);
        assert!(outbox.tell(refused()));
    }
}
