//! The second attempt of a request in which usage was requested: if the server answers 400 or 422, it gets the original,
//! and only the second answer reaches the client.

use bytes::Bytes;
use http::{StatusCode, request};
use usage::AddedOptions;

use super::in_flight::InFlight;
use crate::upstream_profile::ClientKey;
use crate::{clock, limits};

/// A request before it was edited.
pub(crate) struct Original {
    pub(super) parts: request::Parts,
    pub(super) body: Bytes,
    pub(super) added: AddedOptions,
    pub(super) client: ClientKey,
    /// True if the added option may be the cause of a rejection.
    pub(super) plain: bool,
}

/// Returns true if an answer may be caused by the added options.
pub(crate) fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
}

impl Original {
    /// Returns the head and the body of the original, to be sent now.
    pub(crate) fn again(&self, in_flight: &InFlight) -> (request::Parts, Bytes) {
        in_flight.meter(|metering| metering.exchange.asked_more(None));
        (self.parts.clone(), self.body.clone())
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
