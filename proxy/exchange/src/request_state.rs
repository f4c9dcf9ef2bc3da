//! The request of an exchange, as far as it was read, and what of it went upstream.

use std::sync::Arc;

use scan::Links;
use usage::AddedOptions;

use crate::request_reader::RequestReader;

/// The request by the progress of its body.
pub(crate) enum RequestState {
    /// The body passes.
    Reading(RequestReader),
    /// The body is over, or is read no further.
    Read(RequestFacts),
}

/// The facts of a request that its record has.
#[derive(Default)]
pub(crate) struct RequestFacts {
    /// The service tier that the request asks for.
    pub(crate) tier: Option<Arc<str>>,
    /// The ids by which the request continues earlier ones, where its dialect has them.
    pub(crate) links: Option<Box<Links>>,
}

impl RequestState {
    /// Reads the next slice of the body.
    #[inline]
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if let Self::Reading(reader) = self {
            reader.feed(bytes);
        }
    }

    /// The model that the body named so far, while it is read.
    pub(crate) fn model(&self) -> Option<Arc<str>> {
        match self {
            Self::Reading(reader) => reader.model(),
            Self::Read(_) => None,
        }
    }

    /// Takes the reader and reads no further.
    pub(crate) fn stop(&mut self) -> Option<RequestReader> {
        match std::mem::replace(self, Self::Read(RequestFacts::default())) {
            Self::Reading(reader) => Some(reader),
            read @ Self::Read(_) => {
                *self = read;
                None
            }
        }
    }

    /// Takes the facts.
    pub(crate) fn take_facts(&mut self) -> RequestFacts {
        match self {
            Self::Reading(_) => RequestFacts::default(),
            Self::Read(facts) => std::mem::take(facts),
        }
    }
}

/// The request as it went upstream.
#[derive(Default)]
pub(crate) struct SentRequest {
    /// Times that the whole request was sent, or answered before that.
    pub(crate) attempts: u8,
    /// The members that were added to it.
    pub(crate) added: Option<AddedOptions>,
}
