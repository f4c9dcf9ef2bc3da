//! The division of a request's prefill and decode between two servers, and its limit of output tokens.
//! vLLM's `kv_transfer_params` express it: the router sends one request with `do_remote_decode` and a limit
//! of one token, and another with `do_remote_prefill`.

use super::sampling::number;
use crate::dialect::Dialect;
use crate::frame::count;
use crate::json::Value;

/// The members of `kv_transfer_params`. Only `true` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvTransfer {
    /// `do_remote_decode`: another server decodes what this one prefills.
    pub remote_decode: bool,
    /// `do_remote_prefill`: another server has prefilled what this one decodes.
    pub remote_prefill: bool,
}

/// A name of the limit of output tokens in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitName {
    /// `max_tokens`.
    Plain,
    /// `max_completion_tokens`.
    Completion,
    /// `max_output_tokens`.
    Output,
    /// The limit of another interface, which llama.cpp and others apply at OpenAI's paths, too.
    Foreign,
}

/// The limits of output tokens, under every name and path of the dialects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimits {
    /// By [`LimitName`]: the last value is one token or zero.
    is_one: [bool; 4],
    /// Another value was present: more tokens, a negative number (no limit in llama.cpp), or no count.
    allows_more: bool,
}

impl OutputLimits {
    /// Reads a value. Parsers differ in which of two members counts, so a value that allows more persists;
    /// `null` counts as absent.
    pub(crate) fn set(&mut self, name: LimitName, value: Value<'_>) {
        let is_one = matches!(number(value).and_then(count), Some(0 | 1));
        self.is_one[name as usize] = is_one;
        self.allows_more |= !is_one && value != Value::Null;
    }

    /// Returns true if a server of `dialect` generates at most one token: one of the dialect's own names is
    /// present, and no name at any path allows more.
    pub fn is_one_token(&self, dialect: Dialect) -> bool {
        let read: &[LimitName] = match dialect {
            Dialect::OpenaiChat => &[LimitName::Plain, LimitName::Completion],
            Dialect::OpenaiCompletions => &[LimitName::Plain],
            Dialect::OpenaiResponses => &[LimitName::Output],
            _ => &[],
        };
        !self.allows_more && read.iter().any(|name| self.is_one[*name as usize])
    }
}

/// Returns true for a set flag of `kv_transfer_params`.
pub(super) fn is_true(value: Value<'_>) -> bool {
    value == Value::Bool(true)
}

#[cfg(test)]
mod tests {
    use super::KvTransfer;
    use crate::{Dialect, Request, RequestScanner};

    fn read(body: &str) -> Request {
        let mut scanner = RequestScanner::new();
        scanner.feed(body.as_bytes());
        scanner.end()
    }

    /// The bodies of vLLM's toy proxy for NIXL.
    const PREFILL: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":false,"max_tokens":1,"max_completion_tokens":1,"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,"remote_host":null,"remote_port":null}}"#;
    const DECODE: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":200,"kv_transfer_params":{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[1,2,3],"remote_engine_id":"e","remote_host":"10.0.0.1","remote_port":5559}}"#;

    #[test]
    fn toy_proxy_bodies_identify_their_legs() {
        let (prefill, decode) = (read(PREFILL), read(DECODE));
        assert_eq!(prefill.kv_transfer, KvTransfer { remote_decode: true, remote_prefill: false });
        assert!(prefill.output_limits.is_one_token(Dialect::OpenaiChat));
        assert_eq!(decode.kv_transfer, KvTransfer { remote_decode: false, remote_prefill: true });
        assert!(!decode.output_limits.is_one_token(Dialect::OpenaiChat));
    }

    #[test]
    fn the_last_kv_transfer_params_count() {
        for body in [
            r#"{"kv_transfer_params":{"do_remote_decode":true},"kv_transfer_params":{}}"#,
            r#"{"kv_transfer_params":{"do_remote_decode":true},"kv_transfer_params":null}"#,
            r#"{"kv_transfer_params":{"do_remote_decode":true,"do_remote_decode":false}}"#,
            r#"{"kv_transfer_params":{"do_remote_decode":"true"}}"#,
            r#"{"kv_transfer_params":{"do_remote_decode":1}}"#,
            r#"{"kv_transfer_params":{"x":{"do_remote_decode":true}}}"#,
            r#"{"do_remote_decode":true}"#,
        ] {
            assert_eq!(read(body).kv_transfer, KvTransfer::default(), "{body}");
        }
    }

    #[test]
    fn a_limit_of_one_needs_the_dialects_name() {
        for (body, chat, completions, responses) in [
            (r#"{"max_tokens":1}"#, true, true, false),
            (r#"{"max_tokens":0}"#, true, true, false),
            (r#"{"max_completion_tokens":1}"#, true, false, false),
            (r#"{"max_output_tokens":1}"#, false, false, true),
            (r#"{"max_tokens":1,"max_completion_tokens":100}"#, false, false, false),
            (r#"{"max_tokens":100,"max_completion_tokens":1}"#, false, false, false),
            (r#"{"max_tokens":1,"max_tokens":100}"#, false, false, false),
            (r#"{"max_tokens":100,"max_tokens":1}"#, false, false, false),
            (r#"{"max_tokens":1,"max_tokens":null}"#, false, false, false),
            (r#"{"options":{"num_predict":1},"n_predict":1,"max_new_tokens":1}"#, false, false, false),
            (r#"{"sampling_params":{"max_tokens":1}}"#, false, false, false),
            (r#"{"max_tokens":"1"}"#, false, false, false),
            (r#"{"max_tokens":1.5}"#, false, false, false),
            (r#"{"max_tokens":-1}"#, false, false, false),
            ("{}", false, false, false),
        ] {
            let limits = read(body).output_limits;
            assert_eq!(limits.is_one_token(Dialect::OpenaiChat), chat, "{body}");
            assert_eq!(limits.is_one_token(Dialect::OpenaiCompletions), completions, "{body}");
            assert_eq!(limits.is_one_token(Dialect::OpenaiResponses), responses, "{body}");
            assert!(!limits.is_one_token(Dialect::Sglang), "{body}");
        }
    }
    #[test]
    fn a_foreign_limit_above_one_prevails() {
        const FOREIGN: [&str; 10] = [
            r#""n_predict":@"#,
            r#""num_predict":@"#,
            r#""max_new_tokens":@"#,
            r#""max_output_tokens":@"#,
            r#""sampling_params":{"max_new_tokens":@}"#,
            r#""sampling_params":{"max_tokens":@}"#,
            r#""parameters":{"max_new_tokens":@}"#,
            r#""parameters":{"max_tokens":@}"#,
            r#""options":{"num_predict":@}"#,
            r#""generationConfig":{"maxOutputTokens":@}"#,
        ];
        let is_one = |member: &str, value: &str| {
            let member = member.replace('@', value);
            let own = r#""max_tokens":1"#;
            let orders = [format!("{{{own},{member}}}"), format!("{{{member},{own}}}")];
            orders.map(|body| read(&body).output_limits.is_one_token(Dialect::OpenaiChat))
        };
        for member in FOREIGN {
            for value in ["700", "2", "-1", "1.5", "1e3", r#""700""#, "true", "[]", "{}"] {
                assert_eq!(is_one(member, value), [false; 2], "{member} {value}");
            }
            for value in ["1", "0", "1.0", "null"] {
                assert_eq!(is_one(member, value), [true; 2], "{member} {value}");
            }
        }
        let hidden = r#"{"max_tokens":0,"n_predict":-1,"n_predict":1,"max_new_tokens":1}"#;
        assert!(!read(hidden).output_limits.is_one_token(Dialect::OpenaiChat), "llama.cpp has no limit here");
    }
}
