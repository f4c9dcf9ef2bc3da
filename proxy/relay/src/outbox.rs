//! The one queue between data plane and control plane. Bounded; a full one loses the record and
//! says so, and never makes a stream wait. Records are boxed, so that the room for them costs
//! nothing until they come.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use meter::Record;

/// The data plane's end; one clone per worker.
#[derive(Clone)]
pub struct Outbox(SyncSender<Box<Record>>);

/// The control plane's end.
pub type Inbox = Receiver<Box<Record>>;

/// An outbox with room for `records` finished exchanges.
pub fn outbox(records: usize) -> (Outbox, Inbox) {
    let (sender, inbox) = sync_channel(records);
    (Outbox(sender), inbox)
}

impl Outbox {
    /// Puts a record out; false if there was no room or nobody listens.
    pub fn put(&self, record: Record) -> bool {
        self.0.try_send(Box::new(record)).is_ok()
    }
}
