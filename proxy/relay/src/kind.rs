//! The inference servers we know by name. A kind is configured or found out; it settles what a path
//! alone does not say, and what may be asked of the server.

/// A kind of inference server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// vLLM.
    Vllm,
    /// Hugging Face text-generation-inference.
    Tgi,
    /// llama.cpp's server.
    LlamaCpp,
    /// SGLang.
    Sglang,
    /// Ollama.
    Ollama,
    /// TensorRT-LLM's own server.
    TensorrtLlm,
    /// NVIDIA Triton.
    Triton,
    /// LMDeploy.
    Lmdeploy,
    /// mistral.rs.
    MistralRs,
    /// NVIDIA Dynamo's frontend.
    Dynamo,
    /// OpenAI, or anything that speaks as it does.
    Openai,
    /// Anthropic.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

impl Kind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 13] = [
        Self::Vllm,
        Self::Tgi,
        Self::LlamaCpp,
        Self::Sglang,
        Self::Ollama,
        Self::TensorrtLlm,
        Self::Triton,
        Self::Lmdeploy,
        Self::MistralRs,
        Self::Dynamo,
        Self::Openai,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// The name in settings and labels: a value of `gen_ai.provider.name`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Tgi => "tgi",
            Self::LlamaCpp => "llama_cpp",
            Self::Sglang => "sglang",
            Self::Ollama => "ollama",
            Self::TensorrtLlm => "tensorrt_llm",
            Self::Triton => "triton",
            Self::Lmdeploy => "lmdeploy",
            Self::MistralRs => "mistral_rs",
            Self::Dynamo => "dynamo",
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
