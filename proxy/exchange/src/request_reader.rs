//! The reader of a request body as it is forwarded: JSON, or a form with audio or images.

use std::sync::Arc;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use scan::{Casing, Dialect, Links, MultipartFields, Name, Request, RequestScanner, SelectedMembers, Tier};

use meter::ServerKind;

use crate::form_names::FormNames;

/// Reads one request body.
pub(crate) enum RequestReader {
    /// A JSON value.
    Json(Box<RequestScanner>),
    /// A JSON value that says to be a form.
    JsonOrForm(Box<(RequestScanner, FormNames)>),
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
        let types = headers.get_all(CONTENT_TYPE);
        let mut each = types.iter();
        // Of two types, some servers take the first and some the last.
        let form = each.next().filter(|_| may_be_form && each.next().is_none());
        match form.and_then(|value| MultipartFields::from_content_type(value.as_bytes())) {
            Some(fields) => Self::Form(Box::new(fields)),
            None => {
                // It is large: it moves once.
                let mut scanner = Box::new(match selected_members {
                    Some(selected_members) => RequestScanner::selecting(Arc::clone(selected_members)),
                    None => RequestScanner::new(),
                });
                scanner.set_casing(casing(kind));
                match FormNames::of(&types) {
                    Some(names) => Self::JsonOrForm(Box::new((*scanner, names))),
                    None => Self::Json(scanner),
                }
            }
        }
    }

    /// Reads the next slice.
    #[inline]
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        match self {
            Self::Json(scanner) => scanner.feed(bytes),
            Self::JsonOrForm(both) => {
                both.0.feed(bytes);
                both.1.feed(bytes);
            }
            Self::Form(fields) => fields.feed(bytes),
        }
    }

    /// The request's facts, once its body is over.
    pub(crate) fn end(&mut self) -> Request {
        match self {
            Self::Json(scanner) => scanner.end(),
            Self::JsonOrForm(both) => {
                let request = both.0.end();
                Request { whole: request.whole && !both.1.names_model(), ..request }
            }
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
        self.scanner().map(RequestScanner::selected_values)
    }

    /// The requested service tier; empty if none.
    pub(crate) fn service_tier(&self) -> Tier {
        self.scanner().map(|scanner| *scanner.service_tier()).unwrap_or_default()
    }

    /// Returns the ids by which the request continues earlier ones.
    pub(crate) fn links(&self) -> Option<Box<Links>> {
        self.scanner()?.links().map(|links| Box::new(*links))
    }

    /// The model named so far.
    pub(crate) fn model(&self) -> Option<Arc<str>> {
        match self {
            Self::Form(fields) => fields.model().shared(),
            Self::Json(_) | Self::JsonOrForm(_) => self.scanner()?.model().cloned(),
        }
    }

    fn scanner(&self) -> Option<&RequestScanner> {
        match self {
            Self::Json(scanner) => Some(scanner),
            Self::JsonOrForm(both) => Some(&both.0),
            Self::Form(_) => None,
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
