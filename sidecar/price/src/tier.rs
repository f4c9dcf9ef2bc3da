//! Whose word a service tier is. The law: what only the client said makes nothing cheaper, also where
//! the server says it after them.

/// Whether servers of a kind (`gen_ai.provider.name`) serve in tiers, so that the one their response
/// names is their own word. The others have none, and some of them copy the request's `service_tier`
/// into the response (vLLM does): there it is as good as one that was only asked for.
pub fn has_tiers(provider: &str) -> bool {
    WITH_TIERS.contains(&provider)
}

/// Who sells tiers. A kind that is not known here has none: then nobody pays too little.
const WITH_TIERS: [&str; 3] = ["openai", "anthropic", "gemini"];
