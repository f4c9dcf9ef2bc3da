//! The bodies of the proxy's own errors, in the shape that the client of a dialect already reads.

use std::fmt::Write as _;

use scan::ErrorShape;

/// Returns the JSON of an error in this shape. `kind`: the error's type, by OpenAI's names.
pub(crate) fn json(shape: ErrorShape, status: u16, (kind, code): (&str, &str), message: &str) -> String {
    let mut text = String::new();
    quote(message, &mut text);
    match shape {
        ErrorShape::Openai => {
            format!(r#"{{"error":{{"message":{text},"type":"{kind}","param":null,"code":"{code}"}}}}"#)
        }
        ErrorShape::Anthropic => {
            // Its clients know only Anthropic's own type for a status.
            let word = match status {
                429 => "rate_limit_error",
                400..=499 => "invalid_request_error",
                _ => "api_error",
            };
            format!(r#"{{"type":"error","error":{{"type":"{word}","message":{text}}}}}"#)
        }
        ErrorShape::Text => format!(r#"{{"error":{text}}}"#),
        ErrorShape::Tgi => format!(r#"{{"error":{text},"error_type":"{code}"}}"#),
        ErrorShape::LlamaCpp => {
            format!(r#"{{"error":{{"code":{status},"message":{text},"type":"{code}"}}}}"#)
        }
        ErrorShape::Gemini => {
            let word = match status {
                429 => "RESOURCE_EXHAUSTED",
                400..=499 => "INVALID_ARGUMENT",
                _ => "UNAVAILABLE",
            };
            format!(r#"{{"error":{{"code":{status},"message":{text},"status":"{word}"}}}}"#)
        }
        ErrorShape::Cohere => format!(r#"{{"message":{text}}}"#),
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
