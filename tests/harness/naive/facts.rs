//! The facts of one frame, and the order of their events. Each dialect fills a [`FrameFacts`]; the rules common to all
//! dialects are here: the first event, the last one, and those kept of a torn frame.

use scan::{Counts, Delta, Event, Finish, Scope, ServerReport, Usage};

use super::Frame;

/// The event that precedes all others of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    Error,
    Progress,
    /// As above, when the answer of this number begins.
    Begin(u32),
    Ping,
    Meta,
    Other,
}

/// The facts of one frame.
#[derive(Debug, Default)]
pub(crate) struct FrameFacts {
    pub(crate) lead: Option<Lead>,
    pub(crate) choices: Vec<Choice>,
    /// True if each choice is counted alone, at its position, as if the frame were the choice.
    pub(crate) each_counts: bool,
    pub(crate) usage: Option<Usage>,
    pub(crate) server: Option<ServerReport>,
    /// The frame is its stream's own end mark.
    pub(crate) done: bool,
}

/// One answer in a frame.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) index: u32,
    pub(crate) finished: bool,
    /// Its events in order; usage only if the frame is the choice.
    pub(crate) events: Vec<Event>,
}

/// Characters by kind, in the order of the events: reasoning, text, refusal, tool, audio.
pub(crate) type Chars = [u32; 5];

impl FrameFacts {
    /// A frame with this event only.
    pub(crate) fn lead(lead: Lead) -> Self {
        Self { lead: Some(lead), ..Self::default() }
    }

    /// A frame of this answer only.
    pub(crate) fn choice(choice: Choice) -> Self {
        Self { choices: vec![choice], ..Self::default() }
    }

    /// As above, for a frame that may report an error: that comes first, whatever the type.
    pub(crate) fn or_error(mut self, error: bool) -> Self {
        if error {
            self.lead = Some(Lead::Error);
        }
        self
    }

    /// Its events in order.
    pub(crate) fn events(self, outside: Frame) -> Option<Vec<Event>> {
        let Self { mut lead, choices, each_counts, usage, server, done } = self;
        if outside.error {
            lead = Some(Lead::Error);
        }
        let mut events: Vec<Event> = choices.iter().flat_map(|choice| choice.events.clone()).collect();
        let many = events.len() > scan::limits::FRAME_MAX_EVENTS;
        let early = each_counts && choices.len() > 1;
        let late = matches!(lead, Some(Lead::Error | Lead::Progress)) || !outside.whole || outside.commented;
        if (many || early) && late {
            // Some events may have been emitted before that was known.
            return None;
        }
        if !outside.whole {
            events.retain(|event| matches!(event, Event::Finish { .. } | Event::Usage(_)));
        }
        match lead {
            Some(Lead::Progress) => events.clear(),
            Some(Lead::Begin(choice)) if outside.whole => events.push(Event::Role { choice }),
            _ => {}
        }
        let silent = choices.is_empty() && usage.is_none() && !done;
        if let Some(lead) = lead.or(silent.then_some(Lead::Other)) {
            events.insert(
                0,
                match lead {
                    Lead::Error => Event::Error,
                    Lead::Progress | Lead::Begin(_) => Event::Progress,
                    Lead::Ping => Event::Ping,
                    Lead::Meta => Event::Meta,
                    Lead::Other => Event::Other,
                },
            );
        }
        events.extend(usage.map(Event::Usage));
        events.extend(server.map(Event::Server));
        events.extend(done.then_some(Event::Done));
        Some(events)
    }
}

impl Choice {
    /// An answer with these numbers of characters of each kind.
    pub(crate) fn new(
        index: u32,
        tokens: Option<u32>,
        chars: Chars,
        role: bool,
        finish: Option<Finish>,
    ) -> Self {
        const KINDS: [fn(Delta) -> Event; 5] =
            [Event::Reasoning, Event::Text, Event::Refusal, Event::Tool, Event::Audio];
        let mut events = Vec::new();
        for (kind, chars) in KINDS.into_iter().zip(chars) {
            if chars > 0 {
                let rest = if events.is_empty() { tokens } else { tokens.map(|_| 0) };
                events.push(kind(Delta { choice: index, chars, tokens: rest }));
            }
        }
        if events.is_empty() {
            if role {
                events.push(Event::Role { choice: index });
            }
            let facts = role || finish.is_some();
            if !facts || tokens.is_some_and(|n| n > 0) {
                events.push(Event::Empty(Delta { choice: index, chars: 0, tokens }));
            }
        }
        if let Some(reason) = finish {
            events.push(Event::Finish { choice: index, reason });
        }
        Self { index, finished: finish.is_some(), events }
    }

    /// As above, for the answer of this number.
    pub(crate) fn number(&mut self, number: u32) {
        self.index = number;
        for event in &mut self.events {
            match event {
                Event::Text(delta)
                | Event::Reasoning(delta)
                | Event::Tool(delta)
                | Event::Refusal(delta)
                | Event::Audio(delta)
                | Event::Empty(delta) => delta.choice = number,
                Event::Role { choice } | Event::Finish { choice, .. } => *choice = number,
                _ => {}
            }
        }
    }

    /// An answer with an end only.
    pub(crate) fn finish(index: u32, reason: Finish) -> Self {
        Self::new(index, None, [0; 5], false, Some(reason))
    }

    /// Its own count: running until it is finished.
    pub(crate) fn count(&mut self, outside: Frame, counts: Counts) {
        let scope = match self.finished || outside.unstreamed {
            true => Scope::Choice(Some(self.index)),
            false => Scope::Running(self.index),
        };
        self.count_as(scope, counts);
    }

    /// Its own count, with that scope.
    pub(crate) fn count_as(&mut self, scope: Scope, counts: Counts) {
        if !counts.is_empty() {
            self.events.push(Event::Usage(Usage { scope, counts }));
        }
    }
}
