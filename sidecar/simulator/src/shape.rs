//! The shapes of real servers: what differs between them on the wire, and nothing else.
//!
//! A shape is a sibling file with the same members in the same order. It turns pieces into events,
//! finished choices into one JSON body, and words refusals, lists and metric pages its own way. JSON
//! is written by hand because key order is part of a shape.
//!
//! The law: each string pushed is one HTTP chunk. Which events share a chunk was recorded from real
//! servers too.

mod llamacpp;
mod vllm;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::ask::{Ask, Finish};
use crate::counters::Counts;
use crate::random::SplitMix64;
use crate::script::{Kind, Piece, Tally};
use crate::speed::Model;
use crate::text::Token;

/// Which server is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// vLLM 0.32, its Python front end.
    #[default]
    Vllm,
    /// llama.cpp's server.
    LlamaCpp,
}

/// One answer's way of being written.
pub(crate) trait Voice: Send + Sync {
    /// What comes before the first piece.
    fn opening(&self, ask: &Ask, out: &mut Vec<String>);
    /// A piece; nothing if this server would not have sent it.
    fn piece(&self, ask: &Ask, piece: &Piece, out: &mut Vec<String>);
    /// What comes after the last piece: usage, the end mark.
    fn end(&self, ask: &Ask, total: Tally, out: &mut Vec<String>);
    /// An error inside a stream, and what this server sends after one.
    fn error(&self, message: &str, out: &mut Vec<String>);
    /// A comment event.
    fn ping(&self) -> &'static str;
    /// The whole answer as one body.
    fn whole(&self, ask: &Ask, choices: &[Told]) -> String;
}

/// A finished choice of an answer that is not streamed.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) arguments: String,
    pub(crate) tokens: Vec<Token>,
    pub(crate) tally: Tally,
    pub(crate) finish: Finish,
}

impl Told {
    pub(crate) fn new(ask: &Ask) -> Self {
        Self {
            text: String::new(),
            reasoning: String::new(),
            arguments: String::new(),
            tokens: Vec::new(),
            tally: Tally::default(),
            finish: ask.finish,
        }
    }

    pub(crate) fn push(&mut self, piece: &Piece) {
        match piece.kind {
            Kind::Text => self.text.push_str(&piece.text),
            Kind::Reasoning => self.reasoning.push_str(&piece.text),
            Kind::Tool => self.arguments.push_str(&piece.text),
            Kind::End => {}
        }
        self.tokens.extend_from_slice(&piece.tokens);
        self.tally = piece.tally;
    }
}

impl Shape {
    pub(crate) fn voice(self, ask: &Ask, model: &Model) -> Box<dyn Voice> {
        match self {
            Self::Vllm => Box::new(vllm::Voice::new(ask)),
            Self::LlamaCpp => Box::new(llamacpp::Voice::new(ask, model)),
        }
    }

    /// The headers beside `content-length` or `transfer-encoding`, in order.
    pub(crate) fn head(self, streamed: bool) -> &'static [(&'static str, &'static str)] {
        match (self, streamed) {
            (Self::Vllm, true) => vllm::STREAM_HEAD,
            (Self::Vllm, false) => vllm::HEAD,
            (Self::LlamaCpp, true) => llamacpp::STREAM_HEAD,
            (Self::LlamaCpp, false) => llamacpp::HEAD,
        }
    }

    pub(crate) fn refusal(self, status: u16, message: &str) -> String {
        match self {
            Self::Vllm => vllm::refusal(status, message),
            Self::LlamaCpp => llamacpp::refusal(status, message),
        }
    }

    pub(crate) fn models(self, names: &[&str]) -> String {
        match self {
            Self::Vllm => vllm::models(names),
            Self::LlamaCpp => llamacpp::models(names),
        }
    }

    /// The body of `/health`.
    pub(crate) fn health(self) -> &'static str {
        match self {
            Self::Vllm => "",
            Self::LlamaCpp => r#"{"status":"ok"}"#,
        }
    }

    pub(crate) fn metrics(self, counts: &Counts, name: &str) -> String {
        match self {
            Self::Vllm => vllm::metrics(counts, name),
            Self::LlamaCpp => llamacpp::metrics(counts),
        }
    }
}

/// `created` of each answer, in seconds since 1970: a constant, since equal questions have equal answers.
const CREATED: u64 = 1_790_000_000;

/// The generator of ids, apart from that of words.
fn ids(ask: &Ask) -> SplitMix64 {
    SplitMix64::new(ask.seed).fork(u64::MAX - 1)
}

/// `text` as a JSON string, quotes included.
fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// `data: …` and the blank line.
fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// Items joined with commas inside brackets.
fn list<T>(items: impl IntoIterator<Item = T>, write: impl Fn(T) -> String) -> String {
    let items: Vec<String> = items.into_iter().map(write).collect();
    format!("[{}]", items.join(","))
}

/// Ids of `tokens`.
fn token_ids(tokens: &[Token]) -> String {
    list(tokens, |token| token.id.to_string())
}

/// Token ids of a prompt: any will do, as long as there are as many as are counted.
fn prompt_ids(tokens: u64) -> String {
    list(0..tokens, |position| (100 + position % 400).to_string())
}

/// A log probability that depends on the token alone.
fn logprob(token: &Token) -> f64 {
    -f64::from(token.id % 500) / 64.0
}

/// The bytes of a token, as a JSON list.
fn token_bytes(token: &Token) -> String {
    list(token.text.bytes(), |byte| byte.to_string())
}
