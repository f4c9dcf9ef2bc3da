//! Delivery of a request with retries, until it is accepted, rejected or too late. Invariant: all attempts and waits
//! end by the given deadline.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use tokio::time::{Instant, sleep, timeout_at};

use crate::counts::End;
use crate::limits::{RETRY_AFTER_MAX, RETRY_FIRST_DELAY, RETRY_MAX_DELAY};
use crate::plan::{Signal, Target};
use crate::text::cut;
use crate::transport::{Failure, Reply, Transport};

/// Sends one signal's requests to its collector, one at a time.
pub(crate) struct Sender {
    signal: Signal,
    transport: Transport,
    timeout: Duration,
    /// The collector's origin, for messages.
    collector: String,
    state: State,
}

/// The state of a signal in the log, so that no message repeats.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The collector accepts requests, or nothing was sent yet.
    Delivering,
    /// Attempts fail; no item was dropped since the first failure.
    Failing,
    /// Items were dropped for this reason.
    Dropping(String),
    /// The collector rejects some items of accepted requests.
    Rejecting,
}

impl Sender {
    pub(crate) fn new(target: &Target, signal: Signal) -> io::Result<Self> {
        let transport = Transport::new(target, signal)?;
        Ok(Self {
            signal,
            transport,
            timeout: target.timeout,
            collector: target.origin(),
            state: State::Delivering,
        })
    }

    /// Sends a message, with retries until the deadline.
    pub(crate) async fn send(&mut self, message: Vec<u8>, deadline: Instant) -> End {
        let body = match self.transport.body(message) {
            Ok(body) => body,
            Err(error) => return self.refused(&error.to_string()),
        };
        let mut wait = RETRY_FIRST_DELAY;
        loop {
            let until = deadline.min(Instant::now() + self.timeout);
            let attempt = timeout_at(until, self.transport.attempt(body.clone())).await;
            let attempt = attempt.unwrap_or_else(|_| {
                Err(Failure::Retry { error: "no response in time".to_owned(), after: None })
            });
            let (error, retry_after) = match attempt {
                Ok(reply) => return self.accepted(&reply),
                Err(Failure::Refused(error)) => return self.refused(&error),
                Err(Failure::Retry { error, after }) => (error, after),
            };
            self.failing(&error);
            let pause = jittered(wait).max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
            if Instant::now() + pause >= deadline {
                if self.enter(State::Dropping(error.clone())) {
                    let (signal, collector) = (self.signal.name(), &self.collector);
                    tracing::warn!(
                        signal,
                        collector,
                        "export failed until its deadline; items are dropped: {error}"
                    );
                }
                return End::Unreachable;
            }
            sleep(pause).await;
            wait = (wait * 2).min(RETRY_MAX_DELAY);
        }
    }

    fn accepted(&mut self, reply: &Reply) -> End {
        let partial = reply.as_deref().and_then(|reply| partial_success(self.signal, reply));
        let signal = self.signal.name();
        match partial {
            Some((rejected, why)) if rejected > 0 => {
                // The collector's message may quote the request, therefore it is only logged at level debug.
                tracing::debug!(signal, "partial rejection: {}", cut(&why, 256).escape_debug());
                if self.enter(State::Rejecting) {
                    tracing::warn!(signal, collector = &self.collector, "the collector rejects some items");
                }
                End::Accepted { rejected }
            }
            _ => {
                if self.enter(State::Delivering) {
                    tracing::info!(signal, collector = &self.collector, "export recovered");
                }
                End::Accepted { rejected: 0 }
            }
        }
    }

    fn refused(&mut self, error: &str) -> End {
        if self.enter(State::Dropping(error.to_owned())) {
            tracing::warn!(
                signal = self.signal.name(),
                collector = &self.collector,
                "the collector rejected the export; items are dropped: {error}"
            );
        }
        End::Refused
    }

    /// Logs the first failed attempt after a success, because the next message may be as late as the deadline.
    fn failing(&mut self, error: &str) {
        if matches!(self.state, State::Delivering | State::Rejecting) {
            self.state = State::Failing;
            let (signal, collector) = (self.signal.name(), &self.collector);
            tracing::warn!(signal, collector, "export failed and is retried: {error}");
        }
    }

    /// Sets the state and returns true if it changed.
    fn enter(&mut self, state: State) -> bool {
        let is_new = self.state != state;
        self.state = state;
        is_new
    }
}

/// Returns the number of rejected items and the reason, if the response has a partial rejection.
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

/// Returns a random time between half of it and all of it, so that many processes do not retry at once.
fn jittered(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(wait) as f64 / u64::MAX as f64;
    wait.div_f64(2.0) + wait.div_f64(2.0).mul_f64(random)
}
