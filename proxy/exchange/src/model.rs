//! The model that a request asks for.

use scan::Name;

/// The model of a request, as far as it is known.
pub(crate) struct RequestedModel {
    /// Its name; empty if there is none, or none was read by now.
    pub(crate) name: Name,
    /// The name by the other of two readings of the body; empty if there is no other.
    other: Name,
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
        Self { name, other: Name::default(), source }
    }

    /// Takes the names of a body by two readings, unless the path names the model.
    pub(crate) fn settle(&mut self, name: Name, other: Name, is_certain: bool) {
        if self.source != Source::Path {
            let source = if is_certain { Source::Body } else { Source::Uncertain };
            *self = Self { name, other, source };
        }
    }

    /// Returns true if the name, or that there is none, is certain.
    pub(crate) fn is_certain(&self) -> bool {
        self.source != Source::Uncertain
    }

    /// The names that it may have.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.name, &self.other].into_iter().map(Name::as_str).filter(|name| !name.is_empty())
    }

    /// Returns true if the answer names the model by the other reading: that was the server's.
    pub(crate) fn is_other(&self, answered: &Name) -> bool {
        !self.other.is_empty() && *answered == self.other
    }
}
