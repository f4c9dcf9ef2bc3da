//! The model that a request asks for. Servers differ in the place from which they take it: the path, the query, a header,
//! or a member of the body. Where several places name one, each name may be the one that is used.

use std::sync::Arc;

use scan::{Name, OtherModels};

use crate::found_route::ModelInPath;

/// The model of a request, as far as it is known.
pub(crate) struct RequestedModel {
    /// Its name: that of the path, else of the body, at the end else of the answer or of another place. `None` if there is
    /// none, or none has been read yet.
    pub(crate) name: Option<Arc<str>>,
    /// Further names that the server may use. Boxed, since few requests have one.
    others: Option<Box<OtherModels>>,
    path: ModelInPath,
    /// True if the body was read to its end, and names one model or none for certain.
    is_body_certain: bool,
}

impl RequestedModel {
    /// The model that the path names; empty if the body names it.
    pub(crate) fn in_path(name: Name, path: ModelInPath) -> Self {
        Self { name: name.shared(), others: None, path, is_body_certain: false }
    }

    /// Adds names of the request's head.
    pub(crate) fn add(&mut self, others: OtherModels) {
        if self.path != ModelInPath::Alone && others != OtherModels::default() {
            self.others.get_or_insert_default().merge(&others);
        }
    }

    /// Takes the names of a body, unless the path alone names the model.
    pub(crate) fn settle(
        &mut self,
        name: Option<Arc<str>>,
        others: Option<Box<OtherModels>>,
        is_certain: bool,
    ) {
        if self.path == ModelInPath::Alone {
            return;
        }
        self.is_body_certain = is_certain;
        match &mut self.others {
            Some(mine) => others.iter().for_each(|others| mine.merge(others)),
            None => self.others = others,
        }
        match (&self.name, name) {
            // Gemini's bodies repeat the model of the path as a resource.
            (Some(mine), Some(name)) if name.strip_prefix("models/").unwrap_or(&name) != &**mine => {
                self.others.get_or_insert_default().add(name.as_bytes());
            }
            (Some(_), _) => {}
            (None, name) => self.name = name,
        }
    }

    /// Returns true if the names, or that there is none, are certain.
    pub(crate) fn is_certain(&self) -> bool {
        let is_complete = self.others.as_ref().is_none_or(|others| others.is_complete());
        is_complete && (self.is_body_certain || matches!(self.path, ModelInPath::Alone | ModelInPath::Api))
    }

    /// The names that it may have.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.others.iter().flat_map(|others| others.names());
        self.name.iter().chain(others).map(|name| &**name)
    }

    /// Takes the names that it may have beside its first one.
    pub(crate) fn take_others(&mut self) -> Box<[Arc<str>]> {
        let Some(others) = self.others.take() else { return Box::default() };
        others.names().iter().filter(|name| self.name.as_ref() != Some(name)).cloned().collect()
    }

    /// Takes the model that the answer names: if it is one of the further names, that was the server's reading. Returns
    /// true if the first name changes.
    pub(crate) fn answered(&mut self, answered: &Option<Arc<str>>) -> bool {
        let name = match (&self.name, answered) {
            (None, None) => self.others.as_ref().and_then(|others| others.names().first()),
            (None, Some(answered)) => Some(answered),
            (Some(_), Some(answered)) => {
                Some(answered).filter(|answered| self.names().any(|name| *name == ***answered))
            }
            (Some(_), None) => None,
        };
        let Some(name) = name.filter(|name| self.name.as_ref() != Some(name)).cloned() else { return false };
        if let (Some(before), Some(others)) = (self.name.replace(name), &mut self.others) {
            others.add(before.as_bytes());
        }
        true
    }
}
