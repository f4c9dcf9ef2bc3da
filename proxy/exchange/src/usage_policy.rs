//! Decides which usage is requested for a client: by the upstream's policy, its kind and its earlier answers. If the
//! option has no use or was rejected, the request is forwarded unchanged.

use http::HeaderMap;
use meter::{ServerKind, UsageStep};
use scan::Dialect;
use usage::{Policy, UsageOptions};

use crate::seal::is_sealed;

/// llama.cpp: the field that names a conversation whose answer continues after its client left, and can be fetched
/// later.
pub const CONVERSATION_ID: &str = "x-conversation-id";

/// The usage to request, or the reason why none is requested.
pub type Question = Result<UsageOptions, UsageStep>;

/// The facts of an upstream that decide which usage is requested from it. The default is a server of an unknown kind
/// that rejects nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamFacts {
    /// The server's kind, if it is known.
    pub kind: Option<ServerKind>,
    /// The options that may be added.
    pub usage: Policy,
    /// vLLM's front end is the Rust one, which frames its answers differently with running counts.
    pub has_rust_front_end: bool,
    /// The server lately sent usage without a request for it.
    pub sends_usage_unasked: bool,
    /// The server rejects the option for usage at the end.
    pub refuses_include: bool,
    /// The server rejects the option for running counts.
    pub refuses_running: bool,
}

/// Returns true if the dialect has `stream_options`.
#[inline]
pub(crate) fn has_stream_options(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions)
}

/// Returns true if a server of this kind may continue a named conversation after its client left; unknown kinds may.
pub fn keeps_conversations(kind: Option<ServerKind>) -> bool {
    kind.is_none_or(|kind| matches!(kind, ServerKind::LlamaCpp | ServerKind::Openai))
}

impl UpstreamFacts {
    /// Returns true if the dialect has a usage option, as far as the upstream's kind is known.
    pub fn has_option(&self, dialect: Dialect) -> bool {
        has_stream_options(dialect)
            || dialect == Dialect::OpenaiResponses
                && self.usage == Policy::Continuous
                && self.kind == Some(ServerKind::LlamaCpp)
    }

    /// Returns true if usage at the end is requested in this dialect unless the server rejects the option.
    pub fn may_include(&self, dialect: Dialect) -> bool {
        let ends_counted =
            dialect == Dialect::OpenaiCompletions && self.kind.is_some_and(completions_always_count);
        self.usage != Policy::Observe
            && has_stream_options(dialect)
            && !ends_counted
            && !self.sends_usage_unasked
            && !self.kind.is_some_and(always_counts)
    }

    /// Returns the usage to request in this dialect with these header fields; `None` if it has no usage option. The
    /// dialect is that of the path ([`Speaks::usage_dialect`](crate::Speaks::usage_dialect)) or, where the body decides,
    /// that of the exchange once its request is complete.
    pub fn question(&self, dialect: Dialect, headers: &HeaderMap) -> Option<Question> {
        self.has_option(dialect).then(|| self.options(dialect, headers))
    }

    fn options(&self, dialect: Dialect, headers: &HeaderMap) -> Question {
        let Self { kind, usage, .. } = *self;
        if usage == Policy::Observe {
            return Err(UsageStep::Observed);
        }
        let running = usage == Policy::Continuous && !self.refuses_running;
        // A replay starts at an offset in the server's bytes, so those must equal the client's.
        let timings = running && kind == Some(ServerKind::LlamaCpp) && !headers.contains_key(CONVERSATION_ID);
        let include = if !self.may_include(dialect) {
            Err(UsageStep::SentUnasked)
        } else if self.refuses_include {
            Err(UsageStep::Refused)
        } else {
            Ok(())
        };
        if let (Err(step), false) = (include, timings) {
            return Err(step);
        }
        // An edit would break a digest of the body. A compressed body is not JSON, and is not edited for that reason;
        // `Content-Encoding` alone proves nothing, because most servers ignore it.
        if is_sealed(headers) {
            return Err(UsageStep::Unreadable);
        }
        let include = include.is_ok();
        // A server of an unknown kind might change its frames.
        let continuous = include && running && self.counts_continuously();
        let alone_is_void =
            continuous && kind == Some(ServerKind::Vllm) || kind == Some(ServerKind::LlamaCpp);
        Ok(UsageOptions {
            include,
            continuous,
            timings,
            alone_is_void,
            is_strict: kind.is_some_and(takes_plain_flags_only),
        })
    }

    /// Returns true if the server supports `continuous_usage_stats` and frames its answers the same with it.
    fn counts_continuously(&self) -> bool {
        match self.kind {
            Some(ServerKind::Vllm) => !self.has_rust_front_end,
            Some(
                ServerKind::Sglang | ServerKind::TensorrtLlm | ServerKind::Lmdeploy | ServerKind::Openai,
            ) => true,
            _ => false,
        }
    }
}

/// Returns true if the server rejects a flag that is neither `true` nor `false`.
fn takes_plain_flags_only(kind: ServerKind) -> bool {
    matches!(kind, ServerKind::LlamaCpp | ServerKind::Tgi | ServerKind::MistralRs | ServerKind::Ollama)
}

/// Returns true if every stream has usage, whether it was requested or not: a client that did not request it gets it,
/// too, and would lose it with the answer to an added option.
fn always_counts(kind: ServerKind) -> bool {
    kind == ServerKind::Openrouter
}

/// Returns true if the server always ends its completions with a frame with usage. (mistral.rs never does.)
fn completions_always_count(kind: ServerKind) -> bool {
    matches!(kind, ServerKind::LlamaCpp | ServerKind::Tgi | ServerKind::MistralRs)
}

/// Returns true if the server sends the usage of each answer when it finishes, while others continue.
#[inline]
pub(crate) fn counts_each_answer(kind: Option<ServerKind>) -> bool {
    kind.is_none_or(|kind| matches!(kind, ServerKind::LlamaCpp | ServerKind::Openai))
}

/// Returns true if the server sends a usage of `null` or of zeros in every other frame of streams with the option for
/// usage at the end, and none in others. A server that is not among them may send one in any stream.
pub(crate) fn adds_placeholders(kind: Option<ServerKind>) -> bool {
    kind.is_some_and(|kind| {
        matches!(
            kind,
            ServerKind::Openai | ServerKind::AzureOpenai | ServerKind::Lmdeploy | ServerKind::Ollama
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(facts: UpstreamFacts, dialect: Dialect) -> Option<Question> {
        facts.question(dialect, &HeaderMap::new())
    }

    #[test]
    fn unknown_upstream_is_asked_for_usage_at_the_end() {
        let options = question(UpstreamFacts::default(), Dialect::OpenaiChat).unwrap().unwrap();
        assert!(options.include && !options.continuous && !options.timings);
        assert_eq!(question(UpstreamFacts::default(), Dialect::Anthropic), None);
        assert_eq!(question(UpstreamFacts::default(), Dialect::OpenaiResponses), None);
    }

    #[test]
    fn each_fact_has_its_step() {
        let facts = UpstreamFacts::default();
        for (facts, step) in [
            (UpstreamFacts { usage: Policy::Observe, refuses_include: true, ..facts }, UsageStep::Observed),
            (
                UpstreamFacts { sends_usage_unasked: true, refuses_include: true, ..facts },
                UsageStep::SentUnasked,
            ),
            (UpstreamFacts { kind: Some(ServerKind::Openrouter), ..facts }, UsageStep::SentUnasked),
            (UpstreamFacts { refuses_include: true, ..facts }, UsageStep::Refused),
        ] {
            assert_eq!(question(facts, Dialect::OpenaiChat), Some(Err(step)), "{facts:?}");
        }
        let mut sealed = HeaderMap::new();
        sealed.insert("content-digest", "x".parse().unwrap());
        assert_eq!(facts.question(Dialect::OpenaiChat, &sealed), Some(Err(UsageStep::Unreadable)));
    }

    /// OpenAI's document and the source of LMDeploy and Ollama say so. Dynamo's completions, TGI's chat, TensorRT-LLM's
    /// completions and mistral.rs's chat have a `null` in any stream, which is theirs.
    #[test]
    fn placeholders_of_any_stream_are_the_servers() {
        let adding: Vec<_> = ServerKind::ALL
            .into_iter()
            .filter(|kind| adds_placeholders(Some(*kind)))
            .map(ServerKind::name)
            .collect();
        assert_eq!(adding, ["ollama", "lmdeploy", "openai", "azure_openai"]);
        assert!(!adds_placeholders(None));
    }

    #[test]
    fn running_counts_depend_on_the_front_end() {
        let vllm = UpstreamFacts {
            kind: Some(ServerKind::Vllm),
            usage: Policy::Continuous,
            ..UpstreamFacts::default()
        };
        let runs = |facts| question(facts, Dialect::OpenaiChat).unwrap().unwrap().continuous;
        assert!(runs(vllm));
        assert!(!runs(UpstreamFacts { has_rust_front_end: true, ..vllm }));
        assert!(!runs(UpstreamFacts { refuses_running: true, ..vllm }));
    }
}
