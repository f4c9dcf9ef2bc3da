//! One answer of a session: a WebSocket on which many requests and answers pass. The caller reads the messages, because
//! only their content shows to which answer they belong, and passes their names and events.

use meter::{Body, Tick};
use scan::{Event, Extent, Links, Name, Names, OtherModels, Request, Sink};

use super::Exchange;
use crate::request_state::{RequestFacts, RequestState};
use crate::response::{Form, Response};
use crate::response_reader::BodySummary;

impl Exchange {
    /// Records that the client asked for the answer at `at`, which is t0, or that the server began it by itself. `status`
    /// is that of the session's handshake. `others`: further names of the model that the server may use.
    pub fn request_in_session(
        &mut self,
        (model, others): (Name, Option<Box<OtherModels>>),
        links: Links,
        status: u16,
        at: Tick,
    ) {
        if self.request.stop().is_none() {
            return;
        }
        let facts = Request { stream: Some(true), answers: 1, prompts: 1, whole: true, ..Request::default() };
        self.model.settle(model.shared(), others, true);
        let links = (links != Links::default()).then(|| Box::new(links));
        self.request = RequestState::Read(RequestFacts { tier: None, links });
        self.response = Some(Response::new(Form::Frames));
        self.role.settle(&facts, self.dialect);
        if let Some(meter) = &mut self.meter {
            meter.requested(facts, at);
            meter.answered(status, Body::Frames);
        }
    }

    /// Records the names that a message of the answer states, and its conversation; empty if it states none. The first
    /// model and id count, and the last tier and conversation.
    pub fn name_answer(&mut self, names: &Names, conversation: Name) {
        if let RequestState::Read(facts) = &mut self.request
            && !conversation.is_empty()
        {
            facts.links.get_or_insert_default().conversation = conversation;
        }
        let Some(response) = &mut self.response else { return };
        let known = &mut response.summary.get_or_insert_default().names;
        for (known, stated) in [(&mut known.id, &names.id), (&mut known.model, &names.model)] {
            if known.is_none() {
                known.clone_from(stated);
            }
        }
        known.restate_price(names);
        known.is_compacted |= names.is_compacted;
    }

    /// Reads the events of one message of the answer, which was received at `at`. Returns the output tokens so far, if
    /// the exchange is counted.
    pub fn message(&mut self, events: &[Event], extent: Extent, at: Tick) -> Option<u64> {
        let meter = self.meter.as_mut()?;
        let mut reading = meter.read(at);
        for event in events {
            reading.event(*event);
        }
        reading.frame(extent);
        self.role.get().is_counted().then(|| meter.live_output())
    }

    /// Takes the names of an answer of a session.
    pub(super) fn take_summary(&mut self) -> BodySummary {
        let summary = self.response.as_mut().and_then(|response| response.summary.take());
        summary.map(|summary| *summary).unwrap_or_default()
    }
}
