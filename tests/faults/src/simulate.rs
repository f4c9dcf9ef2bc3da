//! The request field `simulate`, an object that shapes the response.
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
//! `max_tokens` cuts a response of `tokens` short, with the finish reason `length`.

use serde_json::Value;
use simulator::params::{Endpoint, Finish, GenerationParams};
use simulator::text::Lexicon;

/// Maximum tokens per step: far above what speculation reaches, small enough for one event.
const MAX_BURST: u64 = 64;

/// Applies the field, and the names of llama.cpp's own endpoint.
pub(crate) fn apply(params: &mut GenerationParams) -> Result<(), String> {
    if params.endpoint == Endpoint::Native {
        // A negative number is no limit.
        if let Some(limit) = params.body["n_predict"].as_u64() {
            (params.tokens, params.finish) = (limit.max(1), Finish::Length);
        }
        params.token_ids = params.body["return_tokens"] == true;
    }
    let simulate = &params.body["simulate"];
    if let Some(tokens) = whole(simulate, "tokens")?
        && (params.finish == Finish::Stop || tokens < params.tokens)
    {
        (params.tokens, params.finish) = (tokens.max(1), Finish::Stop);
    }
    // The end-of-sequence token is neither reasoning nor payload.
    let shown = params.tokens - u64::from(params.finish == Finish::Stop);
    params.reasoning = whole(simulate, "reasoning")?.unwrap_or(0).min(shown);
    let tool = match params.endpoint {
        Endpoint::Chat => whole(simulate, "tool")?.unwrap_or(0),
        Endpoint::Completion | Endpoint::Native => 0,
    };
    params.tool = tool.min(shown - params.reasoning);
    if params.tool > 0 && params.finish == Finish::Stop {
        params.finish = Finish::ToolCalls;
    }
    params.cached = whole(simulate, "cached")?.unwrap_or(0).min(params.prompts[0]);
    params.burst = whole(simulate, "burst")?.map(|burst| burst.clamp(1, MAX_BURST) as u32);
    params.lexicon = lexicon(&simulate["text"])?;
    Ok(())
}

fn lexicon(name: &Value) -> Result<Lexicon, String> {
    match (name, name.as_str()) {
        (Value::Null, _) => Ok(Lexicon::default()),
        (_, Some("plain")) => Ok(Lexicon::Plain),
        (_, Some("mixed")) => Ok(Lexicon::Mixed),
        (_, Some("split")) => Ok(Lexicon::Split),
        _ => Err("simulate.text is plain, mixed or split".to_owned()),
    }
}

fn whole(simulate: &Value, key: &str) -> Result<Option<u64>, String> {
    match (&simulate[key], simulate[key].as_u64()) {
        (Value::Null, _) => Ok(None),
        (_, Some(whole)) => Ok(Some(whole)),
        _ => Err(format!("simulate.{key} must be a whole number")),
    }
}

#[cfg(test)]
mod tests {
    use simulator::params::{Defaults, Endpoint, Finish, GenerationParams};

    use super::apply;

    fn applied(endpoint: Endpoint, body: &str) -> Result<GenerationParams, String> {
        let defaults = Defaults { seed: 1, output_tokens: 32, models: &[] };
        let mut params = GenerationParams::parse(endpoint, body.as_bytes(), &defaults).unwrap();
        apply(&mut params).map(|()| params)
    }

    #[test]
    fn limit_and_natural_length_determine_the_finish_reason() {
        let ends = |body: &str| {
            let params = applied(Endpoint::Completion, body).unwrap();
            (params.tokens, params.finish)
        };
        assert_eq!(ends(r#"{"prompt":"a"}"#), (32, Finish::Stop));
        assert_eq!(ends(r#"{"prompt":"a","simulate":{"tokens":40}}"#), (40, Finish::Stop));
        assert_eq!(ends(r#"{"prompt":"a","max_tokens":9}"#), (9, Finish::Length));
        assert_eq!(ends(r#"{"prompt":"a","max_tokens":9,"simulate":{"tokens":4}}"#), (4, Finish::Stop));
        assert_eq!(ends(r#"{"prompt":"a","max_tokens":9,"simulate":{"tokens":90}}"#), (9, Finish::Length));
    }

    #[test]
    fn negative_limit_of_llamacpp_is_none() {
        let tokens = |body: &str| applied(Endpoint::Native, body).unwrap().tokens;
        assert_eq!(tokens(r#"{"prompt":"a","n_predict":-1}"#), 32);
        assert_eq!(tokens(r#"{"prompt":"a","n_predict":7}"#), 7);
    }

    #[test]
    fn lengths_leave_a_place_for_the_end_token() {
        let body = r#"{"messages":[],"simulate":{"tokens":6,"reasoning":4,"tool":4}}"#;
        let params = applied(Endpoint::Chat, body).unwrap();
        assert_eq!((params.reasoning, params.tool, params.finish), (4, 1, Finish::ToolCalls));
        let body = r#"{"messages":[],"simulate":{"tokens":1,"reasoning":5,"tool":5}}"#;
        let params = applied(Endpoint::Chat, body).unwrap();
        assert_eq!((params.reasoning, params.tool, params.finish), (0, 0, Finish::Stop));
    }

    #[test]
    fn invalid_values_are_errors() {
        for field in [r#"{"text":"loud"}"#, r#"{"text":1}"#, r#"{"tokens":"many"}"#, r#"{"cached":-1}"#] {
            let body = format!(r#"{{"messages":[],"simulate":{field}}}"#);
            assert!(applied(Endpoint::Chat, &body).is_err(), "{field}");
        }
    }
}
