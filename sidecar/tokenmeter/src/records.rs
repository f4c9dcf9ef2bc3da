//! The control plane's end of the outbox: takes the finished exchanges and enters their records; one
//! whose text is to be counted goes by way of the tokenizer; what was turned away goes to the access log
//! alone. Counts and times, never content
//! (law 11): a text is counted and dropped.
//!
//! It looks every few milliseconds rather than being woken: waking a thread for each short request
//! cost the worker a third of its time.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::thread::JoinHandle;
use std::time::Duration;

use relay::{Finished, Notice};

use crate::access;
use crate::desk::Desk;
use crate::recount::Recount;

/// Takes what is finished on a thread of its own until the last outbox is gone and everything
/// taken is entered.
pub(crate) fn take(inbox: relay::Inbox, desk: Arc<Desk>, recount: Recount) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("records".to_owned()).spawn(move || {
        loop {
            match inbox.try_recv() {
                Ok(Notice::Finished(finished)) => {
                    let Finished { record, text } = *finished;
                    match text {
                        Some(text) => recount.submit(record, text),
                        None => desk.enter(record),
                    }
                }
                Ok(Notice::TurnedAway(told)) => access::turned_away(&told.turned),
                Err(TryRecvError::Empty) => std::thread::sleep(LOOK_EVERY),
                Err(TryRecvError::Disconnected) => return,
            }
        }
    })
}

/// With the default room of 4,096 records, enough for 200,000 exchanges a second.
const LOOK_EVERY: Duration = Duration::from_millis(20);
