//! The scanner of one response body: slices in, events out, in the order of the bytes. Any slicing of the
//! body yields the same events. It reads each byte once and keeps none.

use std::sync::Arc;

use memchr::memchr;

use crate::dialect::Dialect;
use crate::envelope::Envelope;
use crate::event::{Event, Scope, Sink, Usage};
use crate::event_stream::{self, EventStream, WRAPPER};
use crate::extent::Extent;
use crate::field::Fields;
use crate::frame::{BodyFacts, Reader};
use crate::json::End;
use crate::name::Names;
use crate::scratch::Scratch;
use crate::shape::Shape;
use crate::sse::{Sse, Step};
use crate::text_buffer::TextBuffer;

/// The framing of a body, from the response's content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `text/event-stream`.
    Sse,
    /// One JSON value per line.
    Ndjson,
    /// One JSON value: the whole body.
    Json,
    /// One JSON value per message, of which [`Scanner::end_message`] is the end: a WebSocket.
    Messages,
    /// One JSON value per message of `application/vnd.amazon.eventstream`.
    EventStream,
}

impl Framing {
    /// Reads a `Content-Type`. `None` for an unsupported one.
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
        } else if is("application/vnd.amazon.eventstream") {
            Some(Self::EventStream)
        } else {
            None
        }
    }
}

/// The state of the body at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The body ended inside a frame.
    pub torn: bool,
    /// True if a whole-body value was complete.
    pub whole: bool,
}

/// The bytes by kind of processing; tests use it to prove that each byte is read once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes received.
    pub fed: u64,
    /// Payload bytes that the JSON scanner read.
    pub walked: u64,
    /// Bytes of frames recognised by their shape, which it did not read.
    pub matched: u64,
    /// Frames that were not JSON and were skipped.
    pub unparsed: u64,
}

/// Scans one response body.
#[derive(Debug)]
pub struct Scanner {
    lines: Lines,
    dialect: Dialect,
    fields: &'static Fields,
    payload: Payload,
    /// The state inside the current frame; `None` between two frames. While it is present, it holds the facts of the
    /// body, the envelope and the text, and the next three fields are empty.
    scratch: Option<Box<Scratch>>,
    body: BodyFacts,
    /// The envelope of the last message, if the frames are messages.
    envelope: Option<Box<Envelope>>,
    /// The answer's text, if it is kept.
    text_buffer: Option<Box<TextBuffer>>,
    shape: Shape,
    /// The dialect that was followed, if the answer was in the shape of another.
    followed: Option<Dialect>,
    /// The body is not edited, so frames need not be walked to locate their usage.
    may_match: bool,
    /// The position of the current slice in the body.
    position: u64,
    /// The start of the current frame in the body.
    begun: u64,
    work: Work,
}

#[derive(Debug)]
enum Lines {
    Sse(Sse),
    Ndjson,
    Json,
    Messages,
    EventStream(Box<EventStream>),
}

impl Lines {
    fn of(framing: Framing) -> Self {
        match framing {
            Framing::Sse => Self::Sse(Sse::new()),
            Framing::Ndjson => Self::Ndjson,
            Framing::Json => Self::Json,
            Framing::Messages => Self::Messages,
            Framing::EventStream => Self::EventStream(Box::new(EventStream::new())),
        }
    }
}

/// The payload of the current frame, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    /// Nothing yet.
    Fresh,
    /// Bytes of `[DONE]` matched so far.
    MaybeDone(usize),
    /// The end mark; the rest of the frame is ignored, as in the SDKs.
    Done,
    Json,
}

pub(crate) const DONE: &[u8] = b"[DONE]";

impl Scanner {
    /// A scanner for one body.
    pub fn new(dialect: Dialect, framing: Framing) -> Self {
        Self {
            lines: Lines::of(framing),
            dialect,
            fields: dialect.fields(),
            payload: Payload::Fresh,
            scratch: None,
            body: BodyFacts::default(),
            envelope: (framing == Framing::Messages).then(Box::default),
            text_buffer: None,
            shape: Shape::new(),
            followed: None,
            may_match: true,
            position: 0,
            begun: 0,
            work: Work::default(),
        }
    }

    /// Sets the framing that the body's first bytes show. Must be called before the first of them; white space may
    /// precede it.
    pub fn reframe(&mut self, framing: Framing) {
        self.lines = Lines::of(framing);
    }

    /// The framing of the body, as far as it was read: a JSON value that another one follows is a line.
    pub fn framing(&self) -> Framing {
        match self.lines {
            Lines::Sse(_) => Framing::Sse,
            Lines::Ndjson => Framing::Ndjson,
            Lines::Json => Framing::Json,
            Lines::Messages => Framing::Messages,
            Lines::EventStream(_) => Framing::EventStream,
        }
    }

    /// Reads frames in the shape of another dialect as such, where the frames have nothing of the body's own.
    pub fn follow_answer(&mut self) {
        self.body.follows = true;
    }

    /// Reports the position of each frame's usage member, also of counts, and timings. Disables shape matching, so every
    /// frame's JSON is walked.
    pub fn locate_usage(&mut self) {
        self.may_match = false;
    }

    /// Keeps the answer's text, up to `max_bytes` as they stand in the frames. Disables shape matching, too. Must be
    /// called before the body's first slice.
    pub fn keep_text(&mut self, max_bytes: usize) {
        self.may_match = false;
        self.text_buffer = Some(Box::new(TextBuffer::new(max_bytes)));
    }

    /// Takes the kept text: the insides of JSON strings, joined, with their escapes. `None` if no text was
    /// kept, or it was too long.
    pub fn take_text(&mut self) -> Option<Vec<u8>> {
        self.text_buffer.take()?.into_bytes()
    }

    /// Reads the next slice of the body.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        self.position = self.work.fed;
        self.work.fed += bytes.len() as u64;
        match self.lines {
            Lines::Sse(_) => self.feed_sse(bytes, sink),
            Lines::Ndjson => self.feed_ndjson(bytes, sink),
            Lines::Json => self.feed_json(bytes, sink),
            Lines::Messages => _ = self.payload(bytes, (0, bytes.len()), sink),
            Lines::EventStream(_) => self.feed_event_stream(bytes, sink),
        }
        if self.payload == Payload::Fresh {
            self.leave_frame();
        }
    }

    /// Begins a message of [`Framing::Messages`]: the facts of earlier ones are forgotten.
    pub fn begin_message(&mut self) {
        self.begun = self.work.fed;
        self.leave_frame();
        self.payload = Payload::Fresh;
        self.body = BodyFacts::default();
        if let Some(envelope) = &mut self.envelope {
            **envelope = Envelope::default();
        }
    }

    /// Ends a message of [`Framing::Messages`]; returns false if it is empty or not JSON. Until the next one begins,
    /// [`envelope`](Self::envelope) and [`names`](Self::names) are its own.
    pub fn end_message(&mut self, sink: &mut impl Sink) -> bool {
        let is_read =
            self.payload != Payload::Fresh && self.end_frame(self.work.fed, (true, true, false), sink);
        self.leave_frame();
        is_read
    }

    /// The envelope of the last message; `None` for another framing.
    pub fn envelope(&self) -> Option<&Envelope> {
        self.envelope.as_deref()
    }

    /// Ends the body.
    pub fn end(&mut self, sink: &mut impl Sink) -> Tail {
        let whole = match &mut self.lines {
            // The client never receives an unfinished block.
            Lines::Sse(sse) => match sse.end() {
                Some(Step::Block { data, error, done }) => {
                    self.mark_done(done);
                    Some((false, data, error))
                }
                _ => None,
            },
            Lines::EventStream(stream) => stream.is_open().then_some((false, true, false)),
            Lines::Ndjson | Lines::Json | Lines::Messages => {
                (self.payload != Payload::Fresh).then_some((true, true, false))
            }
        };
        let tail = match whole {
            Some((whole, data, error)) => {
                let read = self.end_frame(self.work.fed, (whole, data, error), sink);
                Tail { torn: !whole || !read, whole: whole && read }
            }
            None => Tail { torn: false, whole: false },
        };
        self.leave_frame();
        tail
    }

    /// The names in the body so far.
    pub fn names(&self) -> &Names {
        &self.facts().names
    }

    /// Takes the names at the end of the body.
    pub fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.body.names)
    }

    /// Takes the id of work whose result is fetched later, at the end of the body.
    pub fn take_job(&mut self) -> Option<Arc<str>> {
        self.body.uncommon.as_mut()?.job.take()
    }

    /// The dialect of the answer, if it is another than the scanner's first: by which its frames are read now, or which
    /// an unstreamed answer shows.
    pub fn response_dialect(&self) -> Option<Dialect> {
        match self.lines {
            Lines::Json => self.facts().response_dialect,
            _ => self.followed,
        }
    }

    /// The start of an unfinished frame of a stream in the body.
    pub fn unfinished_from(&self) -> Option<u64> {
        match &self.lines {
            Lines::Sse(sse) => sse.is_open().then_some(self.begun),
            // A whole body may be the first of many lines.
            Lines::Ndjson | Lines::Json => (self.payload != Payload::Fresh).then_some(self.begun),
            Lines::Messages | Lines::EventStream(_) => None,
        }
    }

    /// The position in the body from which the unfinished frame of a stream may have a usage member.
    pub fn usage_from(&self) -> Option<u64> {
        let scratch = self.scratch.as_ref().filter(|_| self.payload == Payload::Json)?;
        let is_stream = !matches!(self.lines, Lines::Messages | Lines::EventStream(_));
        is_stream.then(|| scratch.json.usage_from(self.fields))?
    }

    /// The bytes by kind of processing.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Returns the facts of the body.
    fn facts(&self) -> &BodyFacts {
        self.scratch.as_ref().map_or(&self.body, |scratch| &scratch.frame.body)
    }

    /// Returns the state inside the current frame.
    fn scratch(&mut self) -> &mut Scratch {
        let Self { scratch, body, envelope, text_buffer, dialect, lines, .. } = self;
        scratch.get_or_insert_with(|| {
            let mut scratch = Scratch::take();
            let Scratch { json, frame } = &mut *scratch;
            frame.begin(*dialect, matches!(lines, Lines::Json));
            frame.body = std::mem::take(body);
            frame.envelope = envelope.take();
            json.text_buffer = text_buffer.take();
            scratch
        })
    }

    /// Takes the facts of the body from the state inside a frame. Returns the state to the thread if it is empty.
    fn leave_frame(&mut self) {
        let Some(mut scratch) = self.scratch.take() else { return };
        let Scratch { json, frame } = &mut *scratch;
        self.body = std::mem::take(&mut frame.body);
        self.envelope = frame.envelope.take();
        self.text_buffer = json.text_buffer.take();
        if self.payload == Payload::Fresh {
            scratch.give_back();
        }
    }

    fn feed_sse(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let mut at = 0;
        // The start of the current block, if it is in this slice.
        let mut block = None;
        loop {
            let Lines::Sse(sse) = &mut self.lines else { return };
            if sse.at_block_start(bytes, &mut at) {
                self.begun = self.position + at as u64;
                if self.may_match
                    && let Some(found) = self.shape.read(&bytes[at..], self.begun)
                {
                    at += found.len;
                    sse.skipped_block(bytes[at - 1]);
                    self.work.matched += found.len as u64;
                    sink.event(found.kind.event(found.delta));
                    if let Some(counts) = found.usage {
                        let scope = Scope::Running(found.delta.choice);
                        sink.event(Event::Usage(Usage { scope, counts }));
                    }
                    let mut extent = self.extent(self.position + at as u64, true);
                    extent.usage = found.placeholder;
                    sink.frame(extent);
                    continue;
                }
                block = Some(at);
            }
            match sse.step(bytes, &mut at) {
                None => return,
                Some(Step::Payload(from, to)) => _ = self.payload(bytes, (from, to), sink),
                Some(Step::NextLine) => self.next_line(sink),
                Some(Step::Comment) => {
                    // A block with a comment is more than its payload.
                    block = None;
                    sink.event(Event::Ping);
                }
                Some(Step::Block { data, error, done }) => {
                    self.mark_done(done);
                    if let Some(from) = block.take()
                        && self.may_match
                        && self.payload == Payload::Json
                        && let Some(scratch) = &self.scratch
                        && scratch.json.is_whole()
                        && !error
                        && let Some(delta) = scratch.frame.single_delta()
                    {
                        let usage = scratch.frame.usage_member(scratch.json.usage_member());
                        let variable = &scratch.frame.variable_spans;
                        self.shape.store(bytes, (from, at), variable, delta, (self.begun, usage));
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

    fn feed_event_stream(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let mut at = 0;
        loop {
            let Lines::EventStream(stream) = &mut self.lines else { return };
            match stream.step(bytes, &mut at) {
                None => return,
                Some(event_stream::Step::Payload(from, to)) => _ = self.payload(bytes, (from, to), sink),
                Some(event_stream::Step::Held(len)) => _ = self.payload(WRAPPER, (0, len), sink),
                Some(event_stream::Step::Decoded(len)) => {
                    let decoded = stream.decoded;
                    self.payload(&decoded, (0, len), sink);
                }
                Some(event_stream::Step::End { error }) => {
                    let end = self.position + at as u64;
                    self.end_frame(end, (true, true, error), sink);
                    self.begun = end;
                }
            }
        }
    }

    /// Reads a whole body. If an object follows the first value, the values are lines, whatever the head says.
    fn feed_json(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let Some(next) = self.payload(bytes, (0, bytes.len()), sink).filter(|&at| bytes[at] == b'{') else {
            return;
        };
        self.lines = Lines::Ndjson;
        let dialect = self.dialect;
        let Scratch { json, frame } = self.scratch();
        json.forget_rest();
        frame.begin(dialect, false);
        self.position += next as u64;
        self.end_frame(self.position, (true, true, false), sink);
        self.begun = self.position;
        self.feed_ndjson(&bytes[next..], sink);
    }

    /// Reads the payload bytes at `from..to` of `bytes`. Returns the position of the byte that follows a whole value.
    fn payload(
        &mut self,
        bytes: &[u8],
        (mut from, to): (usize, usize),
        sink: &mut impl Sink,
    ) -> Option<usize> {
        if self.payload == Payload::Fresh {
            // Empty lines between NDJSON values and before a JSON body are skipped.
            if !matches!(self.lines, Lines::Sse(_)) {
                from += bytes[from..to].iter().take_while(|b| b.is_ascii_whitespace()).count();
            }
            let &first = bytes[from..to].first()?;
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
        match self.payload {
            Payload::Json => self.walk(bytes, (from, to), sink),
            Payload::Fresh | Payload::MaybeDone(_) | Payload::Done => None,
        }
    }

    /// Continues the payload after a line end, which makes JSON of a partial end mark.
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

    fn walk(&mut self, bytes: &[u8], (from, to): (usize, usize), sink: &mut impl Sink) -> Option<usize> {
        let (fields, position) = (self.fields, self.position);
        let Scratch { json, frame } = self.scratch();
        json.origin = position;
        let next = json.feed(fields, &bytes[from..to], from, &mut Reader { frame, sink });
        let walked = json.take_scanned();
        self.work.walked += walked;
        next
    }

    /// Makes a frame without payload the end mark, if its block is.
    fn mark_done(&mut self, done: bool) {
        if done {
            self.payload = Payload::Done;
        }
    }

    /// Ends the current frame; returns false if its payload was unreadable.
    fn end_frame(&mut self, to: u64, (whole, data, error): (bool, bool, bool), sink: &mut impl Sink) -> bool {
        let extent = self.extent(to, whole);
        let read = match std::mem::replace(&mut self.payload, Payload::Fresh) {
            Payload::Done => {
                sink.event(Event::Done);
                sink.frame(extent);
                return true;
            }
            Payload::Fresh if data && !error => {
                sink.event(Event::Ping);
                sink.frame(extent);
                return true;
            }
            Payload::Fresh => {
                let frame = &mut self.scratch().frame;
                if error {
                    frame.mark_error();
                }
                frame.end(extent, sink);
                true
            }
            Payload::MaybeDone(seen) => self.end_json(extent, error, &DONE[..seen], sink),
            Payload::Json => self.end_json(extent, error, b"", sink),
        };
        let Scratch { json, frame } = self.scratch();
        frame.forget();
        if let Some(buffer) = &mut json.text_buffer {
            buffer.end_frame(read && whole);
        }
        json.restart();
        read
    }

    fn end_json(&mut self, mut extent: Extent, error: bool, rest: &[u8], sink: &mut impl Sink) -> bool {
        self.walk(rest, (0, rest.len()), sink);
        let (fields, may_match) = (self.fields, self.may_match);
        // An unstreamed body is not edited.
        let is_body = matches!(self.lines, Lines::Json);
        let Scratch { json, frame } = self.scratch();
        if error {
            frame.mark_error();
        }
        let end = json.end(fields, &mut Reader { frame, sink });
        match end {
            End::Whole => {
                if !is_body {
                    extent.usage = frame.usage_member(json.usage_member());
                }
                if !may_match {
                    extent.timings = json.timings();
                }
                frame.end(extent, sink);
                if let Some(dialect) = frame.take_next_dialect() {
                    frame.begin(dialect, false);
                    (self.dialect, self.fields, self.followed) = (dialect, dialect.fields(), Some(dialect));
                    self.shape = Shape::new();
                }
                return true;
            }
            End::Empty | End::Null if !error => {
                sink.event(Event::Ping);
                sink.frame(extent);
                return true;
            }
            _ => {}
        }
        let unread = frame.unread(extent.whole);
        self.work.unparsed += u64::from(extent.whole && matches!(end, End::Broken | End::Torn));
        sink.event(if error { Event::Error } else { unread });
        sink.frame(extent);
        false
    }

    fn extent(&self, to: u64, whole: bool) -> Extent {
        Extent { from: self.begun, to, whole, is_usage: false, usage: None, timings: None }
    }
}
