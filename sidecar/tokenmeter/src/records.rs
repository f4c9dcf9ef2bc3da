//! The control plane's end of the outbox: takes the records, tallies how their tokens were known
//! and what they add up to, and logs a line each if that is wanted. Counts and times, never content (law 11).
//!
//! It looks every few milliseconds rather than being woken: waking a thread for each short request
//! cost the worker a third of its time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::TryRecvError;
use std::thread::JoinHandle;
use std::time::Duration;

use meter::{Provenance, Record};

use crate::log::ACCESS;
use crate::totals::Totals;

/// Exchanges by how their output tokens were known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<[AtomicU64; Provenance::ALL.len()]>);

impl Tally {
    /// Name and count of each provenance, best first.
    pub(crate) fn read(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        Provenance::ALL.iter().map(|provenance| provenance.name()).zip(counts).collect()
    }

    fn add(&self, provenance: Provenance) {
        self.0[provenance as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes records on a thread of its own until the last outbox is gone.
pub(crate) fn take(
    inbox: relay::Inbox,
    tally: Tally,
    totals: Totals,
    access: bool,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("records".to_owned()).spawn(move || {
        loop {
            match inbox.try_recv() {
                Ok(record) => {
                    tally.add(record.tokens.output_provenance);
                    totals.add(&record);
                    if access {
                        log(&record);
                    }
                }
                Err(TryRecvError::Empty) => std::thread::sleep(LOOK_EVERY),
                Err(TryRecvError::Disconnected) => return,
            }
        }
    })
}

/// With the default room of 4,096 records, enough for 200,000 exchanges a second.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn log(record: &Record) {
    let milliseconds = |ns: u64| ns as f64 / 1e6;
    let (identity, tokens, timing) = (&record.identity, &record.tokens, &record.timing);
    tracing::info!(
        target: ACCESS,
        upstream = &*identity.upstream,
        model = &*identity.model,
        dialect = identity.dialect.name(),
        ending = record.ending.name(),
        status = record.status,
        streamed = record.streamed,
        input_tokens = tokens.input(),
        input_provenance = tokens.input_provenance.name(),
        output_tokens = tokens.output(),
        output_provenance = tokens.output_provenance.name(),
        duration_ms = milliseconds(timing.duration_ns),
        first_token_ms = timing.first_token_ns.map(milliseconds),
        output_rate = timing.output_rate,
        concurrency = timing.concurrency,
        "exchange"
    );
}
