//! vLLM 0.32, the Python front end: explicit nulls, one event per chunk, `[DONE]` always.
//!
//! The finish reason is part of the last text event; the fingerprint is in the finish event, or in the
//! usage event if there is one. Usage covers all choices; running usage covers its own choice.

use super::{
    CREATED, CompleteChoice, Shape, event, ids, list, logprob, prompt_ids, quote, token_bytes, token_ids,
};
use crate::counters::Counts;
use crate::params::{Endpoint, Finish, GenerationParams, Rejection};
use crate::script::{Kind, Piece, Tally};
use crate::speed::Model;
use crate::text::Token;

/// vLLM 0.32, its Python front end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vllm;

impl Shape for Vllm {
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        match path {
            "/v1/chat/completions" => Some(Endpoint::Chat),
            "/v1/completions" => Some(Endpoint::Completion),
            _ => None,
        }
    }

    fn wrong_method(&self) -> (u16, &'static str) {
        (405, "Method Not Allowed")
    }

    fn check(&self, params: &GenerationParams) -> Result<(), Rejection> {
        match params.stream_options && !params.stream {
            true => Err(Rejection {
                status: 400,
                message: "Stream options can only be defined when `stream=True`.".to_owned(),
            }),
            false => Ok(()),
        }
    }

    fn writer(&self, params: &GenerationParams, _: &Model) -> Box<dyn super::ResponseWriter> {
        Box::new(ResponseWriter::new(params))
    }

    fn head(&self, streamed: bool) -> &'static [(&'static str, &'static str)] {
        match streamed {
            true => &[("server", "uvicorn"), ("content-type", "text/event-stream; charset=utf-8")],
            false => &[("server", "uvicorn"), ("content-type", "application/json")],
        }
    }

    fn error_body(&self, status: u16, message: &str) -> String {
        error_body(status, message)
    }

    fn models(&self, names: &[&str]) -> String {
        models(names)
    }

    fn health(&self) -> &'static str {
        ""
    }

    fn metrics(&self, counts: &Counts, name: &str) -> String {
        metrics(counts, name)
    }
}

struct ResponseWriter {
    /// `"id":…,"object":…,"created":…,"model":…`
    envelope: String,
    tool_id: String,
}

impl ResponseWriter {
    fn new(params: &GenerationParams) -> Self {
        let mut ids = ids(params);
        let id = ids.draw();
        let (prefix, object) = match (params.endpoint, params.stream) {
            (Endpoint::Chat, true) => ("chatcmpl", "chat.completion.chunk"),
            (Endpoint::Chat, false) => ("chatcmpl", "chat.completion"),
            _ => ("cmpl", "text_completion"),
        };
        Self {
            envelope: format!(
                r#""id":"{prefix}-{id:016x}","object":"{object}","created":{CREATED},"model":{}"#,
                quote(&params.model)
            ),
            tool_id: format!("chatcmpl-tool-{:016x}", ids.draw()),
        }
    }

    fn chat_event(&self, params: &GenerationParams, piece: &Piece, out: &mut Vec<String>) {
        let envelope = &self.envelope;
        let index = piece.choice;
        let running = running_usage(params, piece.tally);
        if piece.kind == Kind::Tool && piece.begins {
            let before = Tally { output: piece.tally.output - piece.tokens.len() as u64, ..piece.tally };
            let tool_id = &self.tool_id;
            out.push(event(&format!(
                r#"{{{envelope},"choices":[{{"index":{index},"delta":{{"content":null,"tool_calls":[{{"id":"{tool_id}-{index}","type":"function","index":0,"function":{{"name":"get_weather"}}}}]}},"logprobs":null,"finish_reason":null,"token_ids":null}}]{}}}"#,
                running_usage(params, before),
            )));
        }
        let delta = match piece.kind {
            _ if piece.text.is_empty() => "{}".to_owned(),
            Kind::Text | Kind::End => format!(r#"{{"content":{}}}"#, quote(&piece.text)),
            Kind::Reasoning => format!(r#"{{"reasoning":{}}}"#, quote(&piece.text)),
            Kind::Tool => format!(
                r#"{{"content":null,"tool_calls":[{{"index":0,"function":{{"arguments":{}}}}}]}}"#,
                quote(&piece.text)
            ),
        };
        let logprobs = chat_logprobs(params, &piece.tokens);
        let (finish, fingerprint) = finish(params, piece.finish);
        let ids = ids_of(params, &piece.tokens);
        out.push(event(&format!(
            r#"{{{envelope},"choices":[{{"index":{index},"delta":{delta},"logprobs":{logprobs},"finish_reason":{finish},"token_ids":{ids}}}]{running}{fingerprint}}}"#,
        )));
    }

    fn completion_event(&self, params: &GenerationParams, piece: &Piece, out: &mut Vec<String>) {
        let envelope = &self.envelope;
        let index = piece.choice;
        let text = quote(&piece.text);
        let logprobs = completion_logprobs(params, &piece.tokens, piece.offset);
        let (finish, fingerprint) = match piece.finish {
            Some(reason) => (quote(reason.as_str()), fingerprint(params)),
            None => ("null".to_owned(), ""),
        };
        let prompt_ids = match params.token_ids && piece.opens {
            true => prompt_ids(piece.tally.prompt),
            false => "null".to_owned(),
        };
        let ids = ids_of(params, &piece.tokens);
        let running = running_usage(params, piece.tally);
        out.push(event(&format!(
            r#"{{{envelope},"choices":[{{"index":{index},"text":{text},"logprobs":{logprobs},"finish_reason":{finish},"stop_reason":null,"prompt_token_ids":{prompt_ids},"token_ids":{ids}}}]{running}{fingerprint}}}"#,
        )));
    }
}

impl super::ResponseWriter for ResponseWriter {
    fn opening(&self, params: &GenerationParams, out: &mut Vec<String>) {
        if params.endpoint != Endpoint::Chat {
            return;
        }
        let envelope = &self.envelope;
        let prompt = params.prompt_tokens();
        let ids = match params.token_ids {
            true => prompt_ids(prompt),
            false => "null".to_owned(),
        };
        let running = running_usage(params, Tally { prompt, ..Tally::default() });
        for index in 0..params.choices() {
            out.push(event(&format!(
                r#"{{{envelope},"choices":[{{"index":{index},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}]{running},"prompt_token_ids":{ids},"prompt_text":null}}"#,
            )));
        }
    }

    fn piece(&self, params: &GenerationParams, piece: &Piece, out: &mut Vec<String>) {
        // A token without text is sent only if its ids or log probabilities were requested.
        let silent = piece.text.is_empty() && piece.finish.is_none();
        if silent && !params.token_ids && !params.logprobs {
            return;
        }
        match params.endpoint {
            Endpoint::Chat => self.chat_event(params, piece, out),
            _ => self.completion_event(params, piece, out),
        }
    }

    fn end(&self, params: &GenerationParams, total: Tally, out: &mut Vec<String>) {
        if params.usage {
            let envelope = &self.envelope;
            let usage = usage(total);
            out.push(event(&format!(
                r#"{{{envelope},"choices":[],"usage":{usage},"system_fingerprint":"{FINGERPRINT}"}}"#
            )));
        }
        out.push(event("[DONE]"));
    }

    fn whole(&self, params: &GenerationParams, choices: &[CompleteChoice]) -> String {
        let envelope = &self.envelope;
        let mut total = Tally { prompt: params.prompt_tokens(), cached: params.cached, ..Tally::default() };
        for choice in choices {
            total.output += choice.tally.output;
            total.reasoning += choice.tally.reasoning;
        }
        let usage = whole_usage(total);
        let chat = params.endpoint == Endpoint::Chat;
        let body = list(choices.iter().enumerate(), |(index, choice)| match chat {
            true => chat_choice(params, index, choice, &self.tool_id),
            false => completion_choice(params, index, choice),
        });
        let tail = match chat {
            true => {
                let ids = match params.token_ids {
                    true => prompt_ids(params.prompt_tokens()),
                    false => "null".to_owned(),
                };
                format!(
                    r#""prompt_logprobs":null,"prompt_token_ids":{ids},"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null"#
                )
            }
            false => r#""kv_transfer_params":null,"ec_transfer_params":null,"metrics":null"#.to_owned(),
        };
        format!(
            r#"{{{envelope},"choices":{body},"service_tier":null,"system_fingerprint":"{FINGERPRINT}","usage":{usage},{tail}}}"#
        )
    }
}

fn error_body(status: u16, message: &str) -> String {
    let kind = match status {
        // The router's responses, before any handler.
        404 if message == "Not Found" => return r#"{"detail":"Not Found"}"#.to_owned(),
        405 => return r#"{"detail":"Method Not Allowed"}"#.to_owned(),
        400 => "BadRequestError",
        404 => "NotFoundError",
        429 => "RateLimitError",
        503 => "ServiceUnavailableError",
        _ => "InternalServerError",
    };
    format!(r#"{{"error":{{"message":{},"type":"{kind}","param":null,"code":{status}}}}}"#, quote(message))
}

fn models(names: &[&str]) -> String {
    let models = list(names, |name| {
        let name = quote(name);
        format!(
            r#"{{"id":{name},"object":"model","created":{CREATED},"owned_by":"vllm","root":{name},"parent":null,"max_model_len":131072}}"#
        )
    });
    format!(r#"{{"object":"list","data":{models}}}"#)
}

fn metrics(counts: &Counts, name: &str) -> String {
    let name = quote(name);
    let mut page = String::new();
    for (metric, kind, help, value) in [
        ("num_requests_running", "gauge", "Number of requests in model execution batches.", counts.running),
        ("num_requests_waiting", "gauge", "Number of requests waiting to be processed.", counts.waiting),
        (
            "prompt_tokens_total",
            "counter",
            "Number of prefill tokens processed.",
            // Unlike llama.cpp's, this counter includes cached tokens.
            counts.prompt_tokens + counts.cached_tokens,
        ),
        (
            "prompt_tokens_cached_total",
            "counter",
            "Number of cached prompt tokens (local + external).",
            counts.cached_tokens,
        ),
        (
            "generation_tokens_total",
            "counter",
            "Number of generation tokens processed.",
            counts.generated_tokens,
        ),
    ] {
        page.push_str(&format!(
            "# HELP vllm:{metric} {help}\n# TYPE vllm:{metric} {kind}\nvllm:{metric}{{engine=\"0\",model_name={name}}} {value}.0\n"
        ));
    }
    page
}

const FINGERPRINT: &str = "vllm-0.32.0-simulated";

fn chat_choice(params: &GenerationParams, index: usize, choice: &CompleteChoice, tool_id: &str) -> String {
    let content = quote(&choice.text);
    let tools = match choice.arguments.is_empty() {
        true => String::new(),
        false => format!(
            r#""tool_calls":[{{"id":"{tool_id}-{index}","type":"function","function":{{"name":"get_weather","arguments":{}}}}}],"#,
            quote(&choice.arguments)
        ),
    };
    let reasoning = match choice.reasoning.is_empty() {
        true => "null".to_owned(),
        false => quote(&choice.reasoning),
    };
    format!(
        r#"{{"index":{index},"message":{{"role":"assistant","content":{content},"error_body":null,"annotations":null,"audio":null,"function_call":null,{tools}"reasoning":{reasoning}}},"logprobs":{},"finish_reason":"{}","stop_reason":null,"token_ids":{},"routed_experts":null}}"#,
        chat_logprobs(params, &choice.tokens),
        choice.finish.as_str(),
        ids_of(params, &choice.tokens),
    )
}

fn completion_choice(params: &GenerationParams, index: usize, choice: &CompleteChoice) -> String {
    let prompt_ids = match params.token_ids {
        true => prompt_ids(choice.tally.prompt),
        false => "null".to_owned(),
    };
    // This endpoint has no separate reasoning: it is the first part of the text.
    let text = quote(&format!("{}{}", choice.reasoning, choice.text));
    format!(
        r#"{{"index":{index},"text":{text},"logprobs":{},"finish_reason":"{}","stop_reason":null,"token_ids":{},"prompt_logprobs":null,"prompt_token_ids":{prompt_ids},"routed_experts":null}}"#,
        completion_logprobs(params, &choice.tokens, 0),
        choice.finish.as_str(),
        ids_of(params, &choice.tokens),
    )
}

/// Returns the finish reason, and further fields of a chat's finish event.
fn finish(params: &GenerationParams, finish: Option<Finish>) -> (String, &'static str) {
    match finish {
        Some(reason) => (format!(r#""{}","stop_reason":null"#, reason.as_str()), fingerprint(params)),
        None => ("null".to_owned(), ""),
    }
}

/// Returns the fingerprint, which the usage event carries if there is one.
fn fingerprint(params: &GenerationParams) -> &'static str {
    match params.usage {
        true => "",
        false => r#","system_fingerprint":"vllm-0.32.0-simulated""#,
    }
}

/// Returns `,"usage":{…}` if running usage was requested.
fn running_usage(params: &GenerationParams, tally: Tally) -> String {
    if !(params.usage && params.continuous_usage) {
        return String::new();
    }
    let details = match (params.endpoint, params.reasoning) {
        (Endpoint::Chat, 0) => r#","completion_tokens_details":null"#.to_owned(),
        (Endpoint::Chat, _) => reasoning_details(tally),
        _ => String::new(),
    };
    format!(r#","usage":{{{}{details}}}"#, usage_counts(tally))
}

/// Returns the object of the usage event, without nulls.
fn usage(tally: Tally) -> String {
    let cached = match tally.cached {
        0 => String::new(),
        cached => format!(r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#),
    };
    let reasoning = match tally.reasoning {
        0 => String::new(),
        _ => reasoning_details(tally),
    };
    format!("{{{}{cached}{reasoning}}}", usage_counts(tally))
}

/// Returns the usage object of an unstreamed body, with nulls.
fn whole_usage(tally: Tally) -> String {
    let cached = match tally.cached {
        0 => "null".to_owned(),
        cached => format!(r#"{{"cached_tokens":{cached}}}"#),
    };
    let reasoning = match tally.reasoning {
        0 => r#","completion_tokens_details":null"#.to_owned(),
        _ => reasoning_details(tally),
    };
    format!(r#"{{{},"prompt_tokens_details":{cached}{reasoning}}}"#, usage_counts(tally))
}

fn usage_counts(tally: Tally) -> String {
    let Tally { prompt, output, .. } = tally;
    let total = prompt + output;
    format!(r#""prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{output}"#)
}

fn reasoning_details(tally: Tally) -> String {
    format!(r#","completion_tokens_details":{{"reasoning_tokens":{}}}"#, tally.reasoning)
}

fn ids_of(params: &GenerationParams, tokens: &[Token]) -> String {
    match params.token_ids {
        true => token_ids(tokens),
        false => "null".to_owned(),
    }
}

fn chat_logprobs(params: &GenerationParams, tokens: &[Token]) -> String {
    if !params.logprobs {
        return "null".to_owned();
    }
    let content = list(tokens, |token| {
        format!(
            r#"{{"token":{},"logprob":{:?},"bytes":{},"top_logprobs":[]}}"#,
            quote(token.text),
            logprob(token),
            token_bytes(token)
        )
    });
    format!(r#"{{"content":{content}}}"#)
}

fn completion_logprobs(params: &GenerationParams, tokens: &[Token], offset: u64) -> String {
    if !params.logprobs {
        return "null".to_owned();
    }
    let mut offsets = Vec::with_capacity(tokens.len());
    let mut at = offset;
    for token in tokens {
        offsets.push(at);
        at += token.text.chars().count() as u64;
    }
    format!(
        r#"{{"text_offset":{},"token_logprobs":{},"tokens":{},"top_logprobs":{}}}"#,
        list(offsets, |at| at.to_string()),
        list(tokens, |token| format!("{:?}", logprob(token))),
        list(tokens, |token| quote(token.text)),
        list(tokens, |token| format!("{{{}:{:?}}}", quote(token.text), logprob(token))),
    )
}
