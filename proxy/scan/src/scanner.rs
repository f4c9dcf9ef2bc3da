//! The scanner of one response body: slices in, events out, in the order of the bytes. It may be
//! handed any cut of the body and says the same; it reads each byte once and keeps none.

use memchr::memchr;

use crate::dialect::Dialect;
use crate::event::{Event, Scope, Sink, Usage};
use crate::extent::Extent;
use crate::field::Fields;
use crate::frame::{Frame, Reader};
use crate::json::{End, Json};
use crate::kept::Kept;
use crate::name::{Name, Tier};
use crate::shape::Shape;
use crate::sse::{Sse, Step};

/// How a body is cut into frames; the response's content type says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `text/event-stream`.
    Sse,
    /// One JSON value a line.
    Ndjson,
    /// One JSON value, the whole body.
    Json,
}

impl Framing {
    /// Reads a `Content-Type`. `None` for what is none of ours.
    pub fn from_content_type(value: &[u8]) -> Option<Self> {
        let end = value.iter().position(|&b| b == b';').unwrap_or(value.len());
        let media = value[..end].trim_ascii();
        let is = |name: &str| media.eq_ignore_ascii_case(name.as_bytes());
        if is("text/event-stream") {
            Some(Self::Sse)
        } else if is("application/x-ndjson") || is("application/jsonl") || is("application/ndjson") {
            Some(Self::Ndjson)
        } else if is("application/json") || is("application/problem+json") {
            Some(Self::Json)
        } else {
            None
        }
    }
}

/// What became of the body, known at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The body ended inside a frame.
    pub torn: bool,
    /// Of a whole-body value: it was all there.
    pub whole: bool,
}

/// How many bytes went which way; the proof that each is read once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes handed in.
    pub fed: u64,
    /// Payload bytes the JSON scanner walked.
    pub walked: u64,
    /// Bytes of frames recognised by their shape, which it did not walk.
    pub matched: u64,
    /// Frames that were not JSON and were let pass unread.
    pub unparsed: u64,
}

/// Scans one response body.
#[derive(Debug)]
pub struct Scanner {
    lines: Lines,
    fields: &'static Fields,
    payload: Payload,
    json: Json,
    frame: Frame,
    shape: Shape,
    /// Nobody edits the body, so frames need not be walked to find where their usage stands.
    may_match: bool,
    /// Where the slice at hand stands in the body.
    position: u64,
    /// Where the frame at hand began, in the body.
    begun: u64,
    work: Work,
}

#[derive(Debug)]
enum Lines {
    Sse(Sse),
    Ndjson,
    Json,
}

/// What the payload of the frame at hand has turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    /// Nothing yet.
    Fresh,
    /// So many bytes of `[DONE]`.
    MaybeDone(usize),
    /// The end mark; what follows it in the frame is ignored, as the SDKs do.
    Done,
    Json,
}

const DONE: &[u8] = b"[DONE]";

impl Scanner {
    /// A scanner for one body.
    pub fn new(dialect: Dialect, framing: Framing) -> Self {
        Self {
            lines: match framing {
                Framing::Sse => Lines::Sse(Sse::new()),
                Framing::Ndjson => Lines::Ndjson,
                Framing::Json => Lines::Json,
            },
            fields: dialect.fields(),
            payload: Payload::Fresh,
            json: Json::new(),
            frame: Frame::new(dialect, framing == Framing::Json),
            shape: Shape::new(),
            may_match: true,
            position: 0,
            begun: 0,
            work: Work::default(),
        }
    }

    /// Makes each frame say where its usage member and its timings stand. Costs the shortcut by which most frames
    /// are read without a walk through their JSON.
    pub fn locate_usage(&mut self) {
        self.may_match = false;
    }

    /// Keeps the answer's text, up to `most` bytes as they stand in the frames. Costs the same
    /// shortcut.
    pub fn keep_text(&mut self, most: usize) {
        self.may_match = false;
        self.json.kept = Some(Box::new(Kept::new(most)));
    }

    /// Takes the text that was kept: the insides of JSON strings, joined, escapes as they stand.
    /// `None` if none was, or it was too long.
    pub fn take_text(&mut self) -> Option<Vec<u8>> {
        self.json.kept.take()?.into_bytes()
    }

    /// Reads the next slice of the body.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        self.position = self.work.fed;
        self.json.origin = self.position;
        self.work.fed += bytes.len() as u64;
        match self.lines {
            Lines::Sse(_) => self.feed_sse(bytes, sink),
            Lines::Ndjson => self.feed_ndjson(bytes, sink),
            Lines::Json => self.payload(bytes, (0, bytes.len()), sink),
        }
    }

    /// The body is over.
    pub fn end(&mut self, sink: &mut impl Sink) -> Tail {
        let whole = match &mut self.lines {
            // The client never sees an unfinished block.
            Lines::Sse(sse) => match sse.end() {
                Some(Step::Block { data, error }) => Some((false, data, error)),
                _ => None,
            },
            Lines::Ndjson | Lines::Json => (self.payload != Payload::Fresh).then_some((true, true, false)),
        };
        match whole {
            Some((whole, data, error)) => {
                let read = self.end_frame(self.work.fed, (whole, data, error), sink);
                Tail { torn: !whole || !read, whole: whole && read }
            }
            None => Tail { torn: false, whole: false },
        }
    }

    /// The first model name the body carried.
    pub fn model(&self) -> &Name {
        &self.frame.model
    }

    /// The first id by which the body calls its answer; one longer than a name is passed over.
    pub fn id(&self) -> &Name {
        &self.frame.id
    }

    /// The dialect that an answer scanned as [`Dialect::Unknown`] says it is of, by its `object`.
    pub fn answered(&self) -> Option<Dialect> {
        self.frame.answered
    }

    /// The last service tier the body told; one longer than a tier is passed over.
    pub fn service_tier(&self) -> &Tier {
        &self.frame.tier
    }

    /// Where an SSE block that is not over yet began, in the body.
    pub fn unfinished(&self) -> Option<u64> {
        match &self.lines {
            Lines::Sse(sse) => sse.is_open().then_some(self.begun),
            Lines::Ndjson | Lines::Json => None,
        }
    }

    /// How the bytes were read.
    pub fn work(&self) -> Work {
        Work { walked: self.json.scanned(), ..self.work }
    }

    fn feed_sse(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let mut at = 0;
        // Where the block at hand began, if it did in this slice.
        let mut block = None;
        loop {
            let Lines::Sse(sse) = &mut self.lines else { return };
            if sse.at_block_start(bytes, &mut at) {
                self.begun = self.position + at as u64;
                if self.may_match
                    && let Some(found) = self.shape.read(&bytes[at..])
                {
                    at += found.len;
                    sse.skipped_block(bytes[at - 1]);
                    self.work.matched += found.len as u64;
                    sink.event(found.kind.event(found.piece));
                    if let Some(counts) = found.usage {
                        let scope = Scope::Running(found.piece.choice);
                        sink.event(Event::Usage(Usage { scope, counts }));
                    }
                    sink.frame(self.extent(self.position + at as u64, true));
                    continue;
                }
                block = Some(at);
            }
            match sse.step(bytes, &mut at) {
                None => return,
                Some(Step::Payload(from, to)) => self.payload(bytes, (from, to), sink),
                Some(Step::NextLine) => self.next_line(sink),
                Some(Step::Comment) => {
                    // A block with a comment in it says more than its payload.
                    block = None;
                    sink.event(Event::Ping);
                }
                Some(Step::Block { data, error }) => {
                    if let Some(from) = block.take()
                        && self.may_match
                        && self.payload == Payload::Json
                        && self.json.is_whole()
                        && !error
                        && let Some(piece) = self.frame.single_piece()
                    {
                        self.shape.learn(bytes, (from, at), &self.frame.holes, piece);
                    }
                    self.end_frame(self.position + at as u64, (true, data, error), sink);
                }
            }
        }
    }

    fn feed_ndjson(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let mut at = 0;
        while let Some(stop) = memchr(b'\n', &bytes[at..]) {
            self.payload(bytes, (at, at + stop), sink);
            at += stop + 1;
            let end = self.position + at as u64;
            if self.payload != Payload::Fresh {
                self.end_frame(end, (true, true, false), sink);
            }
            self.begun = end;
        }
        self.payload(bytes, (at, bytes.len()), sink);
    }

    /// Takes payload bytes that stand at `from..to` of `bytes`.
    fn payload(&mut self, bytes: &[u8], (mut from, to): (usize, usize), sink: &mut impl Sink) {
        if self.payload == Payload::Fresh {
            // Blank lines between NDJSON values and before a JSON body are nothing.
            if !matches!(self.lines, Lines::Sse(_)) {
                from += bytes[from..to].iter().take_while(|b| b.is_ascii_whitespace()).count();
            }
            let Some(&first) = bytes[from..to].first() else { return };
            let may_end = first == b'[' && matches!(self.lines, Lines::Sse(_));
            self.payload = if may_end { Payload::MaybeDone(0) } else { Payload::Json };
        }
        if let Payload::MaybeDone(seen) = self.payload {
            let same =
                bytes[from..to].iter().zip(&DONE[seen..]).take_while(|(byte, done)| byte == done).count();
            from += same;
            if seen + same == DONE.len() {
                self.payload = Payload::Done;
            } else if from < to {
                self.payload = Payload::Json;
                self.walk(&DONE[..seen + same], (0, seen + same), sink);
            } else {
                self.payload = Payload::MaybeDone(seen + same);
            }
        }
        if self.payload == Payload::Json {
            self.walk(bytes, (from, to), sink);
        }
    }

    /// The payload goes on after a line end, which makes JSON of what began like an end mark.
    fn next_line(&mut self, sink: &mut impl Sink) {
        let begun = match self.payload {
            Payload::Done => return,
            Payload::MaybeDone(seen) => seen,
            Payload::Fresh | Payload::Json => 0,
        };
        self.payload = Payload::Json;
        self.walk(&DONE[..begun], (0, begun), sink);
        self.walk(b"\n", (0, 1), sink);
    }

    fn walk(&mut self, bytes: &[u8], (from, to): (usize, usize), sink: &mut impl Sink) {
        let mut reader = Reader { frame: &mut self.frame, sink };
        self.json.feed(self.fields, &bytes[from..to], from, &mut reader);
    }

    /// Ends the frame at hand; false if its payload could not be read.
    fn end_frame(&mut self, to: u64, (whole, data, error): (bool, bool, bool), sink: &mut impl Sink) -> bool {
        let extent = self.extent(to, whole);
        let payload = std::mem::replace(&mut self.payload, Payload::Fresh);
        if error {
            self.frame.mark_error();
        }
        let mut read = true;
        match payload {
            Payload::Done => {
                sink.event(Event::Done);
                sink.frame(extent);
            }
            Payload::Fresh if data && !error => {
                sink.event(Event::Ping);
                sink.frame(extent);
            }
            Payload::Fresh => self.frame.end(extent, sink),
            Payload::MaybeDone(seen) => {
                read = self.end_json(extent, error, &DONE[..seen], sink);
            }
            Payload::Json => read = self.end_json(extent, error, b"", sink),
        }
        self.frame.forget();
        if let Some(kept) = &mut self.json.kept {
            kept.end_frame(read && whole);
        }
        self.json.restart();
        read
    }

    fn end_json(&mut self, mut extent: Extent, error: bool, rest: &[u8], sink: &mut impl Sink) -> bool {
        self.walk(rest, (0, rest.len()), sink);
        let mut reader = Reader { frame: &mut self.frame, sink };
        match self.json.end(self.fields, &mut reader) {
            End::Whole => {
                if !self.may_match {
                    (extent.usage, extent.timings) = (self.json.usage_member(), self.json.timings());
                }
                self.frame.end(extent, sink);
                return true;
            }
            End::Empty | End::Null if !error => {
                sink.event(Event::Ping);
                sink.frame(extent);
                return true;
            }
            End::Broken | End::Torn if extent.whole => self.work.unparsed += 1,
            _ => {}
        }
        let unread = self.frame.unread(extent.whole);
        sink.event(if error { Event::Error } else { unread });
        sink.frame(extent);
        false
    }

    fn extent(&self, to: u64, whole: bool) -> Extent {
        Extent { from: self.begun, to, whole, is_usage: false, usage: None, timings: None }
    }
}
