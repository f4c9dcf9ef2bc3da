//! The error shapes of inference servers: an answer of our own to an exchange is in the shape that
//! its client already reads.

use std::fmt::Write as _;

use scan::Dialect;

/// The shape of a dialect's errors. The members are those of the servers' own answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ErrorShape {
    /// `{"error":{"message","type","param","code"}}`: OpenAI, and all who speak like it.
    #[default]
    Openai,
    /// `{"type":"error","error":{"type","message"}}`.
    Anthropic,
    /// `{"error":"text"}`: Ollama, Triton.
    Text,
    /// `{"error":"text","error_type"}`.
    Tgi,
    /// `{"error":{"code","message","type"}}`, the code a number: llama.cpp's own endpoints.
    LlamaCpp,
    /// `{"error":{"code","message","status"}}`.
    Gemini,
    /// `{"message"}`.
    Cohere,
}

/// The contents of an error.
pub(crate) struct ErrorBody<'a> {
    pub(crate) status: u16,
    /// The error's type, in OpenAI's words.
    pub(crate) kind: &'a str,
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
}

impl ErrorShape {
    /// The shape of a dialect; of one we do not know, OpenAI's.
    pub(crate) fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Anthropic => Self::Anthropic,
            Dialect::OllamaChat | Dialect::OllamaGenerate | Dialect::Triton => Self::Text,
            Dialect::Tgi => Self::Tgi,
            Dialect::LlamacppCompletion => Self::LlamaCpp,
            Dialect::Gemini => Self::Gemini,
            Dialect::Cohere => Self::Cohere,
            _ => Self::Openai,
        }
    }

    /// The body of an answer.
    pub(crate) fn body(self, contents: &ErrorBody<'_>) -> String {
        let ErrorBody { status, kind, code, message } = *contents;
        let mut text = String::new();
        quote(message, &mut text);
        match self {
            Self::Openai => {
                format!(r#"{{"error":{{"message":{text},"type":"{kind}","param":null,"code":"{code}"}}}}"#)
            }
            Self::Anthropic => {
                // Its clients know its own words for a status only.
                let word = match status {
                    429 => "rate_limit_error",
                    400..=499 => "invalid_request_error",
                    _ => "api_error",
                };
                format!(r#"{{"type":"error","error":{{"type":"{word}","message":{text}}}}}"#)
            }
            Self::Text => format!(r#"{{"error":{text}}}"#),
            Self::Tgi => format!(r#"{{"error":{text},"error_type":"{code}"}}"#),
            Self::LlamaCpp => {
                format!(r#"{{"error":{{"code":{status},"message":{text},"type":"{code}"}}}}"#)
            }
            Self::Gemini => {
                let word = match status {
                    429 => "RESOURCE_EXHAUSTED",
                    400..=499 => "INVALID_ARGUMENT",
                    _ => "UNAVAILABLE",
                };
                format!(r#"{{"error":{{"code":{status},"message":{text},"status":"{word}"}}}}"#)
            }
            Self::Cohere => format!(r#"{{"message":{text}}}"#),
        }
    }
}

/// Appends `text` as a JSON string.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if control.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
