//! The ids in a request of Responses or of Gemini's interactions of what the server keeps: earlier answers, and a stored
//! prompt. The client chooses them, so a value that is longer than a name, or has characters other than visible ASCII, is
//! not an id.

use crate::json::Value;
use crate::name::Name;

/// The ids in a request; empty where absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// `previous_response_id`, or `previous_interaction_id`.
    pub previous_response: Name,
    /// `conversation`, or its `id`.
    pub conversation: Name,
    /// `prompt.id`.
    pub prompt: Name,
    /// `prompt.version`.
    pub prompt_version: Name,
}

/// Reads an id.
pub(super) fn id(value: Value<'_>) -> Name {
    match value {
        Value::Word(word) if word.iter().all(u8::is_ascii_graphic) => Name::whole(word).unwrap_or_default(),
        _ => Name::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::Links;
    use crate::RequestScanner;

    fn read(body: &str) -> Links {
        let mut scanner = RequestScanner::new();
        body.as_bytes().chunks(3).for_each(|bytes| scanner.feed(bytes));
        scanner.end();
        scanner.links().copied().unwrap_or_default()
    }

    #[test]
    fn last_prompt_counts_and_its_variables_are_not_read() {
        for (body, prompt, version) in [
            (
                r#"{"prompt":{"id":"pmpt_1","version":"2","variables":{"id":"secret","version":"x"}}}"#,
                "pmpt_1",
                "2",
            ),
            (r#"{"prompt":{"version":"2","id":"pmpt_1"}}"#, "pmpt_1", "2"),
            (r#"{"prompt":{"id":"pmpt_1","version":null}}"#, "pmpt_1", ""),
            (r#"{"prompt":{"id":"pmpt_1","version":"2"},"prompt":{"id":"pmpt_2"}}"#, "pmpt_2", ""),
            (r#"{"prompt":{"id":"pmpt_1","version":"2"},"prompt":"a"}"#, "", ""),
            (r#"{"prompt":{"id":"say hello","version":["2"]}}"#, "", ""),
            (r#"{"prompt":[{"id":"pmpt_1"}],"x":{"prompt":{"id":"pmpt_1"}}}"#, "", ""),
            (r#"{"prompt":"pmpt_1"}"#, "", ""),
        ] {
            let links = read(body);
            assert_eq!((links.prompt.as_str(), links.prompt_version.as_str()), (prompt, version), "{body}");
        }
    }

    #[test]
    fn ids_are_bounded_names() {
        let long = "x".repeat(129);
        for (body, previous, conversation) in [
            (r#"{"previous_response_id":"resp_1","conversation":"conv_1"}"#, "resp_1", "conv_1"),
            (r#"{"previous_interaction_id":"v1_a"}"#, "v1_a", ""),
            (r#"{"conversation":{"id":"conv_2","x":{"id":"no"}}}"#, "", "conv_2"),
            (r#"{"conversation":"a","conversation":{}}"#, "", ""),
            (r#"{"previous_response_id":"a","previous_response_id":null}"#, "", ""),
            (r#"{"previous_response_id":"my secret plan","conversation":"\u00e9"}"#, "", ""),
            (r#"{"previous_response_id":7,"conversation":["c"]}"#, "", ""),
            (r#"{"x":{"previous_response_id":"r"}}"#, "", ""),
            (
                &format!(r#"{{"previous_response_id":"{long}","conversation":"{}"}}"#, &long[1..]),
                "",
                &long[1..],
            ),
        ] {
            let links = read(body);
            assert_eq!(
                (links.previous_response.as_str(), links.conversation.as_str()),
                (previous, conversation)
            );
        }
    }
}
