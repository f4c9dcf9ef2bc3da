//! Trust in the service tier of a response. Law: a tier that only the request names never lowers the price, also if the
//! server copies it into the response.

/// Returns whether a provider (`gen_ai.provider.name`) has service tiers, so that the tier in its response is trusted.
/// The others have none, and some (vLLM) copy the request's `service_tier` into the response; their tier counts as
/// requested only.
pub fn has_tiers(provider: &str) -> bool {
    WITH_TIERS.contains(&provider)
}

/// The providers with tiers. An unknown provider counts as one without, so that no exchange is charged too little.
const WITH_TIERS: [&str; 4] = ["openai", "anthropic", "gcp.gemini", "azure.ai.openai"];
