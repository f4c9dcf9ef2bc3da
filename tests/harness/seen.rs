//! The scanner's results for one body: events and frame ends in order, the tail, the model.

use scan::{Count, Event, Extent, Sink, Tail, Usage};

/// One call of a [`Sink`].
#[allow(clippy::large_enum_variant, reason = "most calls are events")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkCall {
    /// An event.
    Event(Event),
    /// The end of a frame; true if it was whole.
    Frame(bool),
}

/// All results for one body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Events and frame ends.
    pub calls: Vec<SinkCall>,
    /// The first model.
    pub model: String,
    /// The first id of an answer.
    pub id: String,
    /// The last service tier.
    pub tier: String,
    /// The summary of the body.
    pub tail: Option<Tail>,
}

impl Seen {
    /// The events alone.
    pub fn events(&self) -> Vec<Event> {
        let event = |call: &SinkCall| match call {
            SinkCall::Event(event) => Some(*event),
            SinkCall::Frame(_) => None,
        };
        self.calls.iter().filter_map(event).collect()
    }
}

impl Seen {
    /// Whole frames that carry visible output, reasoning or a tool call.
    pub fn content_frames(&self) -> usize {
        let mut content = false;
        let mut frames = 0;
        for call in &self.calls {
            match call {
                SinkCall::Event(Event::Text(_) | Event::Reasoning(_) | Event::Tool(_)) => content = true,
                SinkCall::Event(_) => {}
                SinkCall::Frame(_) => frames += usize::from(std::mem::take(&mut content)),
            }
        }
        frames
    }
}

/// A sink that ignores everything.
#[derive(Debug)]
pub struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _event: Event) {}

    fn frame(&mut self, _extent: Extent) {}
}

/// Compares events with earlier ones without storing them, because every cut of a body needs it.
#[derive(Debug)]
pub struct Again<'a> {
    expected: &'a [SinkCall],
    same: bool,
}

impl<'a> Again<'a> {
    /// Starts another comparison.
    pub fn expect(seen: &'a Seen) -> Self {
        Self { expected: &seen.calls, same: true }
    }

    /// Returns true if all events were the same.
    pub fn is_same(&self) -> bool {
        self.same && self.expected.is_empty()
    }

    fn next(&mut self, call: SinkCall) {
        match self.expected.split_first() {
            Some((first, rest)) if *first == call => self.expected = rest,
            _ => self.same = false,
        }
    }
}

/// Returns an event without the numbers below unknown names: the oracle has no list of the names that are known.
fn known(event: Event) -> Option<Event> {
    match event {
        Event::Unknown(_) => None,
        Event::Usage(Usage { scope, counts }) => {
            Some(Event::Usage(Usage { scope, counts: counts.with(Count::InputBeside, None) }))
        }
        event => Some(event),
    }
}

impl Sink for Again<'_> {
    fn event(&mut self, event: Event) {
        if let Some(event) = known(event) {
            self.next(SinkCall::Event(event));
        }
    }

    fn frame(&mut self, extent: Extent) {
        self.next(SinkCall::Frame(extent.whole));
    }
}

impl Sink for Seen {
    fn event(&mut self, event: Event) {
        self.calls.extend(known(event).map(SinkCall::Event));
    }

    fn frame(&mut self, extent: Extent) {
        self.calls.push(SinkCall::Frame(extent.whole));
    }
}
