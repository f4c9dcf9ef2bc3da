//! The facts of an exchange from its request head.

use meter::TokenType;
use scan::Name;

use crate::fingerprint::fingerprint;
use crate::path::{plain, slashed, unescaped};
use crate::route::Speaks;

/// The facts of an exchange from its request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The dialect, as far as the head determines it.
    pub speaks: Speaks,
    /// The model, if the path names it; else empty.
    pub model: Name,
    /// The weight of that name.
    pub model_in_path: ModelInPath,
    /// The type of the tokens that the endpoint generates, if it generates no text.
    pub generates: Option<TokenType>,
}

impl Route {
    /// A route to an endpoint of text whose path names no model.
    pub fn new(speaks: Speaks) -> Self {
        Self { speaks, model: Name::default(), model_in_path: ModelInPath::Absent, generates: None }
    }

    /// Returns the fingerprint of the endpoint at `path`: the same for each of its spellings.
    pub fn endpoint(&self, path: &str) -> u64 {
        match self.speaks {
            Speaks::Anything => {
                let plain = slashed(path).unwrap_or_else(|| plain(path).into_owned());
                fingerprint(&plain.to_ascii_lowercase())
            }
            speaks => fingerprint(speaks.expected().name()),
        }
    }

    /// A route to an endpoint of text whose path names the model. Servers unescape the name.
    pub(crate) fn naming(speaks: Speaks, model: &str, model_in_path: ModelInPath) -> Self {
        Self { model: Name::cut(&unescaped(model)), model_in_path, ..Self::new(speaks) }
    }
}

/// The weight of a model's name in the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelInPath {
    /// There is none: another place names the model.
    Absent,
    /// One of several names that the server may use.
    Mount,
    /// The API takes the model from the path, but a gateway may take another name.
    Api,
    /// The server, whose kind is known, takes no other.
    Alone,
}

/// The endpoints that generate no text: usages of some of them count tokens without saying of what.
const GENERATES: [(&str, TokenType); 5] = [
    ("/audio/speech", TokenType::OutputAudio),
    ("/images/generations", TokenType::OutputImage),
    ("/images/edits", TokenType::OutputImage),
    ("/images/variations", TokenType::OutputImage),
    ("/videos", TokenType::OutputVideo),
];

/// Returns the type of the tokens of an endpoint whose path has this end; `None` for text.
pub(crate) fn generated_type(has_end: impl Fn(&str) -> bool) -> Option<TokenType> {
    GENERATES.iter().find(|(end, _)| has_end(end)).map(|(_, kind)| *kind)
}
