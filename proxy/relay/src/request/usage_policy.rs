//! Decides which usage the proxy requests for a client: by the upstream's policy, its kind and its earlier answers. If
//! the option has no use or was rejected, the request is forwarded unchanged.

use http::HeaderMap;
use meter::Tick;
use scan::Dialect;
use usage::{Policy, UsageOptions};

use super::headers::{self, is_sealed};
use super::route::Speaks;
use crate::upstream_profile::{ClientKey, UpstreamProfile};
use crate::{ServerKind, Upstream, UsageStep};

/// Returns true if the dialect has `stream_options`.
pub(crate) fn has_stream_options(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions)
}

/// Returns true if a server of this kind may continue a named conversation after its client left; unknown kinds may.
pub(crate) fn keeps_conversations(upstream: &Upstream, profile: &UpstreamProfile) -> bool {
    kind_of(upstream, profile).is_none_or(|kind| matches!(kind, ServerKind::LlamaCpp | ServerKind::Openai))
}

fn kind_of(upstream: &Upstream, profile: &UpstreamProfile) -> Option<ServerKind> {
    upstream.kind.or_else(|| profile.found_kind())
}

/// The usage to request, or the reason why none is requested.
pub(crate) type Question = Result<UsageOptions, UsageStep>;

/// The rules by which usage is requested in one request.
#[derive(Clone, Copy)]
pub(crate) struct UsagePolicy<'a> {
    pub(crate) upstream: &'a Upstream,
    pub(crate) profile: &'a UpstreamProfile,
    /// The client of the request.
    pub(crate) client: ClientKey,
    /// The time at which the request began.
    pub(crate) now: Tick,
}

impl UsagePolicy<'_> {
    /// Returns the usage to request with these header fields, as far as the path decides; `None` if there is no usage
    /// option, or the body decides.
    pub(crate) fn question_by_path(&self, speaks: Speaks, headers: &HeaderMap) -> Option<Question> {
        match speaks {
            Speaks::Known(dialect) => self.askable(dialect, headers),
            // The body decides whether there is an option; a completion may need less.
            Speaks::Invocations => Some(self.question(Dialect::OpenaiChat, headers)),
            _ => None,
        }
    }

    /// Returns the usage to request in this dialect, if it has a usage option.
    pub(crate) fn askable(&self, dialect: Dialect, headers: &HeaderMap) -> Option<Question> {
        self.is_askable(dialect).then(|| self.question(dialect, headers))
    }

    /// Returns true if the dialect has a usage option, as far as the upstream's kind is known.
    fn is_askable(&self, dialect: Dialect) -> bool {
        has_stream_options(dialect)
            || dialect == Dialect::OpenaiResponses
                && self.upstream.usage == Policy::Continuous
                && kind_of(self.upstream, self.profile) == Some(ServerKind::LlamaCpp)
    }

    /// Returns the usage to request with these header fields.
    fn question(&self, dialect: Dialect, headers: &HeaderMap) -> Question {
        let Self { upstream, profile, client, now } = *self;
        if upstream.usage == Policy::Observe {
            return Err(UsageStep::Observed);
        }
        let kind = kind_of(upstream, profile);
        let running = upstream.usage == Policy::Continuous && !profile.refuses_running(client, now);
        // A replay starts at an offset in the server's bytes, so those must equal the client's.
        let timings =
            running && kind == Some(ServerKind::LlamaCpp) && !headers.contains_key(headers::CONVERSATION_ID);
        let ends_counted =
            dialect == Dialect::OpenaiCompletions && kind.is_some_and(completions_always_count);
        let include = if !has_stream_options(dialect) || ends_counted || profile.sends_usage_unasked(now) {
            Err(UsageStep::SentUnasked)
        } else if profile.refuses_include(client, now) {
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
        let continuous = include && running && kind.is_some_and(|kind| counts_continuously(kind, profile));
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
}

/// Returns true if the server rejects a flag that is neither `true` nor `false`.
fn takes_plain_flags_only(kind: ServerKind) -> bool {
    matches!(kind, ServerKind::LlamaCpp | ServerKind::Tgi | ServerKind::MistralRs | ServerKind::Ollama)
}

/// Returns true if the server always ends its completions with a frame with usage. (mistral.rs never does.)
fn completions_always_count(kind: ServerKind) -> bool {
    matches!(kind, ServerKind::LlamaCpp | ServerKind::Tgi | ServerKind::MistralRs)
}

/// Returns true if the server sends the usage of each answer when it finishes, while others continue.
pub(crate) fn counts_each_answer(kind: Option<ServerKind>) -> bool {
    kind.is_none_or(|kind| matches!(kind, ServerKind::LlamaCpp | ServerKind::Openai))
}

/// Returns true if the server supports `continuous_usage_stats` and frames its answers the same with it.
fn counts_continuously(kind: ServerKind, profile: &UpstreamProfile) -> bool {
    match kind {
        ServerKind::Vllm => !profile.has_rust_front_end(),
        ServerKind::Sglang | ServerKind::TensorrtLlm | ServerKind::Lmdeploy | ServerKind::Openai => true,
        _ => false,
    }
}
