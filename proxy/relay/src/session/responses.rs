//! The responses of a session, each metered as an exchange of its own. The client asks for one, or the server begins it
//! by itself once the speaker's turn has ended.

use std::rc::Rc;
use std::sync::Arc;

use exchange::RoleSource;
use http::HeaderMap;
use meter::Tick;
use scan::{Dialect, Event, Links, MessageKind, Name, Names, OtherModels};
use tenant::TenantIdentity;

use super::messages::Message;
use crate::metering::metered::Metered;
use crate::state::WorkerState;
use crate::{Metering, Passthrough, clock};

/// The responses of one session that have not ended.
pub(super) struct Responses {
    pub(super) worker: Rc<WorkerState>,
    pub(super) origin: Origin,
    /// The model of the session.
    pub(super) model: SessionModel,
    /// The model that transcribes the speaker's words.
    transcription_model: SessionModel,
    /// The end of the speaker's last turn.
    turn_end: Option<Tick>,
    open: Vec<PendingResponse>,
}

/// A model of a session. The server's statement holds; the client may not get the model that it requests.
#[derive(Clone, Copy, Default)]
pub(super) struct SessionModel {
    /// The model that the server states; empty if it states none.
    stated: Name,
    /// The model that the client requested since the server's last statement; empty if it requested none.
    pub(super) proposed: Name,
}

impl SessionModel {
    /// The model; empty if unknown.
    pub(super) fn name(&self) -> Name {
        if self.stated.is_empty() { self.proposed } else { self.stated }
    }

    fn learn(&mut self, name: &Name, by: Side) {
        match by {
            _ if name.is_empty() => {}
            Side::Client => self.proposed = *name,
            Side::Server => *self = Self { stated: *name, proposed: Name::default() },
        }
    }
}

/// The sender of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// The facts that all responses of a session share.
pub(super) struct Origin {
    /// The index of the upstream in the plan.
    pub(super) upstream: usize,
    pub(super) dialect: Dialect,
    /// The models that the handshake names: the server may use any, until it states one.
    pub(super) models: OtherModels,
    /// The fields of the handshake that name a trace.
    pub(super) headers: HeaderMap,
    /// True if the client's connection has TLS.
    pub(super) is_tls: bool,
    pub(super) tenant: TenantIdentity,
    pub(super) role: RoleSource,
}

/// A response that has not ended.
struct PendingResponse {
    kind: Kind,
    /// The id of the response, or of the item that is transcribed.
    id: Name,
    /// The `stream_id`, on a WebSocket with several responses at a time.
    stream: Name,
    /// The id of the client's message that requested it.
    request: Name,
    /// The instant of an error that may have ended it: the server may also go on, and report the usage.
    failed_at: Option<Tick>,
    metered: Metered,
}

/// The kind of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The client requested it; the server has not begun it.
    Asked,
    /// A response that the server has begun.
    Response,
    /// vLLM's transcription.
    Transcript,
    /// The transcription of the speaker's words.
    InputTranscript,
}

impl Responses {
    pub(super) fn new(worker: &Rc<WorkerState>, origin: Origin) -> Self {
        let first = origin.models.names().first();
        let proposed = first.map(|name| Name::cut(name.as_bytes())).unwrap_or_default();
        Self {
            worker: Rc::clone(worker),
            origin,
            model: SessionModel { proposed, ..SessionModel::default() },
            transcription_model: SessionModel::default(),
            turn_end: None,
            open: Vec::new(),
        }
    }

    /// Returns true while a response is expected or in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.open
            .iter()
            .any(|response| response.kind != Kind::InputTranscript && response.failed_at.is_none())
    }

    /// Returns true while a response is in progress that the server has begun.
    pub(super) fn is_responding(&self) -> bool {
        let is_begun =
            |response: &PendingResponse| matches!(response.kind, Kind::Response | Kind::Transcript);
        self.open.iter().any(|response| is_begun(response) && response.failed_at.is_none())
    }

    /// Returns the models of the handshake that the server may use.
    pub(super) fn possible_models(&self) -> &[Arc<str>] {
        if self.model.stated.is_empty() { self.origin.models.names() } else { &[] }
    }

    /// Returns true if a further response would not be metered.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= RESPONSES_MAX && self.dispensable().is_none()
    }

    /// Returns the response that is given up when there are too many: the server may never begin or continue it.
    fn dispensable(&self) -> Option<usize> {
        let failed = self.position(|response| response.failed_at.is_some());
        failed.or_else(|| self.position(|response| response.kind == Kind::Asked))
    }

    /// Reads a message of the client.
    pub(super) fn sent(&mut self, message: Message<'_>, at: Tick) {
        let envelope = message.envelope;
        match envelope.kind {
            MessageKind::Create => {
                let model =
                    Some(message.model()).filter(|model| !model.is_empty()).unwrap_or(self.model.name());
                self.begin(Kind::Asked, message, model, at);
            }
            MessageKind::Commit => self.turn_end = Some(at),
            MessageKind::Session => self.learn(message, Side::Client),
            _ => {}
        }
    }

    /// Reads a message of the server. Returns true if it begins a response for which the client did not ask.
    pub(super) fn received(&mut self, message: Message<'_>, at: Tick) -> bool {
        let envelope = message.envelope;
        let mut is_unasked = false;
        match envelope.kind {
            MessageKind::Session => self.learn(message, Side::Server),
            MessageKind::TurnEnd => self.turn_end = Some(at),
            MessageKind::Created => {
                // In a stream, one response follows another: a failed one has ended.
                while let Some(place) = self
                    .position(|response| response.failed_at.is_some() && response.stream == envelope.stream)
                {
                    self.open.remove(place).leave();
                }
                let asked = self
                    .position(|response| response.kind == Kind::Asked && response.stream == envelope.stream);
                // A server without lanes ignores that the client names one.
                let has_no_lanes = envelope.stream.is_empty();
                let asked =
                    asked.or_else(|| self.position(|response| has_no_lanes && response.kind == Kind::Asked));
                is_unasked = asked.is_none();
                let model = self.model.name();
                let place = asked.or_else(|| self.begin_unasked(Kind::Response, message, model, at));
                if let Some(place) = place {
                    let stated = self.model.stated;
                    let response = &mut self.open[place];
                    response.stream = envelope.stream;
                    (response.kind, response.id) = (Kind::Response, Name::cut(message.names.id().as_bytes()));
                    response.read(message, at);
                    response.answered_by(&stated);
                    response.metered.with(Metering::accept);
                }
            }
            MessageKind::Part | MessageKind::Done => {
                let id = match envelope.response.as_str() {
                    "" => message.names.id(),
                    id => id,
                };
                let is_one = |response: &PendingResponse| match id {
                    _ if response.kind != Kind::Response => false,
                    "" => response.stream == envelope.stream,
                    id => response.id.as_str() == id,
                };
                let place = self.position(is_one);
                self.pass(place, message, envelope.kind == MessageKind::Done, at);
            }
            MessageKind::Transcript | MessageKind::TranscriptDone => {
                let place = self.position(|response| response.kind == Kind::Transcript);
                is_unasked = place.is_none();
                let place =
                    place.or_else(|| self.begin_unasked(Kind::Transcript, message, self.model.name(), at));
                self.pass(place, message, envelope.kind == MessageKind::TranscriptDone, at);
            }
            MessageKind::InputTranscript | MessageKind::InputTranscriptDone => {
                let is_one = |response: &PendingResponse| {
                    response.kind == Kind::InputTranscript && response.id == envelope.item
                };
                let place = self.position(is_one).or_else(|| {
                    let model = self.transcription_model.name();
                    let place = self.begin_unasked(Kind::InputTranscript, message, model, at)?;
                    self.open[place].id = envelope.item;
                    Some(place)
                });
                self.pass(place, message, envelope.kind == MessageKind::InputTranscriptDone, at);
            }
            MessageKind::Error => {
                let place = self.failed(message);
                // The error may belong to another message of the client; then the response goes on.
                let may_go_on = place.is_some_and(|place| self.open[place].kind == Kind::Response);
                self.pass(place, message, !may_go_on, at);
                if let Some(place) = place.filter(|_| may_go_on) {
                    self.open[place].failed_at.get_or_insert(at);
                }
            }
            MessageKind::Create
            | MessageKind::Append
            | MessageKind::Commit
            | MessageKind::Other
            | MessageKind::Untyped => {}
        }
        is_unasked
    }

    /// Ends every response because the client has left.
    pub(super) fn client_left(&mut self) {
        self.open.drain(..).for_each(PendingResponse::leave);
    }

    /// Ends every response because the upstream has closed the connection.
    pub(super) fn upstream_cut(&mut self) {
        for mut response in self.open.drain(..) {
            match response.failed_at {
                Some(_) => response.leave(),
                None => drop(response.metered.with(|metering| metering.upstream_cut(clock::now()))),
            }
        }
    }

    /// Ends every response because the server's messages can no longer be read.
    pub(super) fn unreadable(&mut self) {
        for mut response in self.open.drain(..) {
            response.metered.with(|metering| metering.meter_failed(clock::now()));
        }
    }

    fn position(&self, is_one: impl Fn(&PendingResponse) -> bool) -> Option<usize> {
        self.open.iter().position(is_one)
    }

    /// The response that an error ends.
    fn failed(&self, message: Message<'_>) -> Option<usize> {
        let envelope = message.envelope;
        if !envelope.failed_event.is_empty() {
            return self.position(|response| {
                response.kind == Kind::Asked && response.request == envelope.failed_event
            });
        }
        if envelope.is_fatal {
            return self.position(|response| response.kind == Kind::Transcript);
        }
        let is_of_stream = |response: &PendingResponse| response.stream == envelope.stream;
        let asked = self.position(|response| response.kind == Kind::Asked && is_of_stream(response));
        // A realtime session outlives its errors; in the Responses API an error is the end of the response.
        let in_progress =
            || self.position(|response| response.kind == Kind::Response && is_of_stream(response));
        match self.origin.dialect {
            Dialect::Realtime => asked,
            _ => asked.or_else(in_progress),
        }
    }

    /// Gives a message to the response at this place, and ends the response if the message does.
    fn pass(&mut self, place: Option<usize>, message: Message<'_>, is_last: bool, at: Tick) {
        let Some(place) = place else { return };
        self.open[place].read(message, at);
        if !is_last {
            return;
        }
        let mut response = self.open.remove(place);
        // A cancelled response has neither: the client, or the speaker's next words, broke it off.
        let is_whole = message.events.iter().any(|event| matches!(event, Event::Done | Event::Error));
        response.metered.with(|metering| match is_whole {
            true => metering.response_end(at),
            false => metering.cancelled(at),
        });
    }

    /// Begins a response that the client did not ask for; its t0 is the end of the speaker's turn.
    fn begin_unasked(&mut self, kind: Kind, message: Message<'_>, model: Name, at: Tick) -> Option<usize> {
        let begun = self.turn_end.unwrap_or(at);
        if kind != Kind::InputTranscript {
            self.turn_end = None;
        }
        let place = self.begin(kind, message, model, begun)?;
        self.open[place].metered.with(Metering::accept);
        Some(place)
    }

    /// Begins a response, and returns its place; `None` if there are too many, or its meter failed.
    fn begin(&mut self, kind: Kind, message: Message<'_>, model: Name, at: Tick) -> Option<usize> {
        if self.open.len() >= RESPONSES_MAX {
            match self.dispensable() {
                None => {
                    self.worker.passthrough(Passthrough::Socket);
                    return None;
                }
                // Metered once the server begins it: the client alone must not make records.
                Some(_) if kind == Kind::Asked => return None,
                Some(place) => self.open.remove(place).leave(),
            }
        }
        let envelope = message.envelope;
        let dialect = match kind {
            Kind::InputTranscript => Dialect::Transcription,
            Kind::Asked | Kind::Response | Kind::Transcript => self.origin.dialect,
        };
        let request = if kind == Kind::Asked { envelope.event } else { Name::default() };
        let links = Links {
            previous_response: envelope.previous_response,
            conversation: envelope.conversation,
            ..Links::default()
        };
        let is_of_session = kind != Kind::InputTranscript && !self.possible_models().is_empty();
        let others = is_of_session.then(|| Box::new(self.origin.models.clone()));
        let metered = Metered::begin(&self.worker, || {
            let origin = &self.origin;
            let tenancy = (origin.tenant.clone().into(), origin.role);
            let metering = Metering::begin_in_session(
                &self.worker,
                origin.upstream,
                dialect,
                (&origin.headers, origin.is_tls),
                tenancy,
                at,
            );
            Box::new(metering.asked_in_session((model, others), links, &request, at))
        });
        if !metered.is_watching() {
            return None;
        }
        let (id, stream) = (Name::default(), envelope.stream);
        self.open.push(PendingResponse { kind, id, stream, request, failed_at: None, metered });
        Some(self.open.len() - 1)
    }

    /// Reads the session's models.
    fn learn(&mut self, message: Message<'_>, by: Side) {
        self.model.learn(&message.model(), by);
        self.transcription_model.learn(&message.envelope.transcription_model, by);
    }
}

impl Drop for Responses {
    fn drop(&mut self) {
        self.client_left();
    }
}

impl PendingResponse {
    fn read(&mut self, message: Message<'_>, at: Tick) {
        self.metered.with(|metering| {
            metering.exchange.name_answer(message.names, message.envelope.conversation);
            metering.message(message.events, message.extent, at);
            metering.spent(clock::read().since(at));
        });
    }

    /// Records the model that the server states for the session, where the response itself names none.
    fn answered_by(&mut self, model: &Name) {
        let names = Names { model: model.shared(), ..Names::default() };
        self.metered.with(|metering| metering.exchange.name_answer(&names, Name::default()));
    }

    /// Ends the response because no more of it will be read.
    fn leave(mut self) {
        if let Some(at) = self.failed_at {
            self.metered.with(|metering| metering.response_end(at));
        }
    }
}

/// Responses of one session that are expected or in progress: servers allow one, or one for each stream.
const RESPONSES_MAX: usize = 16;
