//! The one queue between data plane and control plane. Bounded; a full one loses the record and
//! says so, and never makes a stream wait.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use meter::Record;

/// The data plane's end; one clone per worker.
#[derive(Clone)]
pub struct Outbox(SyncSender<Record>);

/// The control plane's end.
pub type Inbox = Receiver<Record>;

/// An outbox with room for `records` finished exchanges.
pub fn outbox(records: usize) -> (Outbox, Inbox) {
    let (sender, inbox) = sync_channel(records);
    (Outbox(sender), inbox)
}

impl Outbox {
    /// Puts a record out; false if there was no room or nobody listens.
    pub fn put(&self, record: Record) -> bool {
        self.0.try_send(record).is_ok()
    }
}
