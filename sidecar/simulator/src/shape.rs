//! The shape of a real server: only its differences on the wire.
//!
//! A shape turns pieces into events and finished choices into one JSON body, and formats errors,
//! lists and metrics pages. JSON is written by hand because key order is part of a shape.
//!
//! The law: each pushed string is one HTTP chunk. Which events share a chunk follows recordings of real
//! servers.

mod vllm;

use std::fmt;

use serde_json::Value;

use crate::counters::Counts;
use crate::params::{Endpoint, Finish, GenerationParams, Rejection};
use crate::random::SplitMix64;
use crate::script::{Kind, Piece, Tally};
use crate::speed::Model;
use crate::text::Token;

pub use vllm::Vllm;

/// The imitated server.
pub trait Shape: fmt::Debug + Send + Sync + 'static {
    /// Returns the endpoint at a path.
    fn endpoint(&self, path: &str) -> Option<Endpoint>;
    /// Returns the status and the message for an endpoint's path with another method than POST.
    fn wrong_method(&self) -> (u16, &'static str);
    /// Rejects a request by the server's own rules.
    fn check(&self, params: &GenerationParams) -> Result<(), Rejection>;
    /// Returns the writer of one response.
    fn writer(&self, params: &GenerationParams, model: &Model) -> Box<dyn ResponseWriter>;
    /// Returns the headers besides `content-length` or `transfer-encoding`, in order.
    fn head(&self, streamed: bool) -> &'static [(&'static str, &'static str)];
    /// Returns the body of an error.
    fn error_body(&self, status: u16, message: &str) -> String;
    /// Returns the body of `/v1/models`.
    fn models(&self, names: &[&str]) -> String;
    /// Returns the body of `/health`.
    fn health(&self) -> &'static str;
    /// Returns the metrics page of the server with this model.
    fn metrics(&self, counts: &Counts, name: &str) -> String;
}

/// Writes one response in the format of a server.
pub trait ResponseWriter: Send + Sync {
    /// Writes the events before the first piece.
    fn opening(&self, params: &GenerationParams, out: &mut Vec<String>);
    /// Writes a piece, or nothing if this server would not send it.
    fn piece(&self, params: &GenerationParams, piece: &Piece, out: &mut Vec<String>);
    /// Writes the events after the last piece: usage, end mark.
    fn end(&self, params: &GenerationParams, total: Tally, out: &mut Vec<String>);
    /// Returns an unstreamed response as one body.
    fn whole(&self, params: &GenerationParams, choices: &[CompleteChoice]) -> String;
}

/// A complete choice of an unstreamed response.
#[derive(Clone, Debug)]
pub struct CompleteChoice {
    /// Its text.
    pub text: String,
    /// Its reasoning.
    pub reasoning: String,
    /// The arguments of its tool call.
    pub arguments: String,
    /// Its tokens of all kinds.
    pub tokens: Vec<Token>,
    /// Its token counts.
    pub tally: Tally,
    /// Its finish reason.
    pub finish: Finish,
}

impl CompleteChoice {
    /// Returns a choice without tokens.
    pub fn new(params: &GenerationParams) -> Self {
        Self {
            text: String::new(),
            reasoning: String::new(),
            arguments: String::new(),
            tokens: Vec::new(),
            tally: Tally::default(),
            finish: params.finish,
        }
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: &Piece) {
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

/// `created` of each response, seconds since 1970: constant, because equal requests give equal responses.
pub const CREATED: u64 = 1_790_000_000;

/// Returns the generator of ids, independent of that of words.
pub fn ids(params: &GenerationParams) -> SplitMix64 {
    SplitMix64::new(params.seed).fork(u64::MAX - 1)
}

/// Returns `text` as a JSON string with quotes.
pub fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns `data: …` with the blank line.
pub fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// Returns the items as a JSON list.
pub fn list<T>(items: impl IntoIterator<Item = T>, write: impl Fn(T) -> String) -> String {
    let items: Vec<String> = items.into_iter().map(write).collect();
    format!("[{}]", items.join(","))
}

/// Returns the ids of `tokens` as a JSON list.
pub fn token_ids(tokens: &[Token]) -> String {
    list(tokens, |token| token.id.to_string())
}

/// Returns token ids of a prompt: arbitrary ones, in the counted number.
fn prompt_ids(tokens: u64) -> String {
    list(0..tokens, |position| (100 + position % 400).to_string())
}

/// Returns a log probability that depends on the token alone.
pub fn logprob(token: &Token) -> f64 {
    -f64::from(token.id % 500) / 64.0
}

/// Returns the bytes of a token as a JSON list.
pub fn token_bytes(token: &Token) -> String {
    list(token.text.bytes(), |byte| byte.to_string())
}
