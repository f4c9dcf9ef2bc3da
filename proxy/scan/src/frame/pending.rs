//! The events of a frame, pending until its end: a frame cut short by the end of the body keeps its content.
//! A frame with more than [`FRAME_MAX_EVENTS`] releases them early.

use crate::event::{Delta, Event, Finish, Sink, Usage};
use crate::frame::{Chars, Kind};
use crate::limits::FRAME_MAX_EVENTS;

/// The pending events of the current frame, in order.
#[derive(Debug)]
pub(crate) struct PendingEvents {
    list: [PendingEvent; FRAME_MAX_EVENTS],
    len: usize,
    /// The usage of [`PendingEvent::Usage`].
    usage: Option<Usage>,
}

/// An event pending until its frame's end.
#[derive(Clone, Copy, Debug)]
enum PendingEvent {
    Role(u32),
    Delta(Kind, Delta),
    Empty(Delta),
    Finish(u32, Finish),
    /// The usage in [`PendingEvents::usage`]: a native frame has one per choice.
    Usage,
}

/// The facts of one answer's part of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChoiceFacts {
    pub(crate) choice: u32,
    pub(crate) chars: Chars,
    pub(crate) tokens: Option<u32>,
    pub(crate) role: bool,
    pub(crate) finish: Option<Finish>,
}

impl PendingEvents {
    pub(crate) fn new() -> Self {
        Self { list: [PendingEvent::Role(0); FRAME_MAX_EVENTS], len: 0, usage: None }
    }

    /// Discards the pending events.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.usage = None;
    }

    /// Removes the usage of an answer.
    pub(crate) fn remove_usage(&mut self) {
        self.usage = None;
    }

    /// Returns the single pending delta, with a pending usage, if there is nothing else.
    pub(crate) fn single_delta(&self) -> Option<(Kind, Delta, Option<Usage>)> {
        match self.list[..self.len] {
            [PendingEvent::Delta(kind, delta)] => Some((kind, delta, None)),
            [PendingEvent::Delta(kind, delta), PendingEvent::Usage] => Some((kind, delta, self.usage)),
            _ => None,
        }
    }

    /// Takes the pending usage.
    pub(crate) fn take_usage(&mut self) -> Option<Usage> {
        self.usage.take()
    }

    /// Puts the pending usage back.
    pub(crate) fn set_usage(&mut self, usage: Option<Usage>) {
        self.usage = usage;
    }

    /// Returns true if there is content, a token or an end.
    pub(crate) fn has_answer(&self) -> bool {
        self.list[..self.len].iter().any(|event| match event {
            PendingEvent::Role(_) | PendingEvent::Usage => false,
            PendingEvent::Empty(delta) => delta.tokens.unwrap_or(0) > 0,
            PendingEvent::Delta(..) | PendingEvent::Finish(..) => true,
        })
    }

    /// Returns true if no content and no token is pending.
    pub(crate) fn is_empty_delta(&self) -> bool {
        self.list[..self.len].iter().all(|event| match event {
            PendingEvent::Role(_) => true,
            PendingEvent::Empty(delta) => delta.tokens.unwrap_or(0) == 0,
            PendingEvent::Delta(..) | PendingEvent::Finish(..) | PendingEvent::Usage => false,
        })
    }

    /// Adds the facts of one answer. Without content they are a role, an end or an empty delta.
    pub(crate) fn add(&mut self, facts: ChoiceFacts, sink: &mut impl Sink) {
        let ChoiceFacts { choice, chars, mut tokens, role, finish } = facts;
        let mut content = false;
        for kind in Kind::ALL {
            let chars = chars[kind as usize];
            if chars > 0 {
                self.push(PendingEvent::Delta(kind, Delta { choice, chars, tokens }), sink);
                tokens = tokens.map(|_| 0);
                content = true;
            }
        }
        let unsent = tokens.is_some_and(|n| n > 0);
        if !content && role {
            self.push(PendingEvent::Role(choice), sink);
        }
        if !content && (unsent || !role && finish.is_none()) {
            self.push(PendingEvent::Empty(Delta { choice, chars: 0, tokens }), sink);
        }
        if let Some(reason) = finish {
            self.push(PendingEvent::Finish(choice, reason), sink);
        }
    }

    /// Adds the usage of one answer; an earlier pending one releases all events.
    pub(crate) fn add_usage(&mut self, usage: Usage, sink: &mut impl Sink) {
        if self.usage.is_some() {
            self.release(true, sink);
        }
        self.usage = Some(usage);
        self.push(PendingEvent::Usage, sink);
    }

    fn push(&mut self, event: PendingEvent, sink: &mut impl Sink) {
        if self.len == FRAME_MAX_EVENTS {
            self.release(true, sink);
        }
        self.list[self.len] = event;
        self.len += 1;
    }

    /// Releases the events; if the frame is not `whole`, only counts and finishes.
    pub(crate) fn release(&mut self, whole: bool, sink: &mut impl Sink) {
        for pending in &self.list[..self.len] {
            let event = match *pending {
                PendingEvent::Role(choice) => Event::Role { choice },
                PendingEvent::Delta(kind, delta) => kind.event(delta),
                PendingEvent::Empty(delta) => Event::Empty(delta),
                PendingEvent::Finish(choice, reason) => Event::Finish { choice, reason },
                PendingEvent::Usage => match self.usage.take() {
                    Some(usage) => Event::Usage(usage),
                    None => continue,
                },
            };
            if whole || matches!(pending, PendingEvent::Finish(..) | PendingEvent::Usage) {
                sink.event(event);
            }
        }
        self.len = 0;
    }
}
