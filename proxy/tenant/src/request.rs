//! The facts of a request that the rules read, and the tenant that they determine.

use std::net::IpAddr;
use std::sync::Arc;

use meter::RuleKind;

use crate::certificate::CertificateNames;
use crate::rule::BodyKey;

/// The head of a request, as far as the rules read it.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// The peer of the connection, never an address that a header claims.
    pub peer: IpAddr,
    /// The names in the client's verified certificate, if it presented one.
    pub certificate: Option<&'a CertificateNames>,
    /// The path as received, without the query.
    pub path: &'a str,
    /// Returns a value of a header field by its name in lower case and its index among the values of that
    /// name. `None` beyond the last.
    pub field: &'a dyn Fn(&str, usize) -> Option<&'a [u8]>,
    /// The current time in seconds since 1970, from the caller's clock (law 8).
    pub now_unix_s: u64,
}

/// The members of a request's body that the rules read ([`Rules::body_keys`]). Values are JSON strings,
/// unescaped; a value that is not a string, or is too long for a name, is absent.
///
/// [`Rules::body_keys`]: crate::Rules::body_keys
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyFacts<'a> {
    /// `user`, at the top level.
    pub user: Option<&'a [u8]>,
    /// `safety_identifier`, at the top level.
    pub safety_identifier: Option<&'a [u8]>,
    /// Members of `metadata`, by key; `user_id` of Anthropic's requests is one.
    pub metadata: &'a [(&'a str, &'a [u8])],
}

impl<'a> Head<'a> {
    /// Returns the text of a field that occurs once. With several, the one from a trusted peer is unknown: a
    /// proxy that appends to a client's header must not be taken for one that replaces it.
    pub(crate) fn text(&self, field: &str) -> Option<&'a str> {
        let only = (self.field)(field, 0)?;
        if (self.field)(field, 1).is_some() {
            return None;
        }
        std::str::from_utf8(only).ok()
    }

    /// Returns all values of a field, trimmed. A credential proves itself, so each value counts: a repeated
    /// one reaches the upstream repeated, and is valid there.
    pub(crate) fn each<'n>(&self, field: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let values = self.field;
        (0..).map_while(move |at| values(field, at)).map(<[u8]>::trim_ascii)
    }

    /// Returns the credentials with the scheme `Bearer`.
    pub(crate) fn bearers(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.each("authorization").filter_map(|value| {
            let (scheme, token) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
        })
    }
}

impl<'a> BodyFacts<'a> {
    pub(crate) fn text(&self, key: &BodyKey) -> Option<&'a str> {
        let value = match key {
            BodyKey::User => self.user,
            BodyKey::SafetyIdentifier => self.safety_identifier,
            BodyKey::Metadata(key) => {
                self.metadata.iter().find(|(name, _)| **name == **key).map(|(_, value)| *value)
            }
        };
        std::str::from_utf8(value?).ok()
    }
}

/// The result of the rules for a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The tenant and all names are determined.
    Resolved(TenantIdentity),
    /// A rule on the body comes first, or the end user is named there: pass this to
    /// [`Rules::body`](crate::Rules::body) with the facts of the body.
    NeedsBody(PendingTenant),
}

/// The result for the head, until the body has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingTenant {
    /// Body rules before this index of the list come first.
    pub(crate) until: usize,
    /// End users before this index of their list come first.
    pub(crate) consumer_until: usize,
    /// The result if the body names none.
    pub(crate) otherwise: TenantIdentity,
    /// The result if the body cannot be read.
    pub(crate) unread: TenantIdentity,
    /// True if only the end user is still open.
    pub(crate) decided: bool,
}

impl PendingTenant {
    /// The tenant, if the body can only add the end user: its budget can be checked at once.
    pub fn tenant(&self) -> Option<&Arc<str>> {
        self.decided.then_some(&self.otherwise.tenant)
    }

    /// The result if the body is not read, because it is too long or no JSON: the default tenant where a
    /// body rule comes first. A later rule must not apply, or a client could choose its tenant by the length
    /// of its body.
    pub fn unread(self) -> TenantIdentity {
        self.unread
    }
}

/// The identity of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantIdentity {
    /// The paying tenant. Never empty.
    pub tenant: Arc<str>,
    /// The principal within the tenant: an API key's name, or a claim, hashed unless configured as plain.
    pub principal: Option<Arc<str>>,
    /// The end user, hashed unless configured as plain.
    pub consumer: Option<Arc<str>>,
    /// The kind of rule that determined the tenant.
    pub rule: RuleKind,
}
