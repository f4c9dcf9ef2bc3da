//! The facts of a request that are asked for before it goes upstream, and its end if it is refused there.

use std::sync::Arc;

use exchange::names::recorded;
use exchange::route::Speaks;
use scan::Dialect;

use super::Exchange;
use crate::rejection::Known;
use crate::request::tenant::resolve_by_body;
use crate::{Refusal, ServerKind, clock};

impl Exchange {
    /// The JSON shape spoken, as far as it is known.
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the tenant, if it is known by now.
    pub(crate) fn tenant(&self) -> Option<&Arc<str>> {
        self.tenant.tenant()
    }

    /// The model it names, if that was read by now.
    pub(crate) fn model(&self) -> Option<&str> {
        self.models().next()
    }

    /// The models it may name: two where the server's kind decides between two readings, and is not known.
    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        self.model.names()
    }

    /// Returns true if the request was read to its end, and it is certain which model it names, if any.
    pub(crate) fn is_readable(&self) -> bool {
        self.model.is_certain()
    }

    /// Returns true if its path is unknown.
    pub(crate) fn is_of_unknown_path(&self) -> bool {
        matches!(self.speaks, Speaks::Anything | Speaks::Shape)
    }

    /// Returns true if the dialect depends on the body.
    pub(crate) fn is_decided_by_body(&self) -> bool {
        self.speaks.is_decided_by_body()
    }

    /// Lets the shape of the body decide the dialect, where the path is unknown.
    pub(crate) fn read_by_shape(&mut self) {
        if self.speaks == Speaks::Anything {
            self.speaks = Speaks::Shape;
        }
    }

    /// Returns true if the client asked for usage at the end of its stream.
    pub(crate) fn asks_for_usage(&self) -> bool {
        self.meter.as_ref().is_some_and(|meter| meter.request().include_usage == Some(true))
    }

    /// Returns the names of its provider and its upstream.
    pub(crate) fn place(&self) -> (Arc<str>, Arc<str>) {
        let upstream = &self.worker.plan.upstreams[self.upstream];
        let provider = match (upstream.kind, self.profile().found_kind()) {
            (None, Some(found)) => found.name().into(),
            _ => Arc::clone(&upstream.provider),
        };
        (provider, Arc::clone(&upstream.name))
    }

    /// Settles the tenant without the body.
    pub(crate) fn tenant_unread(&mut self) {
        resolve_by_body(&self.worker, &mut self.tenant);
    }

    /// Returns true if the request asks for a response in the background, as far as it was read.
    pub(crate) fn asks_background(&self) -> bool {
        self.meter.as_ref().is_some_and(|meter| meter.request().background)
    }

    /// Returns true if the request asks for frames, as far as it could be read.
    pub(crate) fn asks_for_frames(&self) -> bool {
        self.meter.as_ref().is_some_and(|meter| {
            let request = meter.request();
            request.stream == Some(true) || !request.whole
        })
    }

    /// Returns true if the answer to such a request does not say how many tokens it cost, or may not, as far as the
    /// server's kind is known.
    pub(crate) fn may_hide_counts(&self) -> bool {
        let Some(request) = self.meter.as_ref().map(|meter| meter.request()) else { return false };
        let is_llama_cpp = || self.kind().is_none_or(|kind| kind == ServerKind::LlamaCpp);
        match self.dialect {
            Dialect::LlamacppCompletion => request.hides_counts || !request.whole,
            Dialect::Tgi => !request.details,
            Dialect::Triton => true,
            // Streamed, it counts each answer.
            Dialect::OpenaiChat | Dialect::OpenaiCompletions => {
                request.answers > 1 && !request.streams_in_any_reading() && is_llama_cpp()
            }
            // The pieces of several answers in one stream are not told apart, so one that is left is not counted.
            Dialect::OpenaiResponses => {
                request.named_answers() > 1 && self.asks_for_frames() && is_llama_cpp()
            }
            Dialect::Embeddings | Dialect::Rerank => request.is_embedding_bytes_only || !request.whole,
            Dialect::Transcription => {
                let is_counted = match self.kind() {
                    Some(ServerKind::LlamaCpp | ServerKind::Openai) => true,
                    // Unstreamed, it counts seconds. Nothing can be asked for in a form.
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

    /// Its tenant may not spend, or not on this model. Nothing went upstream and nothing was generated, so
    /// there is no record that could be billed; the refusal is counted, and told to whom it may concern.
    pub(crate) fn refused(&mut self, reason: Refusal, status: u16) {
        self.dismiss(clock::now());
        let Some(tenant) = self.tenant.tenant() else { return };
        self.worker.observer.borrow_mut().reject(tenant, reason);
        let known = Known {
            tenant: Arc::clone(tenant),
            principal: self.tenant.principal().cloned(),
            dialect: self.dialect,
            model: self.model().map(|model| recorded(model).into()),
        };
        self.worker.report_rejection(self.upstream, (reason, status), Some(known));
    }
}
