//! Requests usage for the client: buffers the body, merges the usage option into it, updates the head, and keeps the
//! original until the server has accepted the edit. If the server answers 400 or 422, it gets the original, and only
//! the second answer reaches the client.

use std::rc::Rc;

use bytes::Bytes;
use exchange::{Question, Speaks};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderValue};
use http::{HeaderMap, Request, StatusCode, request};
use scan::Dialect;
use usage::{AddedOptions, Injection, NotInjected};

use super::body::{Gathered, Upload};
use super::in_flight::InFlight;
use super::usage_policy::UsagePolicy;
use crate::capacity::Permit;
use crate::engine::{BodyError, ClientBody};
use crate::upstream_profile::ClientKey;
use crate::{Metering, UsageStep, clock, limits};

/// A request before it was edited.
pub(crate) struct Original {
    parts: request::Parts,
    body: Bytes,
    /// Its trailers.
    trailers: Option<HeaderMap>,
    added: AddedOptions,
    client: ClientKey,
    /// True if the added option may be the cause of a rejection.
    plain: bool,
    /// Its part of the memory for all of them.
    _share: Option<Rc<Permit>>,
}

/// Decides about a request whose path does not decide. Buffers a body that alone determines its dialect.
pub(crate) async fn settle<B: ClientBody>(
    in_flight: &InFlight,
    policy: UsagePolicy<'_>,
    (speaks, headers): (Option<Speaks>, &HeaderMap),
    question: Option<Question>,
    upload: &mut Upload<B>,
    gathered: Option<Gathered>,
) -> Result<(Option<Question>, Option<Gathered>), BodyError> {
    match (speaks, question) {
        (Some(Speaks::Invocations), Some(Ok(_))) => {
            let gathered = match gathered {
                Some(gathered) => gathered,
                None => upload.gather(limits::GATHERED_BYTES).await?,
            };
            let question = match gathered {
                Gathered::Not | Gathered::Crowded => Some(Err(UsageStep::TooLarge)),
                Gathered::Whole(_) | Gathered::Sealed => question_by_body(in_flight, policy, headers),
            };
            Ok((question, Some(gathered)))
        }
        (Some(Speaks::Anything), _) => {
            // With budgets enforced, the shape of the body has decided the dialect.
            let dialect = in_flight.metered.borrow_mut().with(|metering| metering.exchange.dialect());
            Ok((dialect.and_then(|dialect| policy.askable(dialect, headers)), gathered))
        }
        (_, question) => Ok((question, gathered)),
    }
}

fn question_by_body(in_flight: &InFlight, policy: UsagePolicy<'_>, headers: &HeaderMap) -> Option<Question> {
    let facts = |metering: &mut Metering| (metering.exchange.dialect(), metering.exchange.asks_for_frames());
    let (dialect, asks_for_frames) = in_flight.metered.borrow_mut().with(facts)?;
    let question = policy.askable(dialect, headers);
    match dialect {
        Dialect::Unknown if question.is_none() && asks_for_frames => Some(Err(UsageStep::Unreadable)),
        _ => question,
    }
}

/// Edits the request if usage can be requested in it; returns the original then. `gathered` is the body, if it is
/// buffered already.
pub(crate) async fn inject<B: ClientBody>(
    in_flight: &InFlight,
    question: Option<Question>,
    client: ClientKey,
    parts: &mut request::Parts,
    upload: &mut Upload<B>,
    gathered: Option<Gathered>,
) -> Result<Option<Original>, BodyError> {
    let options = match question {
        Some(Ok(options)) => options,
        Some(Err(step)) => {
            in_flight.usage(step);
            return Ok(None);
        }
        None => return Ok(None),
    };
    let gathered = match gathered {
        Some(gathered) => gathered,
        None => upload.gather(limits::GATHERED_BYTES).await?,
    };
    let body = match gathered {
        Gathered::Whole(body) => body,
        Gathered::Sealed => {
            in_flight.usage(UsageStep::Unreadable);
            return Ok(None);
        }
        Gathered::Not | Gathered::Crowded => {
            in_flight.usage(UsageStep::TooLarge);
            return Ok(None);
        }
    };
    // The meter's panic guard: if the edit fails, the request is forwarded unchanged, unmetered.
    let edited = in_flight.metered.borrow_mut().with(|metering| {
        if !metering.exchange.asks_for_frames() {
            return Err(UsageStep::NotStreamed);
        }
        match usage::inject_usage(&body, options) {
            Injection::Edit { edit, added, plain } => {
                metering.exchange.asked_more(Some(added));
                let slices: Vec<Bytes> = edit.apply(&body).collect();
                Ok((slices, edit.new_len(body.len()), added, plain))
            }
            Injection::Nothing(NotInjected::NotStreamed) => Err(UsageStep::NotStreamed),
            Injection::Nothing(NotInjected::AlreadyRequested) => Err(UsageStep::ClientAsked),
            Injection::Nothing(NotInjected::NotJson | NotInjected::UnexpectedType) => {
                Err(UsageStep::Unreadable)
            }
        }
    });
    let (slices, length, added, plain) = match edited {
        Some(Ok(edited)) => edited,
        Some(Err(step)) => {
            in_flight.usage(step);
            return Ok(None);
        }
        None => return Ok(None),
    };
    let (head, trailers) = (parts.clone(), upload.trailers().cloned());
    let original = Original { parts: head, body, trailers, added, client, plain, _share: upload.share() };
    upload.replace(slices.into_iter());
    if parts.headers.contains_key(CONTENT_LENGTH) {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    // What must be removed from the answer must be readable in it.
    parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    in_flight.usage(if added.is_running() { UsageStep::Continuous } else { UsageStep::Injected });
    Ok(Some(original))
}

/// Returns true if an answer may be caused by the added options.
pub(crate) fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
}

impl Original {
    /// The original request, to be sent now.
    pub(crate) fn request<B: ClientBody>(&self, in_flight: &Rc<InFlight>) -> Request<Upload<B>> {
        in_flight.metered.borrow_mut().with(|metering| metering.exchange.asked_more(None));
        let body = Upload::again(self.body.clone(), self.trailers.clone(), in_flight);
        Request::from_parts(self.parts.clone(), body)
    }

    /// Returns true if the beginning of a rejection names an option that was added. By a rejection with another cause,
    /// clients whose requests fail once could stop the proxy from requesting usage at all.
    pub(crate) fn is_named(&self, beginning: &[u8]) -> bool {
        let beginning = &beginning[..beginning.len().min(limits::REJECTION_BYTES)];
        let contains = |text: &[u8], name: &str| text.windows(name.len()).any(|part| part == name.as_bytes());
        // A message may repeat what the client wrote.
        let has = |name: &&str| contains(beginning, name) && !contains(&self.body, name);
        let running = ["continuous_usage_stats", "timings_per_token"];
        has(&"stream_options")
            || self.added.include && has(&"include_usage")
            || self.added.is_running() && running.iter().any(has)
    }

    /// Records that the original was answered with `status`: if that is a success, and the rejection named an added
    /// option, the server rejects that. Not if a flag was written in a way that this server may read differently.
    pub(crate) fn answered(&self, in_flight: &InFlight, is_named: bool, status: StatusCode) {
        if is_named && self.plain && status.is_success() {
            in_flight.worker.profiles[in_flight.upstream].refuses(self.added, self.client, clock::now());
        }
    }
}
