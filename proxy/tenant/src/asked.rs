//! What a request says of itself, and what the rules say of it. Borrowed in, shared text out.

use std::net::IpAddr;
use std::sync::Arc;

use crate::rule::BodyKey;

/// A request's head, as far as the rules look at it.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// Who connected to us: the other end of the connection, never what a header claims.
    pub peer: IpAddr,
    /// The path, without the query, as it came.
    pub path: &'a str,
    /// A value of a header field, asked by its name in lower case and its place among the values of
    /// that name, from 0 on. `None` if there are not so many.
    pub field: &'a dyn Fn(&str, usize) -> Option<&'a [u8]>,
    /// Now, in seconds since 1970: the clock is the caller's (law 8).
    pub now_unix_s: u64,
}

/// What a request's body says, as far as the rules may ask ([`Rules::wanted`]). Values are JSON
/// strings, unescaped; what is no string, or too long to be a name, is `None` or not there.
///
/// [`Rules::wanted`]: crate::Rules::wanted
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyFacts<'a> {
    /// `user`, at the top.
    pub user: Option<&'a [u8]>,
    /// `safety_identifier`, at the top.
    pub safety_identifier: Option<&'a [u8]>,
    /// Members of `metadata`, by their key; `user_id` of Anthropic's requests is one.
    pub metadata: &'a [(&'a str, &'a [u8])],
}

impl<'a> Head<'a> {
    /// The text of a field that is there once: of several nobody can tell which a trusted peer wrote,
    /// and a proxy that appends to what a client sent must not be taken for one that replaced it.
    pub(crate) fn text(&self, field: &str) -> Option<&'a str> {
        let only = (self.field)(field, 0)?;
        if (self.field)(field, 1).is_some() {
            return None;
        }
        std::str::from_utf8(only).ok()
    }

    /// All values of a field, without spaces around them. A credential proves itself, so each counts:
    /// one that is sent twice goes upstream twice, and is good there.
    pub(crate) fn each<'n>(&self, field: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let values = self.field;
        (0..).map_while(move |at| values(field, at)).map(<[u8]>::trim_ascii)
    }

    /// Whatever is given with the scheme `Bearer`.
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

/// What the head comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Everything is decided.
    Is(Who),
    /// A rule that asks the body comes first, or the end user is named there: hand this back to
    /// [`Rules::body`](crate::Rules::body) with what the body said.
    AskBody(Pending),
}

/// What the head decided, as long as the body has not been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Body rules before this place in the list come first.
    pub(crate) until: usize,
    /// Places before this one of the list of end users come first.
    pub(crate) consumer_until: usize,
    /// Whose it is if the body says nothing.
    pub(crate) otherwise: Who,
    /// Whose it is if the body cannot be read.
    pub(crate) unread: Who,
    /// Whether only the end user is still to be asked for.
    pub(crate) decided: bool,
}

impl Pending {
    /// The tenant, if the body can only add the end user: a budget can be asked at once.
    pub fn tenant(&self) -> Option<&Arc<str>> {
        self.decided.then_some(&self.otherwise.tenant)
    }

    /// Whose it is if the body is not read, because it is too long or no JSON: the default tenant
    /// where a body rule would have come first, since guessing on would let a client choose its
    /// tenant by the length of what it sends.
    pub fn unread(self) -> Who {
        self.unread
    }
}

/// Whose a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Who pays. Never empty.
    pub tenant: Arc<str>,
    /// On whose behalf within the tenant: an API key's name, or a claim, hashed unless told otherwise.
    pub principal: Option<Arc<str>>,
    /// The end user, hashed unless told otherwise.
    pub consumer: Option<Arc<str>>,
    /// Which kind of rule decided the tenant.
    pub rule: RuleKind,
}

/// The kinds of rules, in the order of the metric's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleKind {
    /// A claim of a token whose signature was verified.
    Jwt,
    /// A known API key.
    ApiKey,
    /// A header field from a trusted peer.
    Header,
    /// A member of the body.
    Body,
    /// How the path begins.
    Path,
    /// Where the connection came from.
    Peer,
    /// No rule.
    Default,
}

impl RuleKind {
    /// All, in the order of their indices.
    pub const ALL: [Self; 7] =
        [Self::Jwt, Self::ApiKey, Self::Header, Self::Body, Self::Path, Self::Peer, Self::Default];

    /// Its name as a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jwt => "jwt",
            Self::ApiKey => "api_key",
            Self::Header => "header",
            Self::Body => "body",
            Self::Path => "path",
            Self::Peer => "peer",
            Self::Default => "default",
        }
    }

    /// Its place in [`RuleKind::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}
