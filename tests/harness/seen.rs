//! What was said of one body: events and frame ends in their order, the tail, the model.

use scan::{Event, Extent, Sink, Tail};

/// One call of a [`Sink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// An event.
    Event(Event),
    /// A frame is over; whether it was whole.
    Frame(bool),
}

/// All that was said of one body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Events and frame ends.
    pub said: Vec<Said>,
    /// The first model named.
    pub model: String,
    /// The first id of an answer.
    pub id: String,
    /// The last service tier told.
    pub tier: String,
    /// What became of the body.
    pub tail: Option<Tail>,
}

impl Seen {
    /// The events alone.
    pub fn events(&self) -> Vec<Event> {
        let event = |said: &Said| match said {
            Said::Event(event) => Some(*event),
            Said::Frame(_) => None,
        };
        self.said.iter().filter_map(event).collect()
    }
}

impl Seen {
    /// Whole frames that carry visible output, reasoning or a tool call.
    pub fn content_frames(&self) -> usize {
        let mut content = false;
        let mut frames = 0;
        for said in &self.said {
            match said {
                Said::Event(Event::Text(_) | Event::Reasoning(_) | Event::Tool(_)) => content = true,
                Said::Event(_) => {}
                Said::Frame(_) => frames += usize::from(std::mem::take(&mut content)),
            }
        }
        frames
    }
}

/// Listens to nothing.
#[derive(Debug)]
pub struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _event: Event) {}

    fn frame(&mut self, _extent: Extent) {}
}

/// Compares what is said with what was said before; every cut of a body asks for it, so it keeps
/// nothing.
#[derive(Debug)]
pub struct Again<'a> {
    expected: &'a [Said],
    same: bool,
}

impl<'a> Again<'a> {
    /// Expects the same once more.
    pub fn expect(seen: &'a Seen) -> Self {
        Self { expected: &seen.said, same: true }
    }

    /// Whether it was the same to the end.
    pub fn is_same(&self) -> bool {
        self.same && self.expected.is_empty()
    }

    fn next(&mut self, said: Said) {
        match self.expected.split_first() {
            Some((first, rest)) if *first == said => self.expected = rest,
            _ => self.same = false,
        }
    }
}

impl Sink for Again<'_> {
    fn event(&mut self, event: Event) {
        self.next(Said::Event(event));
    }

    fn frame(&mut self, extent: Extent) {
        self.next(Said::Frame(extent.whole));
    }
}

impl Sink for Seen {
    fn event(&mut self, event: Event) {
        self.said.push(Said::Event(event));
    }

    fn frame(&mut self, extent: Extent) {
        self.said.push(Said::Frame(extent.whole));
    }
}
