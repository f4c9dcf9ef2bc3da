//! Why a rule did not hit, in words: what the request lacks, or what of it is not believed, and what
//! to do where that is not plain. Nothing of a key or a token is repeated (law 11).

use tenant::{Distrust, Miss, Rule};

use super::words::member;

/// A rule's kind, and why it did not hit.
pub(super) fn in_words(rule: &Rule, miss: Miss) -> String {
    match (rule, miss) {
        (Rule::Jwt(jwt), Miss::Token(why)) => {
            let list = |texts: &[Box<str>]| texts.join(" or ");
            match why {
                Distrust::Malformed => "jwt: the token is none that is read".to_owned(),
                Distrust::Algorithm => "jwt: the token's algorithm is not among `algorithms`".to_owned(),
                Distrust::UnknownKey if jwt.keys.is_empty() => {
                    format!("jwt: there are no keys of {} to check the token with", shown(&jwt.source))
                }
                Distrust::UnknownKey => {
                    format!("jwt: the token's key id is none of those in {}", shown(&jwt.source))
                }
                Distrust::Signature => {
                    format!("jwt: no key of {} made the token's signature", shown(&jwt.source))
                }
                Distrust::Issuer => format!("jwt: the token's `iss` is not {}", list(&jwt.issuers)),
                Distrust::Audience => format!("jwt: the token's `aud` is not {}", list(&jwt.audiences)),
                Distrust::Times => "jwt: the token has no `exp`, or a time in it is no number".to_owned(),
                Distrust::Tenant => {
                    format!(
                        "jwt: the token's claim `{}` is not there, or no name",
                        jwt.tenant.0.join("` → `")
                    )
                }
                Distrust::Early => "jwt: the token is not good yet (`nbf`)".to_owned(),
                Distrust::Expired => "jwt: the token is expired (`exp`)".to_owned(),
            }
        }
        (Rule::Jwt(jwt), _) => {
            let place = jwt.field.as_deref().unwrap_or("authorization");
            format!("jwt: no token is in `{place}`")
        }
        (Rule::ApiKeys(_), Miss::UnknownKey) => {
            "api_key: the key is none of those listed (hashed with this hash key file)".to_owned()
        }
        (Rule::ApiKeys(_), _) => "api_key: no key is in the request".to_owned(),
        (Rule::Header { field, .. }, Miss::Untrusted) => {
            format!("header: `{field}` is there, but the peer is not one of `trusted_peers`")
        }
        (Rule::Header { field, .. }, Miss::Repeated) => {
            format!("header: `{field}` is there more than once, so that nobody can tell whose it is")
        }
        (Rule::Header { field, .. }, Miss::InvalidName) => format!("header: what is in `{field}` is no name"),
        (Rule::Header { field, .. }, _) => format!("header: there is no `{field}`"),
        (Rule::Body(key), Miss::BodyUnread) => {
            format!("body: no body was read for `{}`; then no rule after it is asked", member(key))
        }
        (Rule::Body(key), Miss::InvalidName) => format!("body: what is in `{}` is no name", member(key)),
        (Rule::Body(key), _) => format!("body: there is no text in `{}`", member(key)),
        (Rule::Path { prefix, .. }, _) => format!("path: it does not begin with {prefix}"),
        (Rule::Peer { nets, .. }, _) => {
            format!("peer: its address is not in {}", nets.texts().collect::<Vec<_>>().join(", "))
        }
    }
}

/// A source of keys, without a query, which may hold a secret.
fn shown(source: &str) -> &str {
    match source.contains("://") {
        true => source.split(['?', '#']).next().unwrap_or_default(),
        false => source,
    }
}
