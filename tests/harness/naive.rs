//! The oracle of the scanner: it has the whole body, splits it into lines by the SSE standard, parses each payload into
//! a tree, looks up keys by name and counts characters with `chars()`. It is slow, it allocates, and it is easy to
//! verify.
//!
//! It has no result for text that is not strict JSON ([`value::parse`] lists the cases), nor for frames of which no
//! document defines the meaning; then it returns `None`, and the scanner must only agree with itself. These cases are
//! undefined:
//!
//! * any dialect: a finish word of another dialect only; a server time beyond 2^53 ns; two places of one count, time,
//!   model, id or list of ids that disagree; a name of tokens in another style;
//! * chat, completions: an array of answers;
//! * chat: `delta` beside `message`; an answer of no model and no content that is whole or counted; timings beside a
//!   usage without counts;
//! * Responses, Anthropic, Cohere: a frame without `type` that is not the unstreamed form; an unstreamed body without a
//!   type;
//! * Responses: an error in a response that did not fail; times of an unfinished response;
//! * Anthropic: a second `message_start`; a rejected count in it; a `message_delta` with an empty usage; a body without
//!   content and end;
//! * TGI: an object without `token`, text and details; a rejected `index` or count of one of several sequences; both
//!   `prefill` and `input_length`; an array with other values than objects;
//! * SGLang, LMDeploy: an object without text and ids; text or ids that vanish, ids of choices beyond the eighth; an
//!   array in a stream, or one with a choice twice; a word that SGLang does not send;
//! * Ollama: counts or times before the end, or invalid times; a body of another shape;
//! * Triton: no `text_output`;
//! * Gemini: a count of tool use alone; an array in a stream; a frame without a known part; an unstreamed interaction
//!   with a type, or with steps and outputs;
//! * Bedrock's Converse: parts of an event beside those of an answer, or of two events;
//! * Cohere: text of another type of event; an unstreamed body with a plan or calls, or without a message;
//! * embeddings and rankings: a rejected count beside another, or beside an invalid usage;
//! * transcription: members of a chat beyond content, role and finish, and llama.cpp's members beside one; text at an
//!   unknown place;
//! * Gemini: a frame below `response`;
//! * unknown: counts of Cohere's first version; text that begins like an object and is none, or is not JSON outside a stream of events; an object in a
//!   block named `error`; counts in two places; a rejected count beside another.

mod anthropic;
mod blocks;
mod cohere;
mod converse;
mod counts;
mod edit;
mod facts;
mod frame;
mod gemini;
mod generate;
mod interactions;
mod memory;
mod native;
mod ollama;
mod openai;
mod prompts;
mod realtime;
mod request;
mod responses;
mod styles;
mod tgi;
mod times;
mod transcription;
mod triton;
mod unknown;
mod value;
mod words;

use scan::{Dialect, Event, Framing, Sink, Tail};

pub use edit::{asked, edit};
pub use request::{RequestFacts, read_request};

use crate::{Seen, SinkCall};
use blocks::Item;
use memory::Memory;

/// The events of `body`, or `None` if they are undefined.
pub fn read(dialect: Dialect, framing: Framing, body: &[u8]) -> Option<Seen> {
    let mut reading = Reading { dialect, framing, seen: Seen::default(), memory: Memory::default() };
    let tail = match framing {
        Framing::Sse => reading.sse(body)?,
        Framing::Ndjson => reading.lines(body)?,
        // Their ends are outside of the bytes.
        Framing::Messages | Framing::EventStream => return None,
        Framing::Json => {
            let whole = !value::trim(body).is_empty();
            if whole {
                reading.payload(body, Frame { unstreamed: true, ..Frame::WHOLE })?;
            }
            Tail { torn: false, whole }
        }
    };
    reading.seen.tail = Some(tail);
    Some(reading.seen)
}

/// The data of the events that a client library would dispatch.
pub fn payloads(body: &[u8]) -> Vec<String> {
    let dispatched = |item| match item {
        Item::Block { data, whole: true, .. } => data,
        _ => None,
    };
    let payloads = blocks::items(body).into_iter().filter_map(dispatched);
    payloads.map(|data| String::from_utf8_lossy(&data).into_owned()).collect()
}

/// The facts about a payload from outside it.
#[derive(Clone, Copy)]
struct Frame {
    /// It is a whole unstreamed answer.
    unstreamed: bool,
    /// Its block is named `error`.
    error: bool,
    /// Its block is complete.
    whole: bool,
    /// Its block has a comment.
    commented: bool,
}

impl Frame {
    const WHOLE: Self = Self { unstreamed: false, error: false, whole: true, commented: false };
}

/// A body that is read frame by frame.
struct Reading {
    dialect: Dialect,
    framing: Framing,
    seen: Seen,
    memory: Memory,
}

impl Reading {
    fn sse(&mut self, body: &[u8]) -> Option<Tail> {
        let mut torn = false;
        for item in blocks::items(body) {
            match item {
                Item::Comment => self.seen.event(Event::Ping),
                Item::Block { data, event, stray, whole, commented } => {
                    let error = event == b"error" || stray;
                    let frame = Frame { unstreamed: false, error, whole, commented };
                    torn |= !whole;
                    match data {
                        Some(data) if data.starts_with(b"[DONE]") => self.say(&[Event::Done], whole),
                        Some(data) => self.payload(&data, frame)?,
                        // Dynamo reports errors in a block without data, Gemini in one without names.
                        None => self.say(&[Event::Error], whole),
                    }
                }
            }
        }
        Some(Tail { torn, whole: false })
    }

    fn lines(&mut self, body: &[u8]) -> Option<Tail> {
        let mut last = false;
        for line in body.split(|&b| b == b'\n') {
            last = !value::trim(line).is_empty();
            if last {
                self.payload(line, Frame::WHOLE)?;
            }
        }
        // The text after the last line end is complete, too, if it is readable.
        Some(Tail { torn: false, whole: last })
    }

    fn payload(&mut self, payload: &[u8], frame: Frame) -> Option<()> {
        let value = match value::trim(payload) {
            b"" => serde_json::Value::Null,
            text => match value::parse(text) {
                Some(value) => value,
                // A payload that is no object is not read.
                None if self.dialect == Dialect::Unknown
                    && self.framing == Framing::Sse
                    && frame.whole
                    && text[0] != b'{' =>
                {
                    true.into()
                }
                None => return None,
            },
        };
        if styles::is_restyled(self.dialect, &value) {
            return None;
        }
        let events = match value.is_null() {
            true if frame.error => vec![Event::Error],
            true => vec![Event::Ping],
            false => frame::events(self.dialect, frame, &value, &mut self.memory)?,
        };
        self.say(&events, frame.whole);
        if self.seen.model.is_empty() {
            self.seen.model = frame::model(self.dialect, &value)?.to_owned();
        }
        if self.seen.id.is_empty() {
            self.seen.id = frame::id(self.dialect, &value)?.to_owned();
        }
        if let Some(tier) = frame::tier(self.dialect, &value)? {
            self.seen.tier = tier.to_owned();
        }
        Some(())
    }

    fn say(&mut self, events: &[Event], whole: bool) {
        for event in events {
            self.seen.event(*event);
        }
        self.seen.calls.push(SinkCall::Frame(whole));
    }
}
