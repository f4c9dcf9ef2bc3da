//! The facts of an exchange while it lasts: its dialect, model and tenant, and the counts to expect.

use std::sync::Arc;

use meter::{Meter, ServerKind};
use scan::Dialect;
use usage::AddedOptions;

use super::Exchange;
use crate::response::Response;
use crate::response_reader::ResponseReader;
use crate::route::Speaks;

impl Exchange {
    /// Returns false as long as nothing of inference was seen: an exchange that ends so makes no record.
    pub fn is_inference(&self) -> bool {
        self.dialect != Dialect::Unknown || self.response.is_some() || self.is_counted_by_engine()
    }

    /// Returns true if an engine counts the tokens: whatever its path and its response, it runs a model.
    pub(super) fn is_counted_by_engine(&self) -> bool {
        self.meter.as_ref().is_some_and(Meter::is_counted_by_engine)
    }

    /// Returns true if the response is a stream of frames, as far as it was read.
    #[inline]
    pub fn is_streamed(&self) -> bool {
        self.response.as_ref().is_some_and(Response::is_streamed)
    }

    /// The JSON shape spoken, as far as it is known.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the tenant, if it is known by now.
    pub fn tenant(&self) -> Option<&Arc<str>> {
        self.tenant.tenant()
    }

    /// Returns the key or account of the request, if it is known by now.
    pub fn principal(&self) -> Option<&Arc<str>> {
        self.tenant.principal()
    }

    /// The name of its model, as far as it is known; empty if it is not.
    pub fn model_name(&self) -> &str {
        self.model.name.as_deref().unwrap_or_default()
    }

    /// The models that the request may name: two where the server's kind decides between two readings, and is not
    /// known.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.model.names()
    }

    /// Returns true if the request was read to its end, and it is certain which model it names, if any.
    pub fn is_readable(&self) -> bool {
        self.model.is_certain()
    }

    /// Returns true if its path is unknown.
    pub fn is_of_unknown_path(&self) -> bool {
        matches!(self.speaks, Speaks::Anything | Speaks::Shape)
    }

    /// Returns true if the dialect depends on the request's body.
    pub fn is_decided_by_body(&self) -> bool {
        self.speaks.is_decided_by_body()
    }

    /// The options that were added to the request as it was sent last.
    pub fn added(&self) -> Option<AddedOptions> {
        self.sent.added
    }

    /// Returns true if the client asked for usage at the end of its stream.
    pub fn asks_for_usage(&self) -> bool {
        self.meter.as_ref().is_some_and(|meter| meter.request().include_usage == Some(true))
    }

    /// Returns true if a server of this kind may accept detached work by a member of the body: each that stores answers,
    /// xAI for a chat, and any at an unknown path.
    pub fn may_detach(&self, kind: Option<ServerKind>) -> bool {
        let is_hosted = kind.is_none_or(|kind| kind == ServerKind::Openai);
        let is_chat = matches!(self.dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions);
        self.dialect.stores_answers() || is_hosted && is_chat || self.is_of_unknown_path()
    }

    /// Returns true if the request asks for a response in the background, as far as it was read.
    pub fn asks_background(&self) -> bool {
        self.meter.as_ref().is_some_and(|meter| meter.request().background || meter.request().detached)
    }

    /// Returns true if the request asks for frames, as far as it could be read.
    pub fn asks_for_frames(&self) -> bool {
        self.meter.as_ref().is_some_and(|meter| {
            let request = meter.request();
            request.stream == Some(true) || !request.whole
        })
    }

    /// Returns true if the answer to such a request may not state how many tokens it cost, as far as the server's kind
    /// is known.
    pub fn may_hide_counts(&self, kind: Option<ServerKind>) -> bool {
        let Some(request) = self.meter.as_ref().map(|meter| meter.request()) else { return false };
        let is_llama_cpp = || kind.is_none_or(|kind| kind == ServerKind::LlamaCpp);
        match self.dialect {
            _ if self.may_lack_usage || request.drops_usage => true,
            Dialect::LlamacppCompletion => request.hides_counts || !request.whole,
            Dialect::Tgi => !request.details,
            Dialect::Triton => true,
            // Streamed, it counts each answer.
            Dialect::OpenaiChat | Dialect::OpenaiCompletions => {
                request.answers > 1 && !request.streams_in_any_reading() && is_llama_cpp()
            }
            // The stream does not show to which of several answers a piece belongs: if its client leaves, they are not
            // counted.
            Dialect::OpenaiResponses => {
                request.named_answers() > 1 && self.asks_for_frames() && is_llama_cpp()
            }
            Dialect::Embeddings | Dialect::Rerank => request.is_embedding_bytes_only || !request.whole,
            Dialect::Transcription => {
                let is_counted = match kind {
                    Some(ServerKind::LlamaCpp | ServerKind::Openai | ServerKind::AzureOpenai) => true,
                    // An unstreamed answer has seconds in place of tokens, and no option can be added to a form.
                    Some(ServerKind::Vllm) => {
                        request.stream == Some(true) && request.include_usage == Some(true)
                    }
                    _ => false,
                };
                !is_counted || request.plain_transcript || !request.whole
            }
            _ => false,
        }
    }

    /// Returns true if the answer's text is worth keeping until its end, for a caller with a tokenizer for its model:
    /// the server does not count it, by what the request asks for or, if it `reports_nothing`, by its habit. The
    /// texts of several answers would be mixed, and the streams of other dialects repeat their text, or always have
    /// counts. Call it after the head of a successful response.
    pub fn wants_text(&self, kind: Option<ServerKind>, reports_nothing: bool) -> bool {
        let is_hidden = !self.is_streamed() && self.may_hide_counts(kind);
        let keeps = match self.dialect {
            Dialect::OpenaiChat
            | Dialect::OpenaiCompletions
            | Dialect::OllamaChat
            | Dialect::OllamaGenerate
            | Dialect::Triton => is_hidden || reports_nothing,
            Dialect::LlamacppCompletion | Dialect::Tgi => is_hidden,
            _ => false,
        };
        let reader = self.response.as_ref().and_then(|response| response.reader.as_ref());
        keeps
            && self.role.get().is_counted()
            && reader.is_some_and(ResponseReader::is_known)
            && self.meter.as_ref().is_some_and(|meter| meter.request().answers <= 1 && !meter.request().echo)
    }
}
