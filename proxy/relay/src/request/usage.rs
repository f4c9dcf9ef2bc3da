//! The usage that the proxy requests for a client: by the upstream's policy, its kind and its earlier answers, the usage
//! option is merged into the body, and the head is changed for it. If the option has no use or was rejected, the request
//! is forwarded unchanged.

use bytes::Bytes;
use exchange::{Question, Speaks, UpstreamFacts};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderValue};
use http::{HeaderMap, request};
use meter::Tick;
use scan::Dialect;
use usage::{Injection, NotInjected, Policy, UsageOptions};

use super::gathered::Gathered;
use super::in_flight::InFlight;
use super::second_attempt::Original;
use crate::upstream_profile::{ClientKey, UpstreamProfile};
use crate::{Metering, Upstream, UsageStep};

/// The rules by which usage is requested in one request.
#[derive(Clone, Copy)]
pub(crate) struct UsagePolicy<'a> {
    pub(crate) upstream: &'a Upstream,
    pub(crate) profile: &'a UpstreamProfile,
    /// The client of the request.
    pub(crate) client: ClientKey,
    /// The time at which the request began.
    pub(crate) now: Tick,
}

/// The usage to request in one request, or what determines it.
#[derive(Clone, Copy)]
pub(crate) enum Usage {
    /// It is known; `None` if the request has no usage option.
    Known(Option<Question>),
    /// The dialect, which the gate may read off the shape of the body.
    ByShape,
    /// The body, which alone determines the dialect.
    ByBody,
}

/// A request that was edited. Its head has been changed for that.
pub(crate) struct Edited {
    /// The new body.
    pub(crate) slices: Vec<Bytes>,
    /// Boxed: few requests have one, and all futures would have room for it.
    pub(crate) original: Box<Original>,
}

impl UsagePolicy<'_> {
    /// Returns the usage to request with these header fields, as far as the path determines it.
    pub(crate) fn by_path(&self, speaks: Speaks, headers: &HeaderMap) -> Usage {
        let question = speaks.usage_dialect().and_then(|dialect| self.askable(dialect, headers));
        match (speaks, question) {
            (Speaks::Invocations, Some(Ok(_))) => Usage::ByBody,
            (Speaks::Anything, _) => Usage::ByShape,
            _ => Usage::Known(question),
        }
    }

    /// Returns the usage to request in this dialect, if it has a usage option.
    fn askable(&self, dialect: Dialect, headers: &HeaderMap) -> Option<Question> {
        let Self { upstream, profile, client, now } = *self;
        let mut facts = UpstreamFacts {
            kind: upstream.kind.or_else(|| profile.found_kind()),
            usage: upstream.usage,
            has_rust_front_end: profile.has_rust_front_end(),
            sends_usage_unasked: profile.sends_usage_unasked(now),
            ..UpstreamFacts::default()
        };
        if !facts.has_option(dialect) {
            return None;
        }
        // Only where the answer matters: a question about a rejected option may use up its next attempt.
        facts.refuses_running = facts.usage == Policy::Continuous && profile.refuses_running(client, now);
        facts.refuses_include = facts.may_include(dialect) && profile.refuses_include(client, now);
        facts.question(dialect, headers)
    }

    /// Returns the usage to request by a body that was read.
    fn by_body(&self, in_flight: &InFlight, headers: &HeaderMap) -> Option<Question> {
        let facts =
            |metering: &mut Metering| (metering.exchange.dialect(), metering.exchange.asks_for_frames());
        let (dialect, asks_for_frames) = in_flight.meter(facts)?;
        let question = self.askable(dialect, headers);
        match dialect {
            Dialect::Unknown if question.is_none() && asks_for_frames => Some(Err(UsageStep::Unreadable)),
            _ => question,
        }
    }
}

impl Usage {
    /// Decides which usage is requested, and edits the request for it. Returns the edited request, if it is edited, and
    /// the step that was taken and counted; `None` if the body is needed first.
    pub(crate) fn decide(
        &mut self,
        in_flight: &InFlight,
        policy: UsagePolicy<'_>,
        parts: &mut request::Parts,
        body: Option<&Gathered>,
    ) -> Option<(Option<Edited>, Option<UsageStep>)> {
        let question = match (*self, body) {
            (Self::Known(question), _) => question,
            (Self::ByShape, _) => {
                let dialect = in_flight.meter(|metering| metering.exchange.dialect());
                dialect.and_then(|dialect| policy.askable(dialect, &parts.headers))
            }
            (Self::ByBody, None) => return None,
            (Self::ByBody, Some(Gathered::TooLarge | Gathered::NoMemory)) => Some(Err(UsageStep::TooLarge)),
            (Self::ByBody, Some(Gathered::Whole(_) | Gathered::Sealed)) => {
                policy.by_body(in_flight, &parts.headers)
            }
        };
        // A second question about a rejected option could use up its next attempt.
        *self = Self::Known(question);
        let edited = match (question, body) {
            (None, _) => Err(None),
            (Some(Err(step)), _) => Err(Some(step)),
            (Some(Ok(_)), None) => return None,
            (Some(Ok(_)), Some(Gathered::Sealed)) => Err(Some(UsageStep::Unreadable)),
            (Some(Ok(_)), Some(Gathered::TooLarge | Gathered::NoMemory)) => Err(Some(UsageStep::TooLarge)),
            (Some(Ok(options)), Some(Gathered::Whole(body))) => {
                inject(in_flight, options, policy.client, parts, body)
            }
        };
        let (edited, step) = match edited {
            Ok((edited, step)) => (Some(edited), Some(step)),
            Err(step) => (None, step),
        };
        if let Some(step) = step {
            in_flight.worker.observer.borrow_mut().usage(step);
        }
        Some((edited, step))
    }
}

/// Edits the request if usage can be requested in it. An error is the reason why not; `None` if the meter failed.
fn inject(
    in_flight: &InFlight,
    options: UsageOptions,
    client: ClientKey,
    parts: &mut request::Parts,
    body: &Bytes,
) -> Result<(Edited, UsageStep), Option<UsageStep>> {
    // The meter's panic guard: if the edit fails, the request is forwarded unchanged, unmetered.
    let edited = in_flight.meter(|metering| {
        if !metering.exchange.asks_for_frames() {
            return Err(UsageStep::NotStreamed);
        }
        match usage::inject_usage(body, options) {
            Injection::Edit { edit, added, plain } => {
                metering.exchange.asked_more(Some(added));
                let slices: Vec<Bytes> = edit.apply(body).collect();
                Ok((slices, edit.new_len(body.len()), added, plain))
            }
            Injection::Nothing(NotInjected::NotStreamed) => Err(UsageStep::NotStreamed),
            Injection::Nothing(NotInjected::AlreadyRequested) => Err(UsageStep::ClientAsked),
            Injection::Nothing(NotInjected::NotJson | NotInjected::UnexpectedType) => {
                Err(UsageStep::Unreadable)
            }
        }
    });
    let (slices, length, added, plain) = edited.ok_or(None)?.map_err(Some)?;
    let original = Original { parts: parts.clone(), body: body.clone(), added, client, plain };
    let original = Box::new(original);
    if parts.headers.contains_key(CONTENT_LENGTH) {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    // What must be removed from the answer must be readable in it.
    parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let step = if added.is_running() { UsageStep::Continuous } else { UsageStep::Injected };
    Ok((Edited { slices, original }, step))
}
