//! Trust in the service tier and the model of a response. Law: a tier that only the request names never lowers the
//! price, also if the server copies it into the response.

/// Returns whether a provider (`gen_ai.provider.name`) is hosted by its vendor, so that the tier and the model in its
/// response are those of the vendor's invoice. The others have no tiers, and some (vLLM) copy the request's
/// `service_tier` into the response; their tier counts as requested only.
pub fn is_hosted(provider: &str) -> bool {
    HOSTED.contains(&provider)
}

/// The hosted providers. An unknown provider counts as another one, so that no exchange is charged too little.
const HOSTED: [&str; 15] = [
    "openai",
    "anthropic",
    "gcp.gemini",
    "gcp.vertex_ai",
    "azure.ai.openai",
    "aws.bedrock",
    "openrouter",
    "mistral_ai",
    "groq",
    "deepseek",
    "x_ai",
    "cohere",
    "perplexity",
    "moonshot_ai",
    "ibm.watsonx.ai",
];
