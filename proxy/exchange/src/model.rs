//! The model that a request asks for.

use std::sync::Arc;

use scan::Name;

/// The model of a request, as far as it is known.
pub(crate) struct RequestedModel {
    /// Its name; `None` if there is none, or none has been read yet.
    pub(crate) name: Option<Arc<str>>,
    /// The name by the other of two readings of the body, if there is another.
    other: Option<Arc<str>>,
    source: Source,
}

/// The source of the name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The path: a model that the body names is not the one that answers.
    Path,
    /// A body that was read to its end, and names one model or none for certain.
    Body,
    /// A body that was not read to its end, or cannot be read for certain.
    Uncertain,
}

impl RequestedModel {
    /// The model that the path names; empty if the body names it.
    pub(crate) fn in_path(name: Name) -> Self {
        let source = if name.is_empty() { Source::Uncertain } else { Source::Path };
        Self { name: name.shared(), other: None, source }
    }

    /// Takes the names of a body by two readings, unless the path names the model.
    pub(crate) fn settle(&mut self, name: Option<Arc<str>>, other: Name, is_certain: bool) {
        if self.source != Source::Path {
            let source = if is_certain { Source::Body } else { Source::Uncertain };
            *self = Self { name, other: other.shared(), source };
        }
    }

    /// Returns true if the name, or that there is none, is certain.
    pub(crate) fn is_certain(&self) -> bool {
        self.source != Source::Uncertain
    }

    /// The names that it may have.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.name, &self.other].into_iter().flatten().map(|name| &**name)
    }

    /// Returns true if the answer names the model by the other reading: that was the server's.
    pub(crate) fn is_other(&self, answered: &Option<Arc<str>>) -> bool {
        self.other.is_some() && *answered == self.other
    }
}
