//! Passes a recorded exchange through scanner and meter, as the proxy does.

use meter::{Body, Close, Meter, Record, Tick};
use scan::{Event, Extent, Framing, RequestScanner, Scanner, Sink, Tail, Work};

use crate::Transcript;
use crate::seen::Nothing;

/// A longer gap between tokens is a stall; no recording waits that long for a token.
pub const STALL_NS: u64 = 60_000_000_000;

/// The slices of the body. Its ticks are those of the recording, for any slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// As read from the socket.
    Reads,
    /// In slices of this many bytes.
    Steps(usize),
    /// In two.
    Cut(usize),
}

/// Makes the record of a transcript.
pub fn replay(transcript: &Transcript, pieces: Pieces) -> Record {
    let ended = transcript.arrivals.last().map_or(0, |arrival| arrival.us);
    let slices = slices(transcript, pieces).into_iter();
    run(transcript, slices, Tick(ended * 1000), &mut Nothing).record
}

/// The result of one run.
#[derive(Debug)]
pub struct Ran {
    /// The record.
    pub record: Record,
    /// The scanner's summary of the body.
    pub tail: Tail,
    /// The counters of the scanner's work.
    pub work: Work,
}

/// Passes the slices of a transcript's body, each with its tick, to scanner and meter; `also` receives the same events.
pub fn run<'a>(
    transcript: &Transcript,
    slices: impl Iterator<Item = (Tick, &'a [u8])>,
    ended: Tick,
    also: &mut impl Sink,
) -> Ran {
    let mut meter = Meter::new(transcript.dialect, Tick(0), STALL_NS);
    let mut request = RequestScanner::new();
    request.feed(&transcript.request);
    let request = request.end();
    let asked = request.model.clone();
    meter.requested(request, Tick(0));
    let body = if transcript.framing == Framing::Json { Body::Whole } else { Body::Frames };
    meter.answered(transcript.status, body);

    let mut scanner = Scanner::new(transcript.dialect, transcript.framing);
    for (at, slice) in slices {
        scanner.feed(slice, &mut Both(&mut meter.read(at), also));
    }
    let tail = scanner.end(&mut Both(&mut meter.tail(ended), also));
    let close = match (transcript.whole, transcript.client_left) {
        (true, _) => Close::Clean { whole: tail.whole },
        (false, true) => Close::ClientGone { whole: false },
        (false, false) => Close::Cut,
    };
    let names = scanner.names().clone();
    let model = asked.or_else(|| names.model.clone()).unwrap_or_else(|| "_unknown".into());
    let identity = meter::Identity {
        response_model: names.model,
        response_id: names.id,
        ..meter::Identity::new("recorded", "recorded", transcript.dialect, model)
    };
    Ran { record: meter.end(identity, close, meter::LoadSpan::single(), ended), tail, work: scanner.work() }
}

/// Passes each event to two sinks.
struct Both<'a, A, B>(&'a mut A, &'a mut B);

impl<A: Sink, B: Sink> Sink for Both<'_, A, B> {
    fn event(&mut self, event: Event) {
        self.0.event(event);
        self.1.event(event);
    }

    fn frame(&mut self, extent: Extent) {
        self.0.frame(extent);
        self.1.frame(extent);
    }
}

fn slices(transcript: &Transcript, pieces: Pieces) -> Vec<(Tick, &[u8])> {
    let body = &transcript.body[..];
    let mut bounds: Vec<usize> = match pieces {
        Pieces::Reads => {
            return transcript.reads().into_iter().map(|(us, slice)| (Tick(us * 1000), slice)).collect();
        }
        Pieces::Steps(step) => (0..body.len()).step_by(step).skip(1).collect(),
        Pieces::Cut(at) => vec![at],
    };
    bounds.push(body.len());
    let mut from = 0;
    let mut slices = Vec::new();
    for to in bounds {
        if to == from {
            continue;
        }
        let came = transcript.arrivals.iter().find(|arrival| arrival.body >= to);
        let at = came.map_or(0, |arrival| arrival.us * 1000);
        slices.push((Tick(at), &body[from..to]));
        from = to;
    }
    slices
}
