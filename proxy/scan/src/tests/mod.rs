//! Small laws of the scanner; the transcripts, the naive twin and the cuts live in the end-to-end
//! tests, where the fuzzers find them too.

mod vectors;

use crate::{Dialect, Event, Extent, Framing, Scanner, Sink};

/// Collects events; frames are marked by their `whole`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) events: Vec<Event>,
    pub(crate) frames: Vec<bool>,
}

impl Sink for Seen {
    fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    fn frame(&mut self, extent: Extent) {
        self.frames.push(extent.whole);
    }
}

/// Scans `body` handed over in slices of `step` bytes.
pub(crate) fn scan(dialect: Dialect, framing: Framing, body: &[u8], step: usize) -> Seen {
    let mut seen = Seen::default();
    let mut scanner = Scanner::new(dialect, framing);
    for slice in body.chunks(step) {
        scanner.feed(slice, &mut seen);
    }
    scanner.end(&mut seen);
    let work = scanner.work();
    assert_eq!(work.fed, body.len() as u64);
    assert!(work.walked + work.matched <= work.fed + 8, "a byte was read twice: {work:?}");
    seen
}
