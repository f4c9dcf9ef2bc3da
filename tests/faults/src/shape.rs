//! The shapes: vLLM's, which the simulator has, and llama.cpp's.

use simulator::params::{Endpoint, GenerationParams, Rejection};
use simulator::server::Counts;
use simulator::shape::{ResponseWriter, Vllm, event, quote};
use simulator::speed::Model;

use crate::llamacpp;

/// The imitated server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// vLLM 0.32, its Python front end.
    #[default]
    Vllm,
    /// llama.cpp's server.
    LlamaCpp,
}

impl Shape {
    /// Writes an error event, and what this server sends after one.
    pub(crate) fn error_events(self, message: &str, out: &mut Vec<String>) {
        match self {
            Self::Vllm => {
                // With spaces: another JSON printer writes this one.
                out.push(event(&format!(
                    r#"{{"error": {{"message": {}, "type": "InternalServerError", "param": null, "code": 500}}}}"#,
                    quote(message)
                )));
                out.push(event("[DONE]"));
            }
            Self::LlamaCpp => out.push(event(&llamacpp::error_body(500, message))),
        }
    }

    /// Returns a comment event.
    pub(crate) fn ping(self) -> &'static str {
        match self {
            Self::Vllm => ": keep-alive\n\n",
            Self::LlamaCpp => ":\n\n",
        }
    }
}

impl simulator::shape::Shape for Shape {
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        match (self, path) {
            (Self::LlamaCpp, "/chat/completions") => Some(Endpoint::Chat),
            (Self::LlamaCpp, "/completion" | "/completions") => Some(Endpoint::Native),
            _ => Vllm.endpoint(path),
        }
    }

    fn wrong_method(&self) -> (u16, &'static str) {
        match self {
            Self::Vllm => Vllm.wrong_method(),
            Self::LlamaCpp => (404, "Not Found"),
        }
    }

    fn check(&self, params: &GenerationParams) -> Result<(), Rejection> {
        match self {
            Self::Vllm => Vllm.check(params),
            Self::LlamaCpp => Ok(()),
        }
    }

    fn writer(&self, params: &GenerationParams, model: &Model) -> Box<dyn ResponseWriter> {
        match self {
            Self::Vllm => Vllm.writer(params, model),
            Self::LlamaCpp => Box::new(llamacpp::ResponseWriter::new(params, model)),
        }
    }

    fn head(&self, streamed: bool) -> &'static [(&'static str, &'static str)] {
        match (self, streamed) {
            (Self::Vllm, _) => Vllm.head(streamed),
            (Self::LlamaCpp, true) => llamacpp::STREAM_HEAD,
            (Self::LlamaCpp, false) => llamacpp::HEAD,
        }
    }

    fn error_body(&self, status: u16, message: &str) -> String {
        match self {
            Self::Vllm => Vllm.error_body(status, message),
            Self::LlamaCpp => llamacpp::error_body(status, message),
        }
    }

    fn models(&self, names: &[&str]) -> String {
        match self {
            Self::Vllm => Vllm.models(names),
            Self::LlamaCpp => llamacpp::models(names),
        }
    }

    fn health(&self) -> &'static str {
        match self {
            Self::Vllm => Vllm.health(),
            Self::LlamaCpp => r#"{"status":"ok"}"#,
        }
    }

    fn metrics(&self, counts: &Counts, name: &str) -> String {
        match self {
            Self::Vllm => Vllm.metrics(counts, name),
            Self::LlamaCpp => llamacpp::metrics(counts),
        }
    }
}
