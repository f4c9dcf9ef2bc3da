//! A request until it is taken, refused or out of time: the only place where anything is tried
//! again. The law: all attempts and all waits together end by the deadline they are given.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use tokio::time::{Instant, sleep, timeout_at};

use crate::counts::End;
use crate::limits::{FIRST_WAIT, LONGEST_ASKED_WAIT, LONGEST_WAIT};
use crate::plan::{Signal, Target};
use crate::text::cut;
use crate::transport::{Failure, Reply, Transport};

/// Sends one signal's requests to its collector, one at a time.
pub(crate) struct Sender {
    signal: Signal,
    transport: Transport,
    timeout: Duration,
    /// The collector, for messages.
    whom: String,
    state: State,
}

/// The last message of a signal's log, so that no message repeats.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The collector takes what it is sent, or nothing was sent yet.
    Delivering,
    /// Attempts fail; nothing was dropped since they do.
    Failing,
    /// Items were dropped for this reason.
    Dropping(String),
    /// The collector rejects some items of the requests that it takes.
    Rejecting,
}

impl Sender {
    pub(crate) fn new(target: &Target, signal: Signal) -> io::Result<Self> {
        let transport = Transport::new(target, signal)?;
        Ok(Self {
            signal,
            transport,
            timeout: target.timeout,
            whom: target.origin(),
            state: State::Delivering,
        })
    }

    /// Tries until the deadline.
    pub(crate) async fn send(&mut self, message: Vec<u8>, deadline: Instant) -> End {
        let packed = match self.transport.packed(message) {
            Ok(packed) => packed,
            Err(error) => return self.refused(&error.to_string()),
        };
        let mut wait = FIRST_WAIT;
        loop {
            let until = deadline.min(Instant::now() + self.timeout);
            let attempt = timeout_at(until, self.transport.attempt(packed.clone())).await;
            let attempt = attempt.unwrap_or_else(|_| {
                Err(Failure::Again { what: "it does not answer in time".to_owned(), wait: None })
            });
            let (what, asked) = match attempt {
                Ok(reply) => return self.taken(&reply),
                Err(Failure::Refused(what)) => return self.refused(&what),
                Err(Failure::Again { what, wait }) => (what, wait),
            };
            self.failing(&what);
            let pause = jittered(wait).max(asked.unwrap_or_default().min(LONGEST_ASKED_WAIT));
            if Instant::now() + pause >= deadline {
                if self.enter(State::Dropping(what.clone())) {
                    let (signal, whom) = (self.signal.name(), &self.whom);
                    tracing::warn!(signal, collector = whom, "not delivered in time, and dropped: {what}");
                }
                return End::Unreachable;
            }
            sleep(pause).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    fn taken(&mut self, reply: &Reply) -> End {
        let partial = reply.as_deref().and_then(|reply| partial_success(self.signal, reply));
        let signal = self.signal.name();
        match partial {
            Some((rejected, why)) if rejected > 0 => {
                // The collector's own words may repeat what it was sent.
                tracing::debug!(signal, "rejected in part: {}", cut(&why, 256).escape_debug());
                if self.enter(State::Rejecting) {
                    tracing::warn!(signal, collector = &self.whom, "it rejects some of what it is sent");
                }
                End::Taken { rejected }
            }
            _ => {
                if self.enter(State::Delivering) {
                    tracing::info!(signal, collector = &self.whom, "delivered again");
                }
                End::Taken { rejected: 0 }
            }
        }
    }

    fn refused(&mut self, what: &str) -> End {
        if self.enter(State::Dropping(what.to_owned())) {
            tracing::warn!(
                signal = self.signal.name(),
                collector = &self.whom,
                "refused, and dropped: {what}"
            );
        }
        End::Refused
    }

    /// Logs the first failed attempt after one that succeeded: the next message may come as late as the deadline.
    fn failing(&mut self, what: &str) {
        if matches!(self.state, State::Delivering | State::Rejecting) {
            self.state = State::Failing;
            let (signal, whom) = (self.signal.name(), &self.whom);
            tracing::warn!(signal, collector = whom, "not delivered yet, and tried again: {what}");
        }
    }

    /// Returns true where the state is another than before.
    fn enter(&mut self, state: State) -> bool {
        let is_new = self.state != state;
        self.state = state;
        is_new
    }
}

/// What a reply says was rejected, and why; `None` if it says nothing.
fn partial_success(signal: Signal, reply: &[u8]) -> Option<(u64, String)> {
    let (rejected, why) = match signal {
        Signal::Metric => {
            let partial = ExportMetricsServiceResponse::decode(reply).ok()?.partial_success?;
            (partial.rejected_data_points, partial.error_message)
        }
        Signal::Span => {
            let partial = ExportTraceServiceResponse::decode(reply).ok()?.partial_success?;
            (partial.rejected_spans, partial.error_message)
        }
        Signal::Log => {
            let partial = ExportLogsServiceResponse::decode(reply).ok()?.partial_success?;
            (partial.rejected_log_records, partial.error_message)
        }
    };
    Some((u64::try_from(rejected).unwrap_or(0), why))
}

/// From half of it to all of it, so that many of us do not come back at once.
fn jittered(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(wait) as f64 / u64::MAX as f64;
    wait.div_f64(2.0) + wait.div_f64(2.0).mul_f64(random)
}
