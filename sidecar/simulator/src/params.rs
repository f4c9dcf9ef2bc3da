//! The parameters that the simulated server reads from a request body.
//!
//! Fields of real servers keep their names. The field `simulate`, an object that only this
//! server knows, shapes the response:
//!
//! | Key | Meaning |
//! |---|---|
//! | `tokens` | output tokens of each choice, its end-of-sequence token included |
//! | `reasoning` | how many of them, from the start, are reasoning |
//! | `tool` | how many of them, at the end, are the arguments of a tool call (chat only) |
//! | `cached` | prompt tokens in the cache |
//! | `burst` | maximum tokens per decode step, in place of the speed model's |
//! | `text` | `plain`, `mixed` or `split`: see [`Lexicon`] |
//!
//! A response has `tokens` or, without it, the server's default; `max_tokens` cuts it short, with the
//! finish reason `length`. With `max_tokens` alone the response is exactly that long.
//!
//! The law: the content of a response depends on the server's seed and on the request's model, prompt,
//! `seed` and lengths, but not on `stream`, `stream_options` or anything that a proxy may add.

use serde_json::Value;

use crate::random;
use crate::text::{self, Lexicon};

/// The request header that carries [`Faults`](crate::faults::Faults).
pub const SIMULATE_HEADER: &str = "x-simulate";

/// The request field that shapes the response.
pub const SIMULATE_FIELD: &str = "simulate";

/// The requested endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/completions`
    Completion,
    /// llama.cpp's `/completion`
    Native,
}

/// The finish reason of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    Length,
    ToolCalls,
}

impl Finish {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
        }
    }
}

/// A parsed request.
#[derive(Clone, Debug)]
pub(crate) struct GenerationParams {
    pub(crate) endpoint: Endpoint,
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// `stream_options` is present, with any content.
    pub(crate) stream_options: bool,
    pub(crate) usage: bool,
    pub(crate) continuous_usage: bool,
    /// Omits usage even if this server always sends it. Only a fault sets this.
    pub(crate) usage_withheld: bool,
    pub(crate) token_ids: bool,
    pub(crate) logprobs: bool,
    /// Tokens of each prompt; at least one prompt.
    pub(crate) prompts: Vec<u64>,
    /// The first prompt's text, which llama.cpp's own endpoint repeats in its response.
    pub(crate) prompt_text: String,
    /// Choices per prompt.
    pub(crate) n: u64,
    /// Output tokens of each choice.
    pub(crate) tokens: u64,
    pub(crate) finish: Finish,
    pub(crate) reasoning: u64,
    pub(crate) tool: u64,
    pub(crate) cached: u64,
    pub(crate) burst: Option<u32>,
    pub(crate) lexicon: Lexicon,
    /// Determines the whole content of the response.
    pub(crate) seed: u64,
}

/// The server's defaults for absent fields.
pub(crate) struct Defaults<'a> {
    pub(crate) seed: u64,
    pub(crate) output_tokens: u64,
    /// The served models; empty: any name is accepted.
    pub(crate) models: &'a [String],
}

/// An error response to a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl GenerationParams {
    pub(crate) fn parse(endpoint: Endpoint, body: &[u8], defaults: &Defaults<'_>) -> Result<Self, Rejection> {
        let body: Value =
            serde_json::from_slice(body).map_err(|error| bad_request(format!("JSON: {error}")))?;
        if !body.is_object() {
            return Err(bad_request("the body must be an object"));
        }
        let simulate = &body[SIMULATE_FIELD];
        let model = model(&body, defaults.models)?;
        let (prompts, prompt_text) = prompts(endpoint, &body)?;

        let limit = match endpoint {
            Endpoint::Native => signed(&body, "n_predict")?,
            _ => match whole(&body, "max_completion_tokens")? {
                Some(limit) => Some(limit),
                None => whole(&body, "max_tokens")?,
            },
        };
        let natural = whole(simulate, "tokens")?;
        let (tokens, mut finish) = match (natural, limit) {
            (Some(natural), Some(limit)) if natural < limit => (natural, Finish::Stop),
            (_, Some(limit)) => (limit, Finish::Length),
            (natural, None) => (natural.unwrap_or(defaults.output_tokens), Finish::Stop),
        };
        let tokens = tokens.max(1);
        // The end-of-sequence token is neither reasoning nor payload.
        let shown = tokens - u64::from(finish == Finish::Stop);
        let reasoning = whole(simulate, "reasoning")?.unwrap_or(0).min(shown);
        let tool = match endpoint {
            Endpoint::Chat => whole(simulate, "tool")?.unwrap_or(0),
            _ => 0,
        };
        let tool = tool.min(shown - reasoning);
        if tool > 0 && finish == Finish::Stop {
            finish = Finish::ToolCalls;
        }

        let n = whole(&body, "n")?.unwrap_or(1);
        let choices = n.saturating_mul(prompts.len() as u64);
        if n == 0 || choices > MAX_CHOICES {
            return Err(bad_request(format!("n times prompts must be 1 to {MAX_CHOICES}")));
        }
        if choices.saturating_mul(tokens) > MAX_TOKENS {
            return Err(bad_request(format!("more than {MAX_TOKENS} output tokens")));
        }

        let stream = flag(&body, "stream")?;
        let options = &body["stream_options"];
        let prompt_tokens = prompts[0];
        Ok(Self {
            endpoint,
            stream,
            stream_options: options.is_object(),
            usage: flag(options, "include_usage")?,
            continuous_usage: flag(options, "continuous_usage_stats")?,
            usage_withheld: false,
            token_ids: match endpoint {
                Endpoint::Native => flag(&body, "return_tokens")?,
                _ => flag(&body, "return_token_ids")?,
            },
            // A flag for chat, a count for completions: both are falsy as written here.
            logprobs: !matches!(&body["logprobs"], Value::Null | Value::Bool(false)),
            n,
            tokens,
            finish,
            reasoning,
            tool,
            cached: whole(simulate, "cached")?.unwrap_or(0).min(prompt_tokens),
            burst: whole(simulate, "burst")?.map(|burst| burst.clamp(1, MAX_BURST) as u32),
            lexicon: lexicon(simulate)?,
            seed: seed(&body, defaults.seed, &model, tokens),
            model,
            prompts,
            prompt_text,
        })
    }

    /// Returns the number of choices over all prompts.
    pub(crate) fn choices(&self) -> u64 {
        self.n * self.prompts.len() as u64
    }

    /// Returns the prompt tokens over all prompts.
    pub(crate) fn prompt_tokens(&self) -> u64 {
        self.prompts.iter().sum()
    }
}

/// Maximum choices. vLLM's own limit is 16,384; the tests need no more than this.
const MAX_CHOICES: u64 = 128;

/// Maximum output tokens of a response: an unstreamed one then stays below 64 MiB.
const MAX_TOKENS: u64 = 4 << 20;

/// Maximum tokens per step: far above what speculation reaches, small enough for one event.
const MAX_BURST: u64 = 64;

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

/// Returns the tokens of each prompt, and the first one's text.
fn prompts(endpoint: Endpoint, body: &Value) -> Result<(Vec<u64>, String), Rejection> {
    if endpoint == Endpoint::Chat {
        let Value::Array(messages) = &body["messages"] else {
            return Err(bad_request("Expected 'messages' to be an array"));
        };
        let tokens =
            messages.iter().map(|message| TEMPLATE_TOKENS + content_tokens(&message["content"])).sum();
        return Ok((vec![tokens], String::new()));
    }
    match &body["prompt"] {
        Value::String(prompt) => Ok((vec![text::count(prompt).max(1)], prompt.clone())),
        Value::Array(parts) if parts.iter().all(Value::is_u64) && !parts.is_empty() => {
            Ok((vec![parts.len() as u64], String::new()))
        }
        Value::Array(parts) if parts.iter().all(Value::is_string) && !parts.is_empty() => {
            let texts = parts.iter().filter_map(Value::as_str);
            let first = texts.clone().next().unwrap_or_default().to_owned();
            Ok((texts.map(|prompt| text::count(prompt).max(1)).collect(), first))
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

fn lexicon(simulate: &Value) -> Result<Lexicon, Rejection> {
    match &simulate["text"] {
        Value::Null => Ok(Lexicon::default()),
        Value::String(name) => {
            Lexicon::named(name).ok_or_else(|| bad_request("simulate.text is plain, mixed or split"))
        }
        _ => Err(bad_request("simulate.text must be a string")),
    }
}

fn seed(body: &Value, server: u64, model: &str, tokens: u64) -> u64 {
    let mut seed = random::fold(server, model.as_bytes());
    for field in ["messages", "prompt", "seed", "n", SIMULATE_FIELD] {
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

/// Reads a whole number whose negative values mean "no limit".
fn signed(object: &Value, field: &str) -> Result<Option<u64>, Rejection> {
    match object[field].as_i64() {
        Some(negative) if negative < 0 => Ok(None),
        _ => whole(object, field),
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
    fn limit_and_natural_length_determine_the_finish_reason() {
        let ends = |body: &str| {
            let params = parse(Endpoint::Completion, body).unwrap();
            (params.tokens, params.finish)
        };
        assert_eq!(ends(r#"{"prompt":"a"}"#), (32, Finish::Stop));
        assert_eq!(ends(r#"{"prompt":"a","max_tokens":9}"#), (9, Finish::Length));
        assert_eq!(ends(r#"{"prompt":"a","max_tokens":9,"simulate":{"tokens":4}}"#), (4, Finish::Stop));
        assert_eq!(ends(r#"{"prompt":"a","max_tokens":9,"simulate":{"tokens":90}}"#), (9, Finish::Length));
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
            r#"{"messages":[],"simulate":{"text":"loud"}}"#,
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
