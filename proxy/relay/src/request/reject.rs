//! The end of a request without a response from its upstream: its client left, or the proxy answers.

use connect::ConnectError;

use super::answer::Answer;
use super::in_flight::InFlight;
use crate::clock;
use crate::state::WorkerState;
use crate::wire::failure::{BodyError, SendFailure};

/// The reason why a request ends here.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The client left: there is no answer.
    ClientGone,
    /// The proxy answers.
    Reject(Answer),
}

impl From<Answer> for Stop {
    fn from(answer: Answer) -> Self {
        Self::Reject(answer)
    }
}

impl From<BodyError> for Stop {
    fn from(error: BodyError) -> Self {
        Self::Reject(match error {
            BodyError::ClientGone => return Self::ClientGone,
            BodyError::Malformed => Answer::malformed_body(),
            BodyError::TooSlow => Answer::slow_body(),
            BodyError::OverShare(upstream) => Answer::upstream_full(&upstream),
        })
    }
}

/// Counts and reports the answer to a request whose tenant is unknown.
pub(crate) fn reject_unopened(worker: &WorkerState, upstream: usize, answer: Answer) -> Answer {
    worker.refuse(answer.refusal);
    worker.report_rejection(upstream, (answer.refusal, answer.status.as_u16()), None);
    answer
}

/// Counts the answer to an admitted request, and ends its exchange.
pub(crate) fn reject(in_flight: &InFlight, answer: Answer) -> Answer {
    in_flight.worker.refuse(answer.refusal);
    let status = answer.status.as_u16();
    let mut metered = in_flight.metered.borrow_mut();
    metered.with(|metering| metering.answered_locally(answer.refusal, status, clock::now()));
    metered.finish();
    answer
}

/// The answer to a request for which there is no connection.
pub(crate) fn unconnected(name: &str, error: &ConnectError) -> Answer {
    match error {
        ConnectError::Timeout(_) => Answer::connect_timeout(name, &error.to_string()),
        ConnectError::Exhausted => Answer::overloaded(),
        ConnectError::Name(_) | ConnectError::Io(_) | ConnectError::Proxy(_) => {
            Answer::unreachable(name, &error.to_string())
        }
        ConnectError::Certificate(_) | ConnectError::Tls(_) => Answer::tls(name, &error.to_string()),
    }
}

/// The end of a request that was sent and has no response.
pub(crate) fn unanswered(name: &str, cause: SendFailure) -> Stop {
    let answer = match cause {
        SendFailure::Body(error) => return error.into(),
        SendFailure::HeadTooLarge => Answer::invalid(name, "answered with a head over 64 KiB or 100 fields"),
        SendFailure::Invalid => Answer::invalid(name, "did not answer in valid HTTP"),
        SendFailure::Refused | SendFailure::ConnectionError | SendFailure::NeedsHttp1 => {
            Answer::unprocessed(name)
        }
        SendFailure::Reset => Answer::broken(name, "ended the request's stream"),
        SendFailure::Silent => Answer::silent(name),
        SendFailure::Tls(fault) => Answer::tls(name, &fault.to_string()),
        SendFailure::Closed => Answer::broken(name, "closed the connection"),
    };
    answer.into()
}
