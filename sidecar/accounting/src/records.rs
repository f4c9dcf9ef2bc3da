//! Reads the outbox in the control plane: records of finished exchanges enter the pipeline, those with a text to count
//! by way of the tokenizer; rejections go to the access log only. Records hold counts and times, never content (law 11): a
//! text is counted and dropped.
//!
//! The thread polls, because waking it for each short request cost the worker a third of its time.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::thread::JoinHandle;
use std::time::Duration;

use relay::{Finished, Notice};

use crate::access_log;
use crate::charger::Charger;
use crate::pipeline::Pipeline;
use crate::tokenizer_stage::TokenizerStage;

/// Starts the thread. It ends when the last outbox is dropped and every record is entered.
pub fn take(
    inbox: relay::Inbox,
    pipeline: Arc<Pipeline>,
    tokenizer_stage: TokenizerStage,
    charger: Charger,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("records".to_owned()).spawn(move || {
        loop {
            match inbox.try_recv() {
                Ok(notice) => {
                    let ended_unix_ns = match &notice {
                        Notice::Finished(finished) => Some(finished.record.ended_unix_ns()),
                        Notice::Rejection(_) => None,
                    };
                    // A panic on one record must not lose those that follow.
                    let entered =
                        catch_unwind(AssertUnwindSafe(|| enter(notice, &pipeline, &tokenizer_stage)));
                    if entered.is_err() {
                        tracing::error!(
                            "a record caused a panic and is lost; please report the message on stderr"
                        );
                        ended_unix_ns.into_iter().for_each(|ended| charger.missed(ended));
                    }
                }
                Err(TryRecvError::Empty) => std::thread::sleep(POLL_INTERVAL),
                Err(TryRecvError::Disconnected) => return,
            }
        }
    })
}

fn enter(notice: Notice, pipeline: &Pipeline, tokenizer_stage: &TokenizerStage) {
    match notice {
        Notice::Finished(Finished { record, text: Some(text) }) => tokenizer_stage.submit(record, *text),
        Notice::Finished(Finished { record, text: None }) => drop(pipeline.enter(record)),
        Notice::Rejection(told) => access_log::rejected(&told.rejection),
    }
}

/// The polling interval. With the default outbox of 4,096 records, it allows 200,000 exchanges per second.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
