//! A server's reading of member names. Go's `encoding/json`, in Ollama, accepts `MODEL` for `model`, and the
//! last of both; all other servers ignore it. A request with such a member has two readings, and the kind of
//! server decides. For an unknown server, a flag counts if either reading sets it.

use super::{Facts, OtherModels, Request};
use crate::field::{Field, Fields};
use crate::json::{End, Value, Visit};

/// A server's reading of member names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Casing {
    /// Exact names.
    Exact,
    /// Any letter case: Ollama.
    Any,
    /// One or the other: an unknown server.
    #[default]
    Either,
}

/// Both readings of a request. The second exists once they differ.
pub(super) struct Readings<'a> {
    pub(super) fields: &'a Fields,
    pub(super) casing: Casing,
    pub(super) exact: &'a mut Facts,
    pub(super) cased: &'a mut Option<Box<Facts>>,
}

impl Visit for Readings<'_> {
    fn value(&mut self, field: Field, value: Value<'_>, _span: Option<(usize, usize)>) {
        match field {
            Field::Cased(_) if self.casing == Casing::Exact => {}
            Field::Cased(place) => {
                let exact = &*self.exact;
                let cased = self.cased.get_or_insert_with(|| Box::new(exact.clone()));
                cased.take(self.fields.cased(place), value);
            }
            field => {
                self.exact.take(field, value);
                if let Some(cased) = self.cased {
                    cased.take(field, value);
                }
            }
        }
    }

    fn close(&mut self, _field: Field, _items: u32) {}
}

impl Casing {
    /// Returns the request of the reading that applies.
    pub(super) fn request(self, exact: &Facts, cased: Option<&Facts>, end: End) -> Request {
        let mut request = exact.request(end);
        if let (Self::Either, Some(first)) = (self, &exact.first_model) {
            // Most parsers take the last of two members, some the first.
            request.other_models.get_or_insert_default().add(first.as_bytes());
        }
        let Some(cased) = cased.map(|facts| facts.request(end)) else { return request };
        match self {
            Self::Exact => request,
            Self::Any => cased,
            Self::Either => Request {
                other_models: Self::both(request.other_models, &cased),
                model: request.model.or(cased.model),
                is_model_invalid: request.is_model_invalid || cased.is_model_invalid,
                stream: match cased.stream {
                    Some(true) => cased.stream,
                    stream => request.stream.or(stream),
                },
                is_stream_invalid: request.is_stream_invalid
                    || cased.is_stream_invalid
                    || request.stream != cased.stream,
                stream_options: request.stream_options || cased.stream_options,
                background: request.background || cased.background,
                detached: request.detached || cased.detached,
                shape: request.shape.or(cased.shape),
                ..request
            },
        }
    }

    /// Returns the further models of both readings, of which one has `others`.
    fn both(others: Option<Box<OtherModels>>, cased: &Request) -> Option<Box<OtherModels>> {
        let mut all = others.unwrap_or_default();
        cased.model.iter().for_each(|model| all.add(model.as_bytes()));
        cased.other_models.iter().for_each(|others| all.merge(others));
        Some(all)
    }
}
