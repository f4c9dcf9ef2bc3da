//! The messages of one direction: frames, and the JSON in them.

use scan::{Dialect, Envelope, Event, Extent, Framing, Name, Names, Scanner, Sink};
use websocket::{Control, FrameReader, Step, Violation};

/// Reads the messages of one direction.
pub(super) struct Messages {
    frames: FrameReader,
    scanner: Box<Scanner>,
    facts: Facts,
}

/// The events of one message.
#[derive(Default)]
struct Facts {
    events: Vec<Event>,
    extent: Option<Extent>,
}

/// An end in a direction.
pub(super) enum Found {
    /// A message. `is_read`: it is JSON.
    Message { is_read: bool },
    /// A control frame. `is_close`: its sender closes the connection.
    Control { is_close: bool },
}

/// A complete message.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) envelope: &'a Envelope,
    pub(super) events: &'a [Event],
    pub(super) extent: Option<Extent>,
    pub(super) names: &'a Names,
}

impl Message<'_> {
    /// The model that it names; empty if it names none.
    pub(super) fn model(&self) -> Name {
        Name::cut(self.names.model().as_bytes())
    }
}

impl Messages {
    pub(super) fn new(dialect: Dialect) -> Self {
        let scanner = Box::new(Scanner::new(dialect, Framing::Messages));
        Self { frames: FrameReader::new(), scanner, facts: Facts::default() }
    }

    /// The frames.
    pub(super) fn frames(&self) -> &FrameReader {
        &self.frames
    }

    /// Returns the next end in `bytes` from `at` on, which it advances; `None` if more bytes are needed.
    pub(super) fn next(&mut self, bytes: &[u8], at: &mut usize) -> Result<Option<Found>, Violation> {
        let Self { frames, scanner, facts } = self;
        while let Some(step) = frames.step(bytes, at)? {
            match step {
                Step::Begin => {
                    scanner.begin_message();
                    facts.events.clear();
                }
                Step::Payload(payload) => scanner.feed(payload, facts),
                Step::End => {
                    let is_read = scanner.end_message(facts);
                    return Ok(Some(Found::Message { is_read }));
                }
                Step::Control(control) => {
                    let is_close = matches!(control, Control::Close(_));
                    return Ok(Some(Found::Control { is_close }));
                }
            }
        }
        Ok(None)
    }

    /// The last message; `None` before the first.
    pub(super) fn last(&self) -> Option<Message<'_>> {
        Some(Message {
            envelope: self.scanner.envelope()?,
            events: &self.facts.events,
            extent: self.facts.extent,
            names: self.scanner.names(),
        })
    }
}

impl Sink for Facts {
    fn event(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }

    fn frame(&mut self, extent: Extent) {
        self.extent = Some(extent);
    }
}

/// Events of one message: those that a scanner keeps for a frame, and those that it adds at its end.
const EVENTS_MAX: usize = scan::limits::FRAME_MAX_EVENTS + scan::limits::FRAME_MAX_UNKNOWN + 8;
