//! Small laws of the scanner. The transcripts, the oracle and the cuts are in the end-to-end tests,
//! where the fuzzers use them too.

mod chats;
mod hosted;
mod ids;
mod messages;
mod multipart;
mod named;
mod natives;
mod prompts;
mod properties;
mod request;
mod short;
mod typed;
mod usages;
mod vectors;
mod vectors_counts;
mod vectors_errors;
mod vectors_frames;

use crate::{Dialect, Event, Extent, Framing, Scanner, Sink, Tail};

pub(crate) use short::short;

/// Collects the events and frames of a body; frames by their `whole`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) outputs: Vec<Output>,
    pub(crate) model: String,
    pub(crate) id: String,
    pub(crate) tier: String,
    pub(crate) tail: Option<Tail>,
}

/// An event, or the end of a frame.
#[allow(clippy::large_enum_variant, reason = "most outputs are events")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Output {
    Event(Event),
    Frame { whole: bool },
}

impl Sink for Seen {
    fn event(&mut self, event: Event) {
        self.outputs.push(Output::Event(event));
    }

    fn frame(&mut self, extent: Extent) {
        self.outputs.push(Output::Frame { whole: extent.whole });
    }
}

impl Seen {
    pub(crate) fn events(&self) -> Vec<Event> {
        let event = |output: &Output| match output {
            Output::Event(event) => Some(*event),
            Output::Frame { .. } => None,
        };
        self.outputs.iter().filter_map(event).collect()
    }
}

/// Scans a body in slices.
pub(crate) fn scan<'a>(dialect: Dialect, framing: Framing, slices: impl Iterator<Item = &'a [u8]>) -> Seen {
    scan_with(Scanner::new(dialect, framing), slices)
}

/// Scans a body without shape matching.
pub(crate) fn walk(dialect: Dialect, framing: Framing, body: &[u8]) -> Seen {
    let mut scanner = Scanner::new(dialect, framing);
    scanner.locate_usage();
    scan_with(scanner, std::iter::once(body))
}

fn scan_with<'a>(mut scanner: Scanner, slices: impl Iterator<Item = &'a [u8]>) -> Seen {
    let mut seen = Seen::default();
    let mut fed = 0;
    for slice in slices {
        fed += slice.len() as u64;
        scanner.feed(slice, &mut seen);
    }
    seen.tail = Some(scanner.end(&mut seen));
    seen.model = scanner.names().model().to_owned();
    seen.id = scanner.names().id().to_owned();
    seen.tier = scanner.names().price_tier().as_deref().unwrap_or_default().to_owned();
    let work = scanner.work();
    assert_eq!(work.fed, fed);
    assert!(work.walked + work.matched <= work.fed + 8, "a byte was read twice: {work:?}");
    seen
}

/// Scans a body whole, without shape matching, in steps, cut in two at every byte, and with other line
/// ends. All results must agree.
pub(crate) fn scan_every_way(dialect: Dialect, framing: Framing, body: &str) -> Seen {
    let expected = scan(dialect, framing, std::iter::once(body.as_bytes()));
    assert_eq!(walk(dialect, framing, body.as_bytes()), expected, "{dialect:?}: {body:?} walked");
    let ends: &[&str] = match framing {
        Framing::Sse => &["\n", "\r\n", "\r"],
        Framing::Ndjson => &["\n", "\r\n"],
        Framing::Json | Framing::Messages | Framing::EventStream => &["\n"],
    };
    for end in ends {
        let text = body.replace('\n', end);
        for step in [1, 2, 7, 64, usize::MAX] {
            let seen = scan(dialect, framing, text.as_bytes().chunks(step));
            assert_eq!(seen, expected, "{dialect:?}: {text:?} in steps of {step}");
        }
        for cut in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(cut);
            let seen = scan(dialect, framing, [head, tail].into_iter());
            assert_eq!(seen, expected, "{dialect:?}: {text:?} cut at {cut}");
        }
    }
    expected
}

/// The events of a stream in the notation of [`short`].
pub(crate) fn stream(dialect: Dialect, payloads: &[&str]) -> String {
    let body: String = payloads.iter().map(|payload| format!("data: {payload}\n\n")).collect();
    short(&scan_every_way(dialect, Framing::Sse, &body))
}

/// The events of NDJSON lines in the notation of [`short`].
pub(crate) fn lines(dialect: Dialect, lines: &[&str]) -> String {
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    short(&scan_every_way(dialect, Framing::Ndjson, &body))
}

/// The events of an unstreamed body in the notation of [`short`].
pub(crate) fn whole(dialect: Dialect, body: &str) -> String {
    short(&scan_every_way(dialect, Framing::Json, body))
}
