//! Reads the outbox in the control plane: records of finished exchanges enter the pipeline, those with a text to count
//! by way of the tokenizer; rejections go to the access log only; lost records become a gap of the ledger. Records hold
//! counts and times, never content (law 11): a text is counted and dropped.
//!
//! The thread polls, because waking it for each short request cost the worker a third of its time.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::thread::JoinHandle;
use std::time::Duration;

use relay::{Finished, Missed, Notice};

use crate::access_log;
use crate::charger::Charger;
use crate::pipeline::Pipeline;
use crate::tokenizer_stage::TokenizerStage;

/// Starts the thread. It ends when the last outbox is dropped and every record is entered.
pub fn take(
    inbox: relay::Inbox,
    missed: Missed,
    pipeline: Arc<Pipeline>,
    tokenizer_stage: TokenizerStage,
    charger: Charger,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("records".to_owned()).spawn(move || {
        loop {
            let notice = inbox.try_recv();
            // Records that the full outbox dropped are a gap in the ledger.
            match missed.take() {
                0 => {}
                exchanges => charger.missed(exchanges),
            }
            match notice {
                // A panic on one record must not lose those that follow.
                Ok(notice) => {
                    match catch_unwind(AssertUnwindSafe(|| enter(notice, &pipeline, &tokenizer_stage))) {
                        Ok(()) => {}
                        Err(_) => {
                            tracing::error!(
                                "a record caused a panic and is lost; please report the message on stderr"
                            );
                            charger.missed(1);
                        }
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
        Notice::Finished(finished) => {
            let Finished { record, text } = *finished;
            match text {
                Some(text) => tokenizer_stage.submit(record, text),
                None => drop(pipeline.enter(record)),
            }
        }
        Notice::Rejection(told) => access_log::rejected(&told.rejection),
    }
}

/// The polling interval. With the default outbox of 4,096 records, it allows 200,000 exchanges per second.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
