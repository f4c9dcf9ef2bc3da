//! The reader of a request body as it is forwarded: JSON, or a form with audio or images.

use std::sync::Arc;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use scan::{Casing, Dialect, Links, MultipartFields, Name, Request, RequestScanner, SelectedMembers, Tier};

use meter::ServerKind;

/// Reads one request body.
pub(crate) enum RequestReader {
    /// A JSON value.
    Json(Box<RequestScanner>),
    /// A form, with files in it.
    Form(Box<MultipartFields>),
}

impl RequestReader {
    /// A reader for a request with these fields to a server of this kind.
    pub(crate) fn new(
        dialect: Dialect,
        kind: Option<ServerKind>,
        headers: &HeaderMap,
        selected_members: Option<&Arc<SelectedMembers>>,
    ) -> Self {
        // Servers of the other dialects take only JSON, some of them under any type.
        let may_be_form = matches!(dialect, Dialect::Transcription | Dialect::Unknown);
        let form = if may_be_form { headers.get(CONTENT_TYPE) } else { None };
        match form.and_then(|value| MultipartFields::from_content_type(value.as_bytes())) {
            Some(fields) => Self::Form(Box::new(fields)),
            None => {
                let scanner = match selected_members {
                    Some(selected_members) => RequestScanner::selecting(Arc::clone(selected_members)),
                    None => RequestScanner::new(),
                };
                Self::Json(Box::new(scanner.casing(casing(kind))))
            }
        }
    }

    /// Reads the next slice.
    #[inline]
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        match self {
            Self::Json(scanner) => scanner.feed(bytes),
            Self::Form(fields) => fields.feed(bytes),
        }
    }

    /// The request's facts, once its body is over.
    pub(crate) fn end(&mut self) -> Request {
        match self {
            Self::Json(scanner) => scanner.end(),
            Self::Form(fields) => Request {
                model: fields.model().shared(),
                other_models: fields.other_models(),
                stream: fields.stream(),
                answers: 1,
                prompts: 1,
                include_usage: fields.include_usage(),
                plain_transcript: fields.plain_transcript(),
                whole: fields.is_whole(),
                ..Request::default()
            },
        }
    }

    /// The values of the wanted members; `None` of a body that has no members.
    pub(crate) fn values(&self) -> Option<&[Name]> {
        match self {
            Self::Json(scanner) => Some(scanner.selected_values()),
            Self::Form(_) => None,
        }
    }

    /// The requested service tier; empty if none.
    pub(crate) fn service_tier(&self) -> Tier {
        match self {
            Self::Json(scanner) => *scanner.service_tier(),
            Self::Form(_) => Tier::default(),
        }
    }

    /// Returns the ids by which the request continues earlier ones.
    pub(crate) fn links(&self) -> Option<Box<Links>> {
        match self {
            Self::Json(scanner) => scanner.links().map(|links| Box::new(*links)),
            Self::Form(_) => None,
        }
    }

    /// The model named so far.
    pub(crate) fn model(&self) -> Option<Arc<str>> {
        match self {
            Self::Json(scanner) => scanner.model().cloned(),
            Self::Form(fields) => fields.model().shared(),
        }
    }
}

/// The case in which a server of this kind reads the names of members.
fn casing(kind: Option<ServerKind>) -> Casing {
    match kind {
        Some(ServerKind::Ollama) => Casing::Any,
        Some(_) => Casing::Exact,
        None => Casing::Either,
    }
}
