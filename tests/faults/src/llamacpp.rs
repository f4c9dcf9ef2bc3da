//! llama.cpp's server: choices first, id late, `timings`, and usage per choice.
//!
//! The finish event is separate and shares its chunk with the usage event; the role event shares
//! its chunk with the first text. With n choices each has a usage event of its own, the first ones
//! in mid-stream; an unstreamed body's usage covers the first choice only. `/v1/completions` sends
//! usage without a request for it. An error inside a stream is its last event: no `[DONE]`.
//!
//! Of the real server's 50 `generation_settings` this has those whose names or values a careless
//! parser could confuse with others.

use serde_json::Value;
use simulator::params::{Endpoint, Finish, GenerationParams};
use simulator::script::{Kind, Piece, Tally};
use simulator::server::Counts;
use simulator::shape::{
    self, CREATED, CompleteChoice, event, ids, list, logprob, quote, token_bytes, token_ids,
};
use simulator::speed::Model;
use simulator::text::Token;

pub(crate) const HEAD: &[(&str, &str)] = &[
    ("server", "llama.cpp"),
    ("access-control-allow-origin", ""),
    ("content-type", "application/json; charset=utf-8"),
];

pub(crate) const STREAM_HEAD: &[(&str, &str)] = &[
    ("server", "llama.cpp"),
    ("access-control-allow-origin", ""),
    ("x-accel-buffering", "no"),
    ("content-type", "text/event-stream"),
];

pub(crate) struct ResponseWriter {
    id: String,
    tool_id: String,
    model: String,
    speed: Model,
}

impl ResponseWriter {
    pub(crate) fn new(params: &GenerationParams, speed: &Model) -> Self {
        let mut ids = ids(params);
        Self {
            id: format!("chatcmpl-{:016x}{:016x}", ids.draw(), ids.draw()),
            tool_id: format!("{:016x}{:016x}", ids.draw(), ids.draw()),
            model: quote(&params.model),
            speed: speed.clone(),
        }
    }

    fn chat_event(&self, choices: &str, tail: &str) -> String {
        let Self { id, model, .. } = self;
        event(&format!(
            r#"{{"choices":{choices},"created":{CREATED},"id":"{id}","model":{model},"system_fingerprint":"{FINGERPRINT}","object":"chat.completion.chunk"{tail}}}"#
        ))
    }

    fn chat_delta(&self, index: u64, delta: &str, logprobs: &str) -> String {
        self.chat_event(
            &format!(r#"[{{"finish_reason":null,"index":{index},"delta":{delta}{logprobs}}}]"#),
            "",
        )
    }

    fn chat_piece(&self, params: &GenerationParams, piece: &Piece, out: &mut Vec<String>) {
        let index = piece.choice;
        let mut chunk = String::new();
        if piece.opens {
            let role = r#"{"role":"assistant","content":null}"#;
            chunk.push_str(&self.chat_delta(index, role, ""));
        }
        if piece.kind == Kind::Tool && piece.begins {
            let tool_id = &self.tool_id;
            chunk.push_str(&self.chat_delta(
                index,
                &format!(
                    r#"{{"tool_calls":[{{"index":0,"id":"{tool_id}{index}","type":"function","function":{{"name":"get_weather","arguments":""}}}}]}}"#
                ),
                "",
            ));
        }
        if !piece.text.is_empty() {
            let text = quote(&piece.text);
            let delta = match piece.kind {
                Kind::Reasoning => format!(r#"{{"reasoning_content":{text}}}"#),
                Kind::Tool => {
                    format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":{text}}}}}]}}"#)
                }
                Kind::Text | Kind::End => format!(r#"{{"content":{text}}}"#),
            };
            let logprobs = match params.logprobs {
                true => format!(r#","logprobs":{}"#, logprobs(&piece.tokens)),
                false => String::new(),
            };
            chunk.push_str(&self.chat_delta(index, &delta, &logprobs));
        }
        if !chunk.is_empty() {
            out.push(chunk);
        }
        let Some(finish) = piece.finish else { return };
        let choices = format!(r#"[{{"finish_reason":"{}","index":{index},"delta":{{}}}}]"#, finish.as_str());
        let timings = format!(r#","timings":{}"#, self.timings(piece.tally));
        out.push(match params.usage {
            true => {
                let usage = usage(piece.tally);
                self.chat_event(&choices, "")
                    + &self.chat_event("[]", &format!(r#","usage":{usage}{timings}"#))
            }
            false => self.chat_event(&choices, &timings),
        });
    }

    fn completion_event(&self, choice: &str, usage: &str, tail: &str) -> String {
        let Self { id, model, .. } = self;
        event(&format!(
            r#"{{"choices":[{choice}],"created":{CREATED},"model":{model},"system_fingerprint":"{FINGERPRINT}","object":"text_completion"{usage},"id":"{id}"{tail}}}"#
        ))
    }

    fn completion_piece(&self, params: &GenerationParams, piece: &Piece, out: &mut Vec<String>) {
        let index = piece.choice;
        if !piece.text.is_empty() {
            let text = quote(&piece.text);
            let logprobs = match params.logprobs {
                true => logprobs(&piece.tokens),
                false => "null".to_owned(),
            };
            let choice =
                format!(r#"{{"text":{text},"index":{index},"logprobs":{logprobs},"finish_reason":null}}"#);
            out.push(self.completion_event(&choice, "", ""));
        }
        if let Some(finish) = piece.finish {
            let choice = format!(
                r#"{{"text":"","index":{index},"logprobs":null,"finish_reason":"{}"}}"#,
                finish.as_str()
            );
            out.push(self.completion_event(
                &choice,
                &unasked_usage(piece.tally),
                &format!(r#","timings":{}"#, self.timings(piece.tally)),
            ));
        }
    }

    fn native_piece(&self, params: &GenerationParams, piece: &Piece, out: &mut Vec<String>) {
        let index = piece.choice;
        if !piece.text.is_empty() {
            let content = quote(&piece.text);
            // Only the last token's id: earlier ones had no text when they came.
            let ids = token_ids(&piece.tokens[piece.tokens.len() - 1..]);
            let Tally { prompt, output, .. } = piece.tally;
            out.push(event(&format!(
                r#"{{"index":{index},"content":{content},"tokens":{ids},"stop":false,"id_slot":-1,"tokens_predicted":{output},"tokens_evaluated":{prompt}}}"#
            )));
        }
        if let Some(finish) = piece.finish {
            let last = self.native_last(params, index, "\"\"", "[]", true, piece.tally, finish);
            out.push(event(&last));
        }
    }

    /// Returns the final object of a native choice. `stop` comes after `id_slot`, streamed or not.
    #[expect(clippy::too_many_arguments, reason = "one per key of the object that varies")]
    fn native_last(
        &self,
        params: &GenerationParams,
        index: u64,
        content: &str,
        ids: &str,
        stream: bool,
        tally: Tally,
        finish: Finish,
    ) -> String {
        let Tally { prompt, output, .. } = tally;
        let model = &self.model;
        let limit = params.tokens;
        let requested = quote(first_prompt(&params.body));
        let stop_type = match finish {
            Finish::Length => "limit",
            _ => "eos",
        };
        let slot_fill = prompt + output - 1;
        let timings = self.timings(tally);
        format!(
            r#"{{"index":{index},"content":{content},"tokens":{ids},"id_slot":{index},"stop":true,"model":{model},"tokens_predicted":{output},"tokens_evaluated":{prompt},"generation_settings":{{"seed":7,"temperature":0.8,"stop":[],"max_tokens":{limit},"n_predict":{limit},"ignore_eos":false,"stream":{stream},"n_probs":0,"timings_per_token":false}},"prompt":{requested},"has_new_line":false,"truncated":false,"stop_type":"{stop_type}","stopping_word":"","tokens_cached":{slot_fill},"timings":{timings}}}"#
        )
    }

    /// Returns the server's timings: those of a single request, so that responses do not
    /// depend on load. The first token belongs to the prompt's time.
    fn timings(&self, tally: Tally) -> String {
        let cached = tally.cached;
        let read = tally.prompt - cached;
        let predicted = tally.output;
        let prompt_ms = self.speed.prefill(read).as_secs_f64() * 1e3;
        let steps = predicted.saturating_sub(1) as f64;
        let predicted_ms = steps * self.speed.step(1).as_secs_f64() * 1e3;
        format!(
            r#"{{"cache_n":{cached},"prompt_n":{read},"prompt_ms":{},"prompt_per_token_ms":{},"prompt_per_second":{},"predicted_n":{predicted},"predicted_ms":{},"predicted_per_token_ms":{},"predicted_per_second":{}}}"#,
            number(prompt_ms),
            number(prompt_ms / read as f64),
            number(read as f64 * 1e3 / prompt_ms),
            number(predicted_ms),
            number(predicted_ms / steps),
            number(steps * 1e3 / predicted_ms),
        )
    }
}

impl shape::ResponseWriter for ResponseWriter {
    fn opening(&self, _ask: &GenerationParams, _out: &mut Vec<String>) {
        // The role comes with each choice's first piece.
    }

    fn piece(&self, params: &GenerationParams, piece: &Piece, out: &mut Vec<String>) {
        match params.endpoint {
            Endpoint::Chat => self.chat_piece(params, piece, out),
            Endpoint::Completion => self.completion_piece(params, piece, out),
            Endpoint::Native => self.native_piece(params, piece, out),
        }
    }

    fn end(&self, params: &GenerationParams, _total: Tally, out: &mut Vec<String>) {
        // Usage went out with each choice's finish.
        if params.endpoint != Endpoint::Native {
            out.push(event("[DONE]"));
        }
    }

    fn whole(&self, params: &GenerationParams, choices: &[CompleteChoice]) -> String {
        let Self { id, model, .. } = self;
        let indexed = (0u64..).zip(choices);
        let (object, body) = match params.endpoint {
            Endpoint::Chat => (
                "chat.completion",
                list(indexed, |(index, choice)| chat_choice(params, index, choice, &self.tool_id)),
            ),
            Endpoint::Completion => {
                ("text_completion", list(indexed, |(index, choice)| completion_choice(params, index, choice)))
            }
            Endpoint::Native => {
                let body = list(indexed, |(index, choice)| {
                    let content = quote(&format!("{}{}", choice.reasoning, choice.text));
                    let ids = match params.token_ids {
                        true => token_ids(&choice.tokens),
                        false => "[]".to_owned(),
                    };
                    self.native_last(params, index, &content, &ids, false, choice.tally, choice.finish)
                });
                // One choice is an object, several are an array.
                return match choices {
                    [_] => body[1..body.len() - 1].to_owned(),
                    _ => body,
                };
            }
        };
        let first = choices.first().map(|choice| choice.tally).unwrap_or_default();
        let usage = unasked_usage(first);
        let timings = self.timings(first);
        format!(
            r#"{{"choices":{body},"created":{CREATED},"model":{model},"system_fingerprint":"{FINGERPRINT}","object":"{object}"{usage},"id":"{id}","timings":{timings}}}"#
        )
    }
}

pub(crate) fn error_body(status: u16, message: &str) -> String {
    let (kind, message) = match status {
        400 => ("invalid_request_error", message),
        401 => ("authentication_error", message),
        404 => ("not_found_error", "File Not Found"),
        501 => ("not_supported_error", message),
        503 => ("unavailable_error", message),
        _ => ("server_error", message),
    };
    let message = quote(message);
    match status {
        // From the HTTP layer, with another key order than the handlers.
        404 | 503 => {
            format!(r#"{{"error":{{"message":{message},"type":"{kind}","code":{status}}}}}"#)
        }
        _ => format!(r#"{{"error":{{"code":{status},"message":{message},"type":"{kind}"}}}}"#),
    }
}

pub(crate) fn models(names: &[&str]) -> String {
    let own = list(names, |name| {
        let name = quote(name);
        format!(
            r#"{{"name":{name},"model":{name},"modified_at":"","size":"","digest":"","type":"model","description":"","tags":[""],"capabilities":["completion"],"parameters":""}}"#
        )
    });
    let openai = list(names, |name| {
        let name = quote(name);
        format!(
            r#"{{"id":{name},"aliases":[{name}],"tags":[],"object":"model","created":{CREATED},"owned_by":"llamacpp","meta":{{"n_ctx":131072}}}}"#
        )
    });
    format!(r#"{{"models":{own},"object":"list","data":{openai}}}"#)
}

pub(crate) fn metrics(counts: &Counts) -> String {
    let mut page = String::new();
    for (metric, kind, help, value) in [
        (
            "prompt_tokens_total",
            "counter",
            "Number of prompt tokens processed, excluding cached tokens",
            // The real counters also advance only at the end of a request.
            counts.settled_prompt_tokens,
        ),
        (
            "tokens_predicted_total",
            "counter",
            "Number of generation tokens processed",
            counts.settled_generated_tokens,
        ),
        ("requests_processing", "gauge", "Number of requests processing", counts.running),
        ("requests_deferred", "gauge", "Number of requests deferred", counts.waiting),
    ] {
        page.push_str(&format!(
            "# HELP llamacpp:{metric} {help}\n# TYPE llamacpp:{metric} {kind}\nllamacpp:{metric} {value}\n"
        ));
    }
    page
}

const FINGERPRINT: &str = "b11669-simulated";

fn chat_choice(params: &GenerationParams, index: u64, choice: &CompleteChoice, tool_id: &str) -> String {
    let content = match choice.text.is_empty() && !choice.arguments.is_empty() {
        true => "null".to_owned(),
        false => quote(&choice.text),
    };
    let reasoning = match choice.reasoning.is_empty() {
        true => String::new(),
        false => format!(r#","reasoning_content":{}"#, quote(&choice.reasoning)),
    };
    let tools = match choice.arguments.is_empty() {
        true => String::new(),
        false => format!(
            r#","tool_calls":[{{"type":"function","function":{{"name":"get_weather","arguments":{}}},"id":"{tool_id}{index}"}}]"#,
            quote(&choice.arguments)
        ),
    };
    let logprobs = match params.logprobs {
        true => format!(r#","logprobs":{}"#, logprobs(&choice.tokens)),
        false => String::new(),
    };
    format!(
        r#"{{"finish_reason":"{}","index":{index},"message":{{"role":"assistant","content":{content}{reasoning}{tools}}}{logprobs}}}"#,
        choice.finish.as_str(),
    )
}

fn completion_choice(params: &GenerationParams, index: u64, choice: &CompleteChoice) -> String {
    let logprobs = match params.logprobs {
        true => logprobs(&choice.tokens),
        false => "null".to_owned(),
    };
    format!(
        r#"{{"text":{},"index":{index},"logprobs":{logprobs},"finish_reason":"{}"}}"#,
        quote(&format!("{}{}", choice.reasoning, choice.text)),
        choice.finish.as_str(),
    )
}

/// Returns `,"usage":{…}`, which this server sends with every request.
fn unasked_usage(tally: Tally) -> String {
    format!(r#","usage":{}"#, usage(tally))
}

/// Returns the text of the first prompt; empty for token ids.
fn first_prompt(body: &Value) -> &str {
    match &body["prompt"] {
        Value::Array(prompts) => prompts.first().and_then(Value::as_str).unwrap_or_default(),
        prompt => prompt.as_str().unwrap_or_default(),
    }
}

fn usage(tally: Tally) -> String {
    let Tally { prompt, cached, output, .. } = tally;
    let total = prompt + output;
    format!(
        r#"{{"completion_tokens":{output},"prompt_tokens":{prompt},"total_tokens":{total},"prompt_tokens_details":{{"cached_tokens":{cached}}}}}"#
    )
}

fn logprobs(tokens: &[Token]) -> String {
    let content = list(tokens, |token| {
        format!(
            r#"{{"id":{},"token":{},"bytes":{},"logprob":{:?},"top_logprobs":[]}}"#,
            token.id,
            quote(token.text),
            token_bytes(token),
            logprob(token)
        )
    });
    format!(r#"{{"content":{content}}}"#)
}

/// Returns a JSON number with microsecond precision; `null` if not finite, like the real server.
fn number(value: f64) -> String {
    match value.is_finite() {
        true => format!("{:?}", (value * 1e3).round() / 1e3),
        false => "null".to_owned(),
    }
}
