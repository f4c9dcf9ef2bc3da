//! The shapes of real servers: only their differences on the wire.
//!
//! A shape is a submodule with the same functions. It turns pieces into events and
//! finished choices into one JSON body, and formats errors, lists and metrics pages. JSON
//! is written by hand because key order is part of a shape.
//!
//! The law: each pushed string is one HTTP chunk. Which events share a chunk follows recordings of real
//! servers.

mod llamacpp;
mod vllm;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::counters::Counts;
use crate::params::{Finish, GenerationParams};
use crate::random::SplitMix64;
use crate::script::{Kind, Piece, Tally};
use crate::speed::Model;
use crate::text::Token;

/// The imitated server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// vLLM 0.32, its Python front end.
    #[default]
    Vllm,
    /// llama.cpp's server.
    LlamaCpp,
}

/// Writes one response in the format of a server.
pub(crate) trait ResponseWriter: Send + Sync {
    /// Writes the events before the first piece.
    fn opening(&self, params: &GenerationParams, out: &mut Vec<String>);
    /// Writes a piece, or nothing if this server would not send it.
    fn piece(&self, params: &GenerationParams, piece: &Piece, out: &mut Vec<String>);
    /// Writes the events after the last piece: usage, end mark.
    fn end(&self, params: &GenerationParams, total: Tally, out: &mut Vec<String>);
    /// Writes an error event, and what this server sends after one.
    fn error(&self, message: &str, out: &mut Vec<String>);
    /// Returns a comment event.
    fn ping(&self) -> &'static str;
    /// Returns an unstreamed response as one body.
    fn whole(&self, params: &GenerationParams, choices: &[CompleteChoice]) -> String;
}

/// A complete choice of an unstreamed response.
#[derive(Clone, Debug)]
pub(crate) struct CompleteChoice {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) arguments: String,
    pub(crate) tokens: Vec<Token>,
    pub(crate) tally: Tally,
    pub(crate) finish: Finish,
}

impl CompleteChoice {
    pub(crate) fn new(params: &GenerationParams) -> Self {
        Self {
            text: String::new(),
            reasoning: String::new(),
            arguments: String::new(),
            tokens: Vec::new(),
            tally: Tally::default(),
            finish: params.finish,
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
    pub(crate) fn writer(self, params: &GenerationParams, model: &Model) -> Box<dyn ResponseWriter> {
        match self {
            Self::Vllm => Box::new(vllm::ResponseWriter::new(params)),
            Self::LlamaCpp => Box::new(llamacpp::ResponseWriter::new(params, model)),
        }
    }

    /// Returns the headers besides `content-length` or `transfer-encoding`, in order.
    pub(crate) fn head(self, streamed: bool) -> &'static [(&'static str, &'static str)] {
        match (self, streamed) {
            (Self::Vllm, true) => vllm::STREAM_HEAD,
            (Self::Vllm, false) => vllm::HEAD,
            (Self::LlamaCpp, true) => llamacpp::STREAM_HEAD,
            (Self::LlamaCpp, false) => llamacpp::HEAD,
        }
    }

    pub(crate) fn error_body(self, status: u16, message: &str) -> String {
        match self {
            Self::Vllm => vllm::error_body(status, message),
            Self::LlamaCpp => llamacpp::error_body(status, message),
        }
    }

    pub(crate) fn models(self, names: &[&str]) -> String {
        match self {
            Self::Vllm => vllm::models(names),
            Self::LlamaCpp => llamacpp::models(names),
        }
    }

    /// Returns the body of `/health`.
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

/// `created` of each response, seconds since 1970: constant, because equal requests give equal responses.
const CREATED: u64 = 1_790_000_000;

/// Returns the generator of ids, independent of that of words.
fn ids(params: &GenerationParams) -> SplitMix64 {
    SplitMix64::new(params.seed).fork(u64::MAX - 1)
}

/// Returns `text` as a JSON string with quotes.
fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns `data: …` with the blank line.
fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// Returns the items as a JSON list.
fn list<T>(items: impl IntoIterator<Item = T>, write: impl Fn(T) -> String) -> String {
    let items: Vec<String> = items.into_iter().map(write).collect();
    format!("[{}]", items.join(","))
}

/// Returns the ids of `tokens` as a JSON list.
fn token_ids(tokens: &[Token]) -> String {
    list(tokens, |token| token.id.to_string())
}

/// Returns token ids of a prompt: arbitrary ones, in the counted number.
fn prompt_ids(tokens: u64) -> String {
    list(0..tokens, |position| (100 + position % 400).to_string())
}

/// Returns a log probability that depends on the token alone.
fn logprob(token: &Token) -> f64 {
    -f64::from(token.id % 500) / 64.0
}

/// Returns the bytes of a token as a JSON list.
fn token_bytes(token: &Token) -> String {
    list(token.text.bytes(), |byte| byte.to_string())
}
