//! The known inference servers: the relay distinguishes them by dialect, the control plane by metrics, and the operator
//! by the setting `kind`.

/// A kind of inference server, or of hosted interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// vLLM, behind either of its front ends.
    Vllm,
    /// Hugging Face's text-generation-inference.
    Tgi,
    /// llama.cpp's `llama-server`.
    LlamaCpp,
    /// SGLang.
    Sglang,
    /// Ollama.
    Ollama,
    /// NVIDIA TensorRT-LLM behind its own `trtllm-serve`.
    TensorrtLlm,
    /// NVIDIA Triton, whatever backend it runs.
    Triton,
    /// LMDeploy.
    Lmdeploy,
    /// mistral.rs.
    MistralRs,
    /// NVIDIA Dynamo's front end, whatever workers stand behind it.
    Dynamo,
    /// OpenAI's interface: hosted, or of an unknown server.
    Openai,
    /// Anthropic's interface.
    Anthropic,
    /// Google's Gemini interface.
    Gemini,
    /// OpenAI's interface on Azure.
    AzureOpenai,
    /// OpenRouter.
    Openrouter,
}

impl ServerKind {
    /// Every kind, in the order in which documentation lists them.
    pub const ALL: [Self; 15] = [
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
        Self::AzureOpenai,
        Self::Openrouter,
    ];

    /// Its name in the settings.
    pub const fn name(self) -> &'static str {
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
            Self::AzureOpenai => "azure_openai",
            Self::Openrouter => "openrouter",
        }
    }

    /// Its name in records and labels: the value of `gen_ai.provider.name` for a hosted interface that has one, else
    /// [`name`](Self::name).
    pub const fn provider(self) -> &'static str {
        match self {
            Self::Gemini => "gcp.gemini",
            Self::AzureOpenai => "azure.ai.openai",
            _ => self.name(),
        }
    }

    /// The kind of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::ServerKind;

    #[test]
    fn names_lead_back_to_their_kinds() {
        for (at, kind) in ServerKind::ALL.into_iter().enumerate() {
            assert_eq!(ServerKind::from_name(kind.name()), Some(kind));
            assert_eq!(kind as usize, at, "in the order of the declaration");
        }
        assert_eq!(ServerKind::from_name("llama.cpp"), None);
        assert_eq!(ServerKind::from_name(""), None);
    }
}
