//! One WebSocket on which models are used. Its messages are forwarded unchanged, and each response in them is metered as
//! an exchange. The session reads every slice before the tunnel writes it. It holds back only a message of the client
//! that a budget must check before the server receives it.
//!
//! Frames that cannot be read end the metering of their direction, not the traffic (law 3).

mod messages;
mod open;
mod responses;
mod withheld;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use exchange::recorded;
use scan::{MessageKind, Name};
use tokio::time::Sleep;
use websocket::{CloseFrame, Violation};

use self::messages::{Found, Message, Messages};
pub(crate) use self::open::{Handshake, Opened, answered, open};
use self::responses::Responses;
use self::withheld::{Onward, Withheld};
use crate::conn::client::Client;
use crate::rejection::Known;
use crate::request::answer::Answer;
use crate::state::WorkerState;
use crate::{Dropped, Gap, Passthrough, RequestedModel, clock, limits};

/// One metered WebSocket.
pub(crate) struct Session {
    worker: Rc<WorkerState>,
    client: Rc<Client>,
    /// The client's messages; `None` once they cannot be read.
    sent: Option<Messages>,
    /// The server's messages; `None` once they cannot be read.
    received: Option<Messages>,
    responses: Responses,
    /// True once the client has sent a close frame.
    is_client_closing: bool,
    /// The client's message that a budget checks, held back until it is complete.
    withheld: Option<Withheld>,
    refusal: Option<Refusing>,
}

/// The end of a session whose client was refused a response: the responses in progress end first.
struct Refusing {
    frame: CloseFrame,
    deadline: Pin<Box<Sleep>>,
    /// True once nothing more goes to the client.
    is_last_received: bool,
}

/// A refused message: the answer that a request would get, and the requested model.
struct Refused {
    answer: Answer,
    model: Name,
}

/// The frames with which the proxy closes a connection; empty where a frame would not be understood.
pub(crate) struct Close {
    pub(crate) to_client: Bytes,
    pub(crate) to_upstream: Bytes,
}

impl Session {
    fn new(worker: &Rc<WorkerState>, client: &Rc<Client>, responses: Responses) -> Self {
        let messages = || Some(Messages::new(responses.origin.dialect));
        Self {
            worker: Rc::clone(worker),
            client: Rc::clone(client),
            sent: messages(),
            received: messages(),
            is_client_closing: false,
            withheld: None,
            refusal: None,
            responses,
        }
    }

    /// Reads bytes of the client. Returns the bytes that go upstream in their place, unless they are the same.
    pub(crate) fn sent(&mut self, bytes: &[u8]) -> Option<Bytes> {
        if self.refusal.is_some() {
            return Some(Bytes::new());
        }
        let now = clock::now();
        let mut onward = Onward::new(bytes);
        loop {
            if self.withheld.is_none() && onward.at < bytes.len() && self.is_next_checked() {
                onward.pass();
                self.withheld = Some(Withheld::new(&self.worker, self.client.holder()));
            }
            let Some(sent) = &mut self.sent else { break };
            let found = sent.next(bytes, &mut onward.at);
            if let Some(refusal) = self.check(&mut onward, &found) {
                self.refuse(refusal);
                return Some(onward.decided());
            }
            match found {
                Ok(None) => break,
                Ok(Some(Found::Control { is_close })) => self.is_client_closing |= is_close,
                Ok(Some(Found::Message { is_read })) => {
                    if let Some(message) = self.sent.as_ref().and_then(Messages::last).filter(|_| is_read) {
                        self.responses.sent(message, now);
                    }
                }
                Err(violation) => {
                    tracing::debug!(%violation, "the client's messages are no longer read");
                    self.sent = None;
                    self.worker.passthrough(Passthrough::Socket);
                }
            }
        }
        if self.sent.is_none() {
            if let Some(refusal) = self.refused(None) {
                self.refuse(refusal);
                return Some(onward.decided());
            }
            if let Some(withheld) = self.withheld.take() {
                onward.release(withheld);
            }
        }
        if self.withheld.is_some() { Some(onward.decided()) } else { onward.whole() }
    }

    /// Adds the bytes that were read to the message that is held back, if there is one, and checks it at its end.
    /// Returns the refusal, if the message is refused.
    fn check(
        &mut self,
        onward: &mut Onward<'_>,
        found: &Result<Option<Found>, Violation>,
    ) -> Option<Refused> {
        let has_room = onward.withhold(self.withheld.as_mut()?);
        let is_whole = match found {
            Ok(Some(Found::Message { is_read })) => {
                let message = self.sent.as_ref().and_then(Messages::last).filter(|_| *is_read);
                if let Some(refusal) = self.refused(message) {
                    return Some(refusal);
                }
                true
            }
            // A control frame between messages is not checked.
            Ok(Some(Found::Control { .. })) => {
                self.sent.as_ref().is_some_and(|sent| sent.frames().is_between_messages())
            }
            Ok(None) | Err(_) => false,
        };
        if !has_room && let Some(refusal) = self.refused(None) {
            return Some(refusal);
        }
        if (is_whole || !has_room)
            && let Some(withheld) = self.withheld.take()
        {
            onward.release(withheld);
        }
        None
    }

    /// Reads bytes of the server. Returns the bytes that go to the client in their place, unless they are the same.
    pub(crate) fn received(&mut self, bytes: &[u8]) -> Option<Bytes> {
        if self.refusal.as_ref().is_some_and(|refusal| refusal.is_last_received) {
            return Some(Bytes::new());
        }
        let (now, mut at) = (clock::now(), 0);
        loop {
            let received = self.received.as_mut()?;
            match received.next(bytes, &mut at) {
                Ok(None) => return None,
                Ok(Some(Found::Message { is_read })) => {
                    let message = received.last().filter(|_| is_read);
                    let is_unasked = message.is_some_and(|message| self.responses.received(message, now));
                    if is_unasked
                        && self.refusal.is_none()
                        && let Some(answer) = self.over_budget()
                    {
                        // The client sent its audio while it was allowed, or beside another response.
                        self.refuse(Refused { answer, model: self.responses.model.name() });
                    }
                    if let Some(refusal) = &mut self.refusal
                        && !self.responses.is_busy()
                    {
                        refusal.is_last_received = true;
                        return Some(Bytes::copy_from_slice(&bytes[..at]));
                    }
                }
                Ok(Some(Found::Control { .. })) => {}
                Err(violation) => {
                    tracing::debug!(%violation, "the server's messages are no longer read");
                    self.received = None;
                    self.responses.unreadable();
                    self.worker.passthrough(Passthrough::Socket);
                    return None;
                }
            }
        }
    }

    /// Counts a panic in the session.
    pub(crate) fn panicked(&self) {
        self.worker.dropped(Dropped::Panic);
    }

    /// Records that the upstream closed the connection, and the client has not.
    pub(crate) fn upstream_closed(&mut self) {
        match self.is_client_closing {
            true => self.responses.client_left(),
            false => self.responses.upstream_cut(),
        }
    }

    /// Returns how the proxy closes the connection, once it has to and can: after a refusal, or when the worker drains,
    /// and between two responses. Otherwise the task is woken when that may have changed.
    pub(crate) fn close(&mut self, cx: &mut Context<'_>) -> Option<Close> {
        let is_overdue =
            self.refusal.as_mut().is_some_and(|refusal| refusal.deadline.as_mut().poll(cx).is_ready());
        let is_due = self.client.poll_leaving(cx).is_ready() || self.refusal.is_some();
        if !is_due || self.responses.is_busy() && !is_overdue {
            return None;
        }
        let is_between = |messages: &Option<Messages>| {
            messages.as_ref().is_some_and(|messages| messages.frames().is_between_frames())
        };
        let frame = match &self.refusal {
            Some(refusal) => refusal.frame.clone(),
            // A frame can be inserted only between two frames, and only where frames are read.
            None if !is_between(&self.sent) || !is_between(&self.received) => return None,
            None => CloseFrame::going_away(),
        };
        if !is_between(&self.received) && self.received.is_some() && !is_overdue {
            return None;
        }
        let mask = (self.worker.ids.bits() as u32).to_be_bytes();
        let to_client = if is_between(&self.received) { frame.unmasked() } else { Vec::new() };
        // After a refusal the client's last message is the last that went upstream, if messages are read at all.
        let to_upstream = match &self.sent {
            Some(_) => CloseFrame::going_away().masked(mask),
            None => Vec::new(),
        };
        Some(Close { to_client: to_client.into(), to_upstream: to_upstream.into() })
    }

    /// Returns true if the client's next bytes begin a message that is checked before it goes upstream.
    fn is_next_checked(&self) -> bool {
        let (Some(gate), Some(sent)) = (&self.worker.control.gate, &self.sent) else { return false };
        if !sent.frames().is_between_messages() {
            return false;
        }
        let tenant = &self.responses.origin.tenant.tenant;
        gate.refused(tenant).is_some()
            || gate.models(tenant).is_some()
            || gate.terms(tenant).refuse_unreadable
            || self.responses.is_full()
    }

    /// Returns the refusal of this message of the client; `None` stands for a message that cannot be read.
    fn refused(&self, message: Option<Message<'_>>) -> Option<Refused> {
        let session = &self.responses.model;
        let asked = message.map(|message| message.model()).filter(|model| !model.is_empty());
        // The server may accept the model that the client proposed for the session, or not.
        let proposed = Some(session.proposed).filter(|model| asked.is_none() && !model.is_empty());
        let others = self.responses.possible_models().iter().map(|name| Name::cut(name.as_bytes()));
        [Some(asked.unwrap_or(session.name())), proposed]
            .into_iter()
            .flatten()
            .chain(others)
            .find_map(|model| self.answer(message, &model).map(|answer| Refused { answer, model }))
    }

    /// Returns the answer to any request of a tenant that is over a limit.
    fn over_budget(&self) -> Option<Answer> {
        let origin = &self.responses.origin;
        let refused = self.worker.control.gate.as_ref()?.refused(&origin.tenant.tenant)?;
        Some(Answer::over_budget(origin.dialect, refused))
    }

    /// Returns the answer to a message that requests `model`, if the message is refused.
    fn answer(&self, message: Option<Message<'_>>, model: &Name) -> Option<Answer> {
        let gate = self.worker.control.gate.as_ref()?;
        let origin = &self.responses.origin;
        let tenant = &origin.tenant.tenant;
        let asks = match message.map(|message| message.envelope.kind) {
            None | Some(MessageKind::Create | MessageKind::Untyped) => true,
            // The server may begin a response to audio by itself, but not while a response is in progress.
            Some(MessageKind::Append | MessageKind::Commit) => !self.responses.is_responding(),
            Some(_) => false,
        };
        if !asks {
            return None;
        }
        if let Some(refused) = self.over_budget() {
            return Some(refused);
        }
        let gap = |gap| Answer::unmetered(origin.dialect, gap, gate.message(tenant, gap));
        let is_readable = message.is_some_and(|message| {
            message.envelope.kind != MessageKind::Untyped && !message.envelope.has_two_models
        });
        if !is_readable {
            return gate.terms(tenant).refuse_unreadable.then(|| gap(Gap::Unreadable));
        }
        if self.responses.is_full() {
            return Some(gap(Gap::Uncountable));
        }
        let (provider, upstream) = self.worker.place(origin.upstream);
        let requested = RequestedModel { model: model.as_str(), provider: &provider, upstream: &upstream };
        let models = gate.models(tenant).filter(|_| !model.is_empty())?;
        models.refused(tenant, &requested).map(|message| Answer::unpriced(origin.dialect, message))
    }

    /// Counts a refusal, and begins the end of the session: no further bytes of the client go upstream.
    fn refuse(&mut self, Refused { answer, model }: Refused) {
        self.withheld = None;
        let origin = &self.responses.origin;
        let (tenant, principal) = (Arc::clone(&origin.tenant.tenant), origin.tenant.principal.clone());
        self.worker.refuse(answer.refusal);
        self.worker.observer.borrow_mut().reject(&tenant, answer.refusal);
        let model = (!model.is_empty()).then(|| recorded(model.as_str()).into());
        let known = Known { tenant, principal, dialect: origin.dialect, model };
        self.worker.report_rejection(origin.upstream, (answer.refusal, answer.status.as_u16()), Some(known));
        self.refusal = Some(Refusing {
            frame: CloseFrame::policy(answer.message()),
            deadline: Box::pin(tokio::time::sleep(limits::REST_TIME)),
            is_last_received: false,
        });
    }
}
