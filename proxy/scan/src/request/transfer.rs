//! How a request's prefill and decode are divided between two servers, and how many tokens it asks for
//! at most. vLLM's `kv_transfer_params` say it: the router sends one request with `do_remote_decode` and
//! a limit of one token, and another with `do_remote_prefill`.

use crate::dialect::Dialect;
use crate::json::Value;

/// The members of `kv_transfer_params`. Only `true` itself counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvTransfer {
    /// `do_remote_decode`: another server decodes what this one prefills.
    pub remote_decode: bool,
    /// `do_remote_prefill`: another server has prefilled what this one decodes.
    pub remote_prefill: bool,
}

/// A name of the limit of output tokens at the top of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitName {
    /// `max_tokens`.
    Plain,
    /// `max_completion_tokens`.
    Completion,
    /// `max_output_tokens`.
    Output,
}

/// The limits of output tokens by the names that OpenAI's interfaces have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimits {
    named: [Limit; 3],
}

/// A limit of output tokens, as far as legs are told by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Limit {
    #[default]
    Unsaid,
    /// One token or none.
    One,
    More,
}

impl OutputLimits {
    /// Takes in a value; `None` is no count.
    pub(crate) fn set(&mut self, name: LimitName, limit: Option<u64>) {
        self.named[name as usize] = match limit {
            None => Limit::Unsaid,
            Some(0 | 1) => Limit::One,
            Some(_) => Limit::More,
        };
    }

    /// Returns true if a server that speaks `dialect` makes one token at most: the dialect has one of the
    /// names that are there, and no name allows more.
    pub fn is_one_token(&self, dialect: Dialect) -> bool {
        let read: &[LimitName] = match dialect {
            Dialect::OpenaiChat => &[LimitName::Plain, LimitName::Completion],
            Dialect::OpenaiCompletions => &[LimitName::Plain],
            Dialect::OpenaiResponses => &[LimitName::Output],
            _ => &[],
        };
        read.iter().any(|name| self.named[*name as usize] == Limit::One) && !self.named.contains(&Limit::More)
    }
}

/// A flag of `kv_transfer_params`.
pub(super) fn is_true(value: Value<'_>) -> bool {
    value == Value::Bool(true)
}

#[cfg(test)]
mod tests {
    use super::{KvTransfer, OutputLimits};
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
    fn toy_proxy_bodies_say_their_legs() {
        let (prefill, decode) = (read(PREFILL), read(DECODE));
        assert_eq!(prefill.kv_transfer, KvTransfer { remote_decode: true, remote_prefill: false });
        assert!(prefill.output_limits.is_one_token(Dialect::OpenaiChat));
        assert_eq!(decode.kv_transfer, KvTransfer { remote_decode: false, remote_prefill: true });
        assert!(!decode.output_limits.is_one_token(Dialect::OpenaiChat));
    }

    #[test]
    fn last_kv_transfer_params_count() {
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
    fn one_token_needs_the_dialects_own_name() {
        let limits = |body: &str| -> OutputLimits { read(body).output_limits };
        for (body, chat, completions, responses) in [
            (r#"{"max_tokens":1}"#, true, true, false),
            (r#"{"max_tokens":0}"#, true, true, false),
            (r#"{"max_completion_tokens":1}"#, true, false, false),
            (r#"{"max_output_tokens":1}"#, false, false, true),
            (r#"{"max_tokens":1,"max_completion_tokens":100}"#, false, false, false),
            (r#"{"max_tokens":100,"max_completion_tokens":1}"#, false, false, false),
            (r#"{"max_tokens":1,"max_tokens":100}"#, false, false, false),
            (r#"{"max_tokens":1,"max_tokens":null}"#, false, false, false),
            (r#"{"options":{"num_predict":1},"n_predict":1,"max_new_tokens":1}"#, false, false, false),
            (r#"{"sampling_params":{"max_tokens":1}}"#, false, false, false),
            (r#"{"max_tokens":"1"}"#, false, false, false),
            ("{}", false, false, false),
        ] {
            let said = limits(body);
            assert_eq!(said.is_one_token(Dialect::OpenaiChat), chat, "{body}");
            assert_eq!(said.is_one_token(Dialect::OpenaiCompletions), completions, "{body}");
            assert_eq!(said.is_one_token(Dialect::OpenaiResponses), responses, "{body}");
            assert!(!said.is_one_token(Dialect::Sglang), "{body}");
        }
    }
}
