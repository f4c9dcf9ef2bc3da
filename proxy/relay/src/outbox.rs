//! The only queue between data plane and control plane. It is bounded; if it is full, the worker passes the record to the
//! function [`OnFull`], and no stream waits. An item is two pointers, so the empty queue uses little memory. Reports of
//! rejections use the same queue, if the access log wants them, and at most a part of it: a client that is rejected a
//! thousand times a second costs no other client a record.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};

use meter::Record;

use crate::capacity::{Capacity, Permit};
use crate::rejection::Rejection;

/// A message from the data plane.
pub enum Notice {
    /// An exchange has finished.
    Finished(Finished),
    /// The proxy answered a request that makes no record; only if [`Plan::report_rejections`](crate::Plan) is set.
    Rejection(Box<ReportedRejection>),
}

impl Notice {
    /// The finished exchange, if it is one.
    pub fn finished(self) -> Option<Finished> {
        match self {
            Self::Finished(finished) => Some(finished),
            Self::Rejection(_) => None,
        }
    }
}

/// The report of a rejection, with its reserved place in the queue until it is dropped.
pub struct ReportedRejection {
    /// The report.
    pub rejection: Rejection,
    _permit: Permit,
}

/// A finished exchange.
pub struct Finished {
    /// Its record.
    pub record: Arc<Record>,
    /// The answer's text, if its server reports no count and a tokenizer can count it.
    pub text: Option<Box<Text>>,
}

/// A text to count: the contents of JSON strings, joined, with their escapes. It is counted and dropped; it must not be
/// stored, and no part of it may be shown (law 11).
pub struct Text {
    bytes: Vec<u8>,
    /// Its reserved part of the memory for all such texts.
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

/// The data plane's end; each worker has a clone.
#[derive(Clone)]
pub struct Outbox {
    sender: SyncSender<Notice>,
    /// The part of the queue that reports of rejections may use.
    rejections: Capacity,
    on_full: Arc<OnceLock<OnFull>>,
}

/// A function that accounts for a record for which the queue has no room, in the thread of its worker. It must not wait.
pub type OnFull = Box<dyn Fn(Arc<Record>) + Send + Sync>;

/// The control plane's end.
pub type Inbox = Receiver<Notice>;

/// Reports of rejections may use one part of this many.
const REJECTIONS_DIVISOR: usize = 4;

/// Creates an outbox for `exchanges` finished exchanges or reports of rejections.
pub fn outbox(exchanges: usize) -> (Outbox, Inbox) {
    let (sender, inbox) = sync_channel(exchanges);
    let rejections = Capacity::new(exchanges.div_ceil(REJECTIONS_DIVISOR), None);
    (Outbox { sender, rejections, on_full: Arc::default() }, inbox)
}

impl Outbox {
    /// Queues a finished exchange.
    ///
    /// # Errors
    ///
    /// Returns the exchange if the queue is full or has no receiver, after it called [`OnFull`].
    pub fn put(&self, record: Arc<Record>, text: Option<Box<Text>>) -> Result<(), Finished> {
        let finished = Notice::Finished(Finished { record, text });
        self.sender.try_send(finished).map_err(|refused| {
            let back = match refused {
                TrySendError::Full(Notice::Finished(back))
                | TrySendError::Disconnected(Notice::Finished(back)) => back,
                _ => unreachable!("the returned item is the queued one"),
            };
            if let Some(on_full) = self.on_full.get() {
                on_full(Arc::clone(&back.record));
            }
            back
        })
    }

    /// Sets the function for records for which the queue has no room. The first one stays.
    pub fn on_full(&self, on_full: OnFull) {
        self.on_full.get_or_init(|| on_full);
    }

    /// Queues the report of a rejection. Returns true if it fit and there is a receiver.
    #[must_use]
    pub fn report(&self, rejection: Rejection) -> bool {
        self.rejections.room_for(1).is_some_and(|guard| {
            let report = ReportedRejection { rejection, _permit: guard };
            self.sender.try_send(Notice::Rejection(Box::new(report))).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Rejection, outbox};
    use crate::Refusal;

    #[test]
    fn rejection_reports_leave_space_for_records() {
        let (outbox, inbox) = outbox(8);
        let refused =
            || Rejection { upstream: "u".into(), reason: Refusal::Budget, status: 429, known: None };
        assert!(outbox.report(refused()) && outbox.report(refused()));
        assert!(!outbox.report(refused()), "six of eight are for records");
        let taken = inbox.try_recv().ok();
        assert!(!outbox.report(refused()), "the reader still holds it");
        drop(taken);
        assert!(outbox.report(refused()));
    }
}
