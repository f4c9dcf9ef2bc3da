//! Hosted providers by the host of their URL.

use relay::ServerKind;

/// A provider as the host of its URL identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hosted {
    /// The kind of its interface.
    pub(super) kind: ServerKind,
    /// Its name (`gen_ai.provider.name`).
    pub(super) provider: &'static str,
}

impl Hosted {
    /// Returns the provider whose host this is, or a host below it.
    pub(super) fn of(host: &str) -> Option<Self> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_at = |domain: &str| {
            host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        // Regions are part of the first segment, or one of the segments.
        if is_at("amazonaws.com") && host.starts_with("bedrock-runtime.") {
            return Some(Self { kind: ServerKind::Openai, provider: "aws.bedrock" });
        }
        if host.ends_with("-aiplatform.googleapis.com") {
            return Some(Self { kind: ServerKind::Gemini, provider: "gcp.vertex_ai" });
        }
        let (_, kind, provider) = DOMAINS.into_iter().find(|(domain, _, _)| is_at(domain))?;
        Some(Self { kind, provider })
    }
}

/// The domains of providers. Their names are those of the semantic convention, as far as it has one.
const DOMAINS: [(&str, ServerKind, &str); 16] = [
    ("api.openai.com", ServerKind::Openai, "openai"),
    ("api.anthropic.com", ServerKind::Anthropic, "anthropic"),
    ("generativelanguage.googleapis.com", ServerKind::Gemini, "gcp.gemini"),
    ("aiplatform.googleapis.com", ServerKind::Gemini, "gcp.vertex_ai"),
    ("openai.azure.com", ServerKind::AzureOpenai, "azure.ai.openai"),
    ("cognitiveservices.azure.com", ServerKind::AzureOpenai, "azure.ai.openai"),
    ("services.ai.azure.com", ServerKind::AzureOpenai, "azure.ai.openai"),
    ("openrouter.ai", ServerKind::Openrouter, "openrouter"),
    ("api.mistral.ai", ServerKind::Openai, "mistral_ai"),
    ("api.groq.com", ServerKind::Openai, "groq"),
    ("api.deepseek.com", ServerKind::Openai, "deepseek"),
    ("api.x.ai", ServerKind::Openai, "x_ai"),
    ("api.cohere.com", ServerKind::Openai, "cohere"),
    ("api.perplexity.ai", ServerKind::Openai, "perplexity"),
    ("api.moonshot.ai", ServerKind::Openai, "moonshot_ai"),
    ("ml.cloud.ibm.com", ServerKind::Openai, "ibm.watsonx.ai"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_identify_their_providers() {
        for (host, expected) in [
            ("api.openai.com", Some((ServerKind::Openai, "openai"))),
            ("API.OpenAI.com.", Some((ServerKind::Openai, "openai"))),
            ("eu.api.openai.com", Some((ServerKind::Openai, "openai"))),
            ("api.anthropic.com", Some((ServerKind::Anthropic, "anthropic"))),
            ("generativelanguage.googleapis.com", Some((ServerKind::Gemini, "gcp.gemini"))),
            ("europe-west6-aiplatform.googleapis.com", Some((ServerKind::Gemini, "gcp.vertex_ai"))),
            ("aiplatform.googleapis.com", Some((ServerKind::Gemini, "gcp.vertex_ai"))),
            ("mine.openai.azure.com", Some((ServerKind::AzureOpenai, "azure.ai.openai"))),
            ("mine.services.ai.azure.com", Some((ServerKind::AzureOpenai, "azure.ai.openai"))),
            ("bedrock-runtime.eu-central-2.amazonaws.com", Some((ServerKind::Openai, "aws.bedrock"))),
            ("openrouter.ai", Some((ServerKind::Openrouter, "openrouter"))),
            ("s3.eu-central-2.amazonaws.com", None),
            ("notopenrouter.ai", None),
            ("api.openai.com.example.org", None),
            ("127.0.0.1", None),
            ("::1", None),
            ("", None),
        ] {
            let found = Hosted::of(host).map(|hosted| (hosted.kind, hosted.provider));
            assert_eq!(found, expected, "{host}");
        }
    }
}
