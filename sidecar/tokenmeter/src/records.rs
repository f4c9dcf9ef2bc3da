//! The control plane's end of the outbox: takes the finished exchanges and enters their records; one
//! whose text is to be counted goes by way of the tokenizer; what was turned away goes to the access log
//! alone; what never came is said in the ledger. Counts and times, never content (law 11): a text is counted
//! and dropped.
//!
//! It looks every few milliseconds rather than being woken: waking a thread for each short request
//! cost the worker a third of its time.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::thread::JoinHandle;
use std::time::Duration;

use relay::{Finished, Missed, Notice};

use crate::access;
use crate::desk::Desk;
use crate::recount::Recount;
use crate::spend::Spend;

/// Takes what is finished on a thread of its own until the last outbox is gone and everything
/// taken is entered.
pub(crate) fn take(
    inbox: relay::Inbox,
    missed: Missed,
    desk: Arc<Desk>,
    recount: Recount,
    spend: Spend,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("records".to_owned()).spawn(move || {
        loop {
            let notice = inbox.try_recv();
            // What the outbox had no room for leaves a gap in the ledger.
            match missed.take() {
                0 => {}
                exchanges => spend.missed(exchanges),
            }
            match notice {
                // One exchange that breaks something must not cost all that follow.
                Ok(notice) => match catch_unwind(AssertUnwindSafe(|| enter(notice, &desk, &recount))) {
                    Ok(()) => {}
                    Err(_) => {
                        tracing::error!(
                            "a record broke what enters it: please report what was said on stderr"
                        );
                        spend.missed(1);
                    }
                },
                Err(TryRecvError::Empty) => std::thread::sleep(LOOK_EVERY),
                Err(TryRecvError::Disconnected) => return,
            }
        }
    })
}

fn enter(notice: Notice, desk: &Desk, recount: &Recount) {
    match notice {
        Notice::Finished(finished) => {
            let Finished { record, text } = *finished;
            match text {
                Some(text) => recount.submit(record, text),
                None => desk.enter(record),
            }
        }
        Notice::Rejection(told) => access::rejected(&told.rejection),
    }
}

/// With the default room of 4,096 records, enough for 200,000 exchanges a second.
const LOOK_EVERY: Duration = Duration::from_millis(20);
