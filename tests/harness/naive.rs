//! The obvious implementation all is compared with: it has the whole body, splits it into lines by
//! the letter of the SSE standard, parses each payload into a tree, looks keys up by name and
//! counts characters with `chars()`. It is slow, it allocates, and it is easy to believe.
//!
//! It has no opinion on what is not JSON by the strict grammar, nor on a few bodies whose meaning
//! no document settles ([`value::parse`] lists them); then it answers `None`. The scanner need not
//! agree with anyone there, only with itself.

mod blocks;
mod counts;
mod frame;
mod request;
mod value;

use scan::{Dialect, Event, Framing, Sink, Tail};

pub use request::{Asked, read_request};

use crate::{Said, Seen};
use blocks::Item;

/// What `body` says, or `None` if that is a matter of opinion.
pub fn read(dialect: Dialect, framing: Framing, body: &[u8]) -> Option<Seen> {
    let mut seen = Seen::default();
    let tail = match framing {
        Framing::Sse => read_sse(dialect, body, &mut seen)?,
        Framing::Ndjson => read_lines(dialect, body, &mut seen)?,
        Framing::Json => {
            let whole = !value::trim(body).is_empty();
            if whole {
                read_payload(dialect, body, Frame { unstreamed: true, ..Frame::WHOLE }, &mut seen)?;
            }
            Tail { torn: false, whole }
        }
    };
    seen.tail = Some(tail);
    Some(seen)
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

/// What is known of a payload from outside it.
#[derive(Clone, Copy)]
struct Frame {
    /// It is the whole of an unstreamed answer.
    unstreamed: bool,
    /// Its block is named `error`.
    error: bool,
    /// Its block was finished.
    whole: bool,
    /// A comment stood in its block.
    commented: bool,
}

impl Frame {
    const WHOLE: Self = Self { unstreamed: false, error: false, whole: true, commented: false };
}

fn read_sse(dialect: Dialect, body: &[u8], seen: &mut Seen) -> Option<Tail> {
    let mut torn = false;
    for item in blocks::items(body) {
        match item {
            Item::Comment => seen.event(Event::Ping),
            Item::Block { data, event, whole, commented } => {
                let frame = Frame { unstreamed: false, error: event == b"error", whole, commented };
                torn |= !whole;
                match data {
                    Some(data) if data.starts_with(b"[DONE]") => {
                        seen.event(Event::Done);
                        seen.said.push(Said::Frame(whole));
                    }
                    Some(data) => read_payload(dialect, &data, frame, seen)?,
                    // Dynamo reports errors in a block without data.
                    None => {
                        seen.event(Event::Error);
                        seen.said.push(Said::Frame(whole));
                    }
                }
            }
        }
    }
    Some(Tail { torn, whole: false })
}

fn read_lines(dialect: Dialect, body: &[u8], seen: &mut Seen) -> Option<Tail> {
    let mut last = false;
    for line in body.split(|&b| b == b'\n') {
        last = !value::trim(line).is_empty();
        if last {
            read_payload(dialect, line, Frame::WHOLE, seen)?;
        }
    }
    // What follows the last line end is whole too, if it can be read.
    Some(Tail { torn: false, whole: last })
}

fn read_payload(dialect: Dialect, payload: &[u8], frame: Frame, seen: &mut Seen) -> Option<()> {
    let value = match value::trim(payload) {
        b"" => serde_json::Value::Null,
        text => value::parse(text)?,
    };
    let events = match value.is_null() {
        true if frame.error => vec![Event::Error],
        true => vec![Event::Ping],
        false => frame::events(dialect, frame, &value)?,
    };
    for event in events {
        seen.event(event);
    }
    seen.said.push(Said::Frame(frame.whole));
    if seen.model.is_empty() {
        seen.model = frame::model(dialect, &value)?.to_owned();
    }
    Some(())
}
