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
#[derive(Clone, Debug, Default)]
pub struct ApiKeys(pub(crate) Arc<HashMap<[u8; 32], Owner>>);

/// Whose an API key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Who pays.
    pub tenant: Name,
    /// The key's own name, if it has one.
    pub principal: Option<Name>,
}

impl ApiKeys {
    /// The keys by their hashes; of two the same, the later.
    pub fn new(keys: impl IntoIterator<Item = (KeyHash, Owner)>) -> Self {
        Self(Arc::new(keys.into_iter().map(|(key, owner)| (key.hash, owner)).collect()))
    }

    /// Whose they are; one that has several keys comes several times.
    pub fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.0.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
