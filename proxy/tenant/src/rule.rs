//! The rules, one variant each.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::certificate::CertificateName;
use crate::hash::KeyHash;
use crate::jwt::Jwt;
use crate::name::Name;
use crate::nets::Nets;
use crate::workload::Workload;

/// A rule: the value that it reads, and the tenant of a matching request.
#[derive(Clone, Debug)]
pub enum Rule {
    /// A claim of a verified token.
    Jwt(Jwt),
    /// Known API keys.
    ApiKeys(ApiKeys),
    /// A name in the client's certificate names the tenant.
    Certificate {
        /// The kind of name. The certificate has one of it.
        name: CertificateName,
        /// The part of the name that is the tenant.
        tenant: TenantPart,
    },
    /// The value of a header field names the tenant, if the peer is trusted.
    Header {
        /// The field's name, in lower case.
        field: Box<str>,
        /// The part of the value that is the tenant.
        tenant: TenantPart,
        /// The field that names the principal, if there is one; as trusted as the other.
        principal: Option<Box<str>>,
    },
    /// The value of a member of the body is the tenant. Clients are trusted.
    Body(BodyKey),
    /// The prefix of the path.
    Path {
        /// The prefix: `/` and segments, without a trailing `/`.
        prefix: Box<str>,
        /// The tenant of such requests.
        tenant: Name,
        /// True if the prefix is removed from the path that the upstream receives.
        strip: bool,
    },
    /// The network of the peer.
    Peer {
        /// The networks.
        nets: Nets,
        /// The tenant of such requests.
        tenant: Name,
    },
}

impl Rule {
    /// Returns the header fields that count from trusted peers only.
    pub(crate) fn trusted_only_fields(&self) -> impl Iterator<Item = &Box<str>> {
        let fields = match self {
            Self::Header { field, principal, .. } => [Some(field), principal.as_ref()],
            _ => [None, None],
        };
        fields.into_iter().flatten()
    }
}

/// The part of a value that is the tenant: of a header field, or of a name in a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TenantPart {
    /// The whole value.
    #[default]
    Value,
    /// The namespace of the workload whose identity the value has, as a mesh writes it.
    Namespace,
    /// `NAMESPACE/ACCOUNT`: the workload's namespace and service account.
    ServiceAccount,
}

impl TenantPart {
    /// Returns the tenant in `value`.
    pub(crate) fn of(self, value: &str) -> Option<Cow<'_, str>> {
        match self {
            Self::Value => Some(value.into()),
            Self::Namespace => Workload::read(value).map(|workload| workload.namespace.into()),
            Self::ServiceAccount => Workload::read(value)
                .map(|workload| format!("{}/{}", workload.namespace, workload.service_account).into()),
        }
    }
}

/// API keys by their hashes. The lookup uses a keyed hash, so neither its duration nor this table reveals a
/// key.
#[derive(Clone, Debug)]
pub struct ApiKeys {
    pub(crate) owners: Arc<HashMap<[u8; 32], Owner>>,
    /// The header fields that may contain a key, in lower case, in the order of the search.
    pub(crate) fields: Arc<[Box<str>]>,
}

/// The header fields in which servers and gateways accept an API key: OpenAI and compatible servers,
/// Anthropic, Azure, Google, and the further ones of LiteLLM.
pub const KEY_FIELDS: [&str; 6] = [
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-litellm-api-key",
    "ocp-apim-subscription-key",
];

/// The owner of an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The paying tenant.
    pub tenant: Name,
    /// The key's own name, if it has one.
    pub principal: Option<Name>,
}

impl ApiKeys {
    /// The keys by their hashes, in the fields [`KEY_FIELDS`]; the last of two equal keys counts.
    pub fn new(keys: impl IntoIterator<Item = (KeyHash, Owner)>) -> Self {
        let owners = keys.into_iter().map(|(key, owner)| (key.hash, owner)).collect();
        Self { owners: Arc::new(owners), fields: KEY_FIELDS.map(Box::from).into() }
    }

    /// The same keys in these header fields, in lower case.
    #[must_use]
    pub fn in_fields(self, fields: impl IntoIterator<Item = Box<str>>) -> Self {
        Self { fields: fields.into_iter().collect(), ..self }
    }

    /// The owners; an owner of several keys occurs several times.
    pub fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.owners.values()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Returns true if there are no keys.
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

/// Maximum distinct members of a body that rules and end users read together: the scanner of requests selects no more
/// (OpenAI allows 16 keys of `metadata`).
pub const MAX_BODY_KEYS: usize = 32;

/// The place of the end user's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndUser {
    /// In the body.
    Body(BodyKey),
    /// In a header field of a trusted peer, its name in lower case.
    Header(Box<str>),
}
