//! The known inference servers: the relay distinguishes them by dialect, the control plane by metrics, and the operator
//! by the setting `kind`.

scan::listed_enum! {
    /// A kind of inference server, or of hosted interface, in the order in which documentation lists them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ServerKind {
        /// vLLM, behind either of its front ends.
        Vllm = "vllm",
        /// Hugging Face's text-generation-inference.
        Tgi = "tgi",
        /// llama.cpp's `llama-server`.
        LlamaCpp = "llama_cpp",
        /// SGLang.
        Sglang = "sglang",
        /// Ollama.
        Ollama = "ollama",
        /// NVIDIA TensorRT-LLM behind its own `trtllm-serve`.
        TensorrtLlm = "tensorrt_llm",
        /// NVIDIA Triton, whatever backend it runs.
        Triton = "triton",
        /// LMDeploy.
        Lmdeploy = "lmdeploy",
        /// mistral.rs.
        MistralRs = "mistral_rs",
        /// NVIDIA Dynamo's front end, whatever workers stand behind it.
        Dynamo = "dynamo",
        /// OpenAI's interface: hosted, or of an unknown server.
        Openai = "openai",
        /// Anthropic's interface.
        Anthropic = "anthropic",
        /// Google's Gemini interface.
        Gemini = "gemini",
        /// OpenAI's interface on Azure.
        AzureOpenai = "azure_openai",
        /// OpenRouter.
        Openrouter = "openrouter",
    }
    /// Its name in the settings.
    pub fn name(self);
    /// The kind of that name, if there is one.
    pub fn from_name(&str);
}

impl ServerKind {
    /// Its name in records and labels: the value of `gen_ai.provider.name` for a hosted interface that has one, else
    /// [`name`](Self::name).
    pub const fn provider(self) -> &'static str {
        match self {
            Self::Gemini => "gcp.gemini",
            Self::AzureOpenai => "azure.ai.openai",
            _ => self.name(),
        }
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
