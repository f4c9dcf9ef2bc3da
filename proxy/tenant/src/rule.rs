//! The rules there are, one variant each.

use std::collections::HashMap;
use std::sync::Arc;

use crate::hash::KeyHash;
use crate::jwt::Jwt;
use crate::name::Name;
use crate::nets::Nets;

/// A rule: what it looks at, and whose a request is that has it.
#[derive(Clone, Debug)]
pub enum Rule {
    /// A claim of a verified token.
    Jwt(Jwt),
    /// Known API keys.
    ApiKeys(ApiKeys),
    /// The value of a header field is the tenant, if the peer is trusted.
    Header {
        /// The field's name, in lower case.
        field: Box<str>,
        /// The field that names the principal, if there is one; as trusted as the other.
        principal: Option<Box<str>>,
    },
    /// The value of a member of the body is the tenant. Clients are believed.
    Body(BodyKey),
    /// How the path begins.
    Path {
        /// The beginning: `/` and segments, without `/` at its end.
        prefix: Box<str>,
        /// Whose such requests are.
        tenant: Name,
        /// Whether the upstream is spared the beginning.
        strip: bool,
    },
    /// Where the connection came from.
    Peer {
        /// From one of these.
        nets: Nets,
        /// Whose such requests are.
        tenant: Name,
    },
}

impl Rule {
    /// The fields whose word only a trusted peer's is taken for.
    pub(crate) fn spoofable(&self) -> impl Iterator<Item = &Box<str>> {
        let fields = match self {
            Self::Header { field, principal } => [Some(field), principal.as_ref()],
            _ => [None, None],
        };
        fields.into_iter().flatten()
    }
}

/// API keys by their hashes: what is looked up is a keyed hash, so that neither the time it takes
/// nor this table tells a key.
#[derive(Clone, Debug)]
pub struct ApiKeys {
    pub(crate) owners: Arc<HashMap<[u8; 32], Owner>>,
    /// Names of the header fields that may hold a key, in lower case, in the order they are tried.
    pub(crate) fields: Arc<[Box<str>]>,
}

/// The header fields in which servers and gateways take an API key: OpenAI and all who speak like it, Anthropic,
/// Azure, Google, and those that LiteLLM takes besides.
pub const KEY_FIELDS: [&str; 6] = [
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-litellm-api-key",
    "ocp-apim-subscription-key",
];

/// Whose an API key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Who pays.
    pub tenant: Name,
    /// The key's own name, if it has one.
    pub principal: Option<Name>,
}

impl ApiKeys {
    /// The keys by their hashes, in the fields [`KEY_FIELDS`]; of two the same, the later.
    pub fn new(keys: impl IntoIterator<Item = (KeyHash, Owner)>) -> Self {
        let owners = keys.into_iter().map(|(key, owner)| (key.hash, owner)).collect();
        Self { owners: Arc::new(owners), fields: KEY_FIELDS.map(Box::from).into() }
    }

    /// The same keys in these header fields, whose names are in lower case.
    #[must_use]
    pub fn in_fields(self, fields: impl IntoIterator<Item = Box<str>>) -> Self {
        Self { fields: fields.into_iter().collect(), ..self }
    }

    /// Whose they are; one that has several keys comes several times.
    pub fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.owners.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }
}

/// A member of a request's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyKey {
    /// `user`.
    User,
    /// `safety_identifier`.
    SafetyIdentifier,
    /// A member of `metadata`.
    Metadata(Box<str>),
}

/// Where an end user is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndUser {
    /// In the body.
    Body(BodyKey),
    /// In a header field of a trusted peer, its name in lower case.
    Header(Box<str>),
}
