//! The parameters that the simulated server reads from a request body.
//!
//! With `max_tokens` a response is exactly that long, with the finish reason `length`; without it, it has the
//! server's default length.
//!
//! The law: the content of a response depends on the server's seed and on the request's model, prompt,
//! `seed` and length, but not on `stream`, `stream_options` or anything that a proxy may add.

use serde_json::Value;

use crate::random;
use crate::text::{self, Lexicon};

/// The requested endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endpoint {
    /// `/v1/chat/completions`
    #[default]
    Chat,
    /// `/v1/completions`
    Completion,
    /// llama.cpp's `/completion`
    Native,
}

/// The finish reason of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The end-of-sequence token.
    Stop,
    /// The limit of the request.
    Length,
    /// A call of a tool.
    ToolCalls,
}

impl Finish {
    /// Returns its name in a response.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
        }
    }
}

/// A parsed request.
#[derive(Clone, Debug)]
pub struct GenerationParams {
    /// The requested endpoint.
    pub endpoint: Endpoint,
    /// The requested model, or the server's first.
    pub model: String,
    /// The response is a stream.
    pub stream: bool,
    /// `stream_options` is present, with any content.
    pub stream_options: bool,
    /// Usage is requested.
    pub usage: bool,
    /// Usage in each event is requested.
    pub continuous_usage: bool,
    /// Token ids are requested.
    pub token_ids: bool,
    /// Log probabilities are requested.
    pub logprobs: bool,
    /// Tokens of each prompt; at least one prompt.
    pub prompts: Vec<u64>,
    /// Choices per prompt.
    pub n: u64,
    /// Output tokens of each choice, its end-of-sequence token included.
    pub tokens: u64,
    /// The finish reason of each choice.
    pub finish: Finish,
    /// Output tokens, from the start, that are reasoning.
    pub reasoning: u64,
    /// Output tokens, at the end, that are the arguments of a tool call.
    pub tool: u64,
    /// Prompt tokens in the cache.
    pub cached: u64,
    /// Maximum tokens per decode step, in place of the speed model's.
    pub burst: Option<u32>,
    /// The vocabulary of the response.
    pub lexicon: Lexicon,
    /// Determines the whole content of the response.
    pub seed: u64,
    /// The request's body.
    pub body: Value,
}

/// The server's defaults for absent fields.
pub struct Defaults<'a> {
    /// Determines the content of responses, together with the request.
    pub seed: u64,
    /// Output tokens of a response.
    pub output_tokens: u64,
    /// The served models; empty: any name is accepted.
    pub models: &'a [String],
}

/// An error response to a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Its status.
    pub status: u16,
    /// Its text.
    pub message: String,
}

impl GenerationParams {
    /// Parses the body of a request to this endpoint.
    pub fn parse(endpoint: Endpoint, body: &[u8], defaults: &Defaults<'_>) -> Result<Self, Rejection> {
        let body: Value =
            serde_json::from_slice(body).map_err(|error| bad_request(format!("JSON: {error}")))?;
        if !body.is_object() {
            return Err(bad_request("the body must be an object"));
        }
        let model = model(&body, defaults.models)?;
        let prompts = prompts(endpoint, &body)?;
        let limit = match whole(&body, "max_completion_tokens")? {
            Some(limit) => Some(limit),
            None => whole(&body, "max_tokens")?,
        };
        let (tokens, finish) = match limit {
            Some(limit) => (limit.max(1), Finish::Length),
            None => (defaults.output_tokens.max(1), Finish::Stop),
        };

        let n = whole(&body, "n")?.unwrap_or(1);
        let choices = n.saturating_mul(prompts.len() as u64);
        if n == 0 || choices > MAX_CHOICES {
            return Err(bad_request(format!("n times prompts must be 1 to {MAX_CHOICES}")));
        }
        if choices.saturating_mul(tokens) > MAX_TOKENS {
            return Err(bad_request(format!("more than {MAX_TOKENS} output tokens")));
        }

        let options = &body["stream_options"];
        Ok(Self {
            endpoint,
            stream: flag(&body, "stream")?,
            stream_options: options.is_object(),
            usage: flag(options, "include_usage")?,
            continuous_usage: flag(options, "continuous_usage_stats")?,
            token_ids: flag(&body, "return_token_ids")?,
            // A flag for chat, a count for completions: both are falsy as written here.
            logprobs: !matches!(&body["logprobs"], Value::Null | Value::Bool(false)),
            n,
            tokens,
            finish,
            reasoning: 0,
            tool: 0,
            cached: 0,
            burst: None,
            lexicon: Lexicon::default(),
            seed: seed(&body, defaults.seed, &model, tokens),
            model,
            prompts,
            body,
        })
    }

    /// Returns the number of choices over all prompts.
    pub fn choices(&self) -> u64 {
        self.n * self.prompts.len() as u64
    }

    /// Returns the prompt tokens over all prompts.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompts.iter().sum()
    }
}

/// Maximum choices. vLLM's own limit is 16,384; the tests need no more than this.
const MAX_CHOICES: u64 = 128;

/// Maximum output tokens of a response: an unstreamed one then stays below 64 MiB.
const MAX_TOKENS: u64 = 4 << 20;

fn bad_request(message: impl Into<String>) -> Rejection {
    Rejection { status: 400, message: message.into() }
}

fn model(body: &Value, served: &[String]) -> Result<String, Rejection> {
    let requested = match &body["model"] {
        Value::String(name) => name,
        Value::Null => return Ok(served.first().map_or("simulated", String::as_str).to_owned()),
        _ => return Err(bad_request("model must be a string")),
    };
    if served.is_empty() || served.contains(requested) {
        return Ok(requested.clone());
    }
    Err(Rejection { status: 404, message: format!("The model `{requested}` does not exist.") })
}

/// Returns the tokens of each prompt.
fn prompts(endpoint: Endpoint, body: &Value) -> Result<Vec<u64>, Rejection> {
    if endpoint == Endpoint::Chat {
        let Value::Array(messages) = &body["messages"] else {
            return Err(bad_request("Expected 'messages' to be an array"));
        };
        let tokens = messages.iter().map(|message| TEMPLATE_TOKENS + content_tokens(&message["content"]));
        return Ok(vec![tokens.sum()]);
    }
    match &body["prompt"] {
        Value::String(prompt) => Ok(vec![text::count(prompt).max(1)]),
        Value::Array(parts) if parts.iter().all(Value::is_u64) && !parts.is_empty() => {
            Ok(vec![parts.len() as u64])
        }
        Value::Array(parts) if parts.iter().all(Value::is_string) && !parts.is_empty() => {
            let texts = parts.iter().filter_map(Value::as_str);
            Ok(texts.map(|prompt| text::count(prompt).max(1)).collect())
        }
        _ => Err(bad_request("prompt must be a string, token ids or several strings")),
    }
}

/// Tokens that a chat template adds to each message: its role and its delimiters.
const TEMPLATE_TOKENS: u64 = 4;

fn content_tokens(content: &Value) -> u64 {
    match content {
        Value::String(words) => text::count(words),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).map(text::count).sum(),
        _ => 0,
    }
}

fn seed(body: &Value, server: u64, model: &str, tokens: u64) -> u64 {
    let mut seed = random::fold(server, model.as_bytes());
    for field in ["messages", "prompt", "seed", "n"] {
        // Objects print with sorted keys, so equal meanings give equal seeds.
        seed = random::fold(seed, body[field].to_string().as_bytes());
    }
    random::fold(seed, &tokens.to_le_bytes())
}

fn flag(object: &Value, field: &str) -> Result<bool, Rejection> {
    match &object[field] {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(*flag),
        _ => Err(bad_request(format!("{field} must be a boolean"))),
    }
}

fn whole(object: &Value, field: &str) -> Result<Option<u64>, Rejection> {
    match &object[field] {
        Value::Null => Ok(None),
        value => match value.as_u64() {
            Some(whole) => Ok(Some(whole)),
            None => Err(bad_request(format!("{field} must be a whole number"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(endpoint: Endpoint, body: &str) -> Result<GenerationParams, Rejection> {
        let defaults = Defaults { seed: 1, output_tokens: 32, models: &[] };
        GenerationParams::parse(endpoint, body.as_bytes(), &defaults)
    }

    #[test]
    fn limit_determines_the_finish_reason() {
        let ends = |body: &str| {
            let params = parse(Endpoint::Completion, body).unwrap();
            (params.tokens, params.finish)
        };
        assert_eq!(ends(r#"{"prompt":"a"}"#), (32, Finish::Stop));
        assert_eq!(ends(r#"{"prompt":"a","max_tokens":9}"#), (9, Finish::Length));
        assert_eq!(ends(r#"{"prompt":"a","max_tokens":0}"#), (1, Finish::Length));
    }

    #[test]
    fn seed_depends_on_content_not_on_streaming() {
        let seed = |rest: &str| {
            let body = format!(r#"{{"messages":[{{"role":"user","content":"hi"}}]{rest}}}"#);
            parse(Endpoint::Chat, &body).unwrap().seed
        };
        let plain = seed("");
        assert_eq!(plain, seed(r#","stream":true"#));
        assert_eq!(plain, seed(r#","stream":true,"stream_options":{"include_usage":true}"#));
        assert_ne!(plain, seed(r#","seed":7"#));
        assert_ne!(plain, seed(r#","max_tokens":7"#));
    }

    #[test]
    fn prompts_may_be_text_ids_or_lists() {
        let prompts = |prompt: &str| {
            parse(Endpoint::Completion, &format!(r#"{{"prompt":{prompt}}}"#)).map(|params| params.prompts)
        };
        assert_eq!(prompts(r#""a b c""#), Ok(vec![3]));
        assert_eq!(prompts("[1,2,3,4]"), Ok(vec![4]));
        assert_eq!(prompts(r#"["a b","c"]"#), Ok(vec![2, 1]));
        assert!(prompts("[]").is_err());
        assert!(prompts("7").is_err());
    }

    #[test]
    fn invalid_bodies_are_rejected_with_400() {
        for body in [
            "",
            "[]",
            r#"{"messages":"#,
            r#"{"messages":null}"#,
            r#"{"messages":[],"max_tokens":"many"}"#,
            r#"{"messages":[],"n":0}"#,
            r#"{"messages":[],"n":1000}"#,
            r#"{"messages":[],"stream":1}"#,
        ] {
            assert_eq!(parse(Endpoint::Chat, body).unwrap_err().status, 400, "{body}");
        }
    }

    #[test]
    fn unlisted_model_is_404() {
        let models = ["a".to_owned()];
        let defaults = Defaults { seed: 1, output_tokens: 1, models: &models };
        let params = |body: &str| GenerationParams::parse(Endpoint::Completion, body.as_bytes(), &defaults);
        assert_eq!(params(r#"{"prompt":"x"}"#).unwrap().model, "a");
        assert_eq!(params(r#"{"prompt":"x","model":"b"}"#).unwrap_err().status, 404);
    }
}
