//! Describes why a rule does not match: the part that the request lacks or that is not trusted. The text repeats
//! nothing of a key or a token (law 11).

use tenant::{Miss, Rule, TenantPart, TokenRejection};

use super::describe::member;

/// Returns the rule's kind and the reason why it does not match.
pub(super) fn reason(rule: &Rule, miss: Miss) -> String {
    match (rule, miss) {
        (Rule::Jwt(jwt), Miss::Token(why)) => {
            let list = |texts: &[Box<str>]| texts.join(" or ");
            match why {
                TokenRejection::Malformed => {
                    "jwt: the token is malformed or of an unsupported form".to_owned()
                }
                TokenRejection::Algorithm => {
                    "jwt: the token's algorithm is not among `algorithms`".to_owned()
                }
                TokenRejection::UnknownKey if jwt.keys.is_empty() => {
                    format!("jwt: there are no keys of {} to check the token with", shown(&jwt.source))
                }
                TokenRejection::UnknownKey => {
                    format!("jwt: the token's key id is not in {}", shown(&jwt.source))
                }
                TokenRejection::Signature => {
                    format!("jwt: the token's signature matches no key of {}", shown(&jwt.source))
                }
                TokenRejection::Issuer => format!("jwt: the token's `iss` is not {}", list(&jwt.issuers)),
                TokenRejection::Audience => format!("jwt: the token's `aud` is not {}", list(&jwt.audiences)),
                TokenRejection::Times => {
                    "jwt: the token has no `exp`, or one of its times is not a number".to_owned()
                }
                TokenRejection::Tenant => {
                    format!(
                        "jwt: the token's claim `{}` is missing, or is not a name",
                        jwt.tenant.0.join("` → `")
                    )
                }
                TokenRejection::Early => "jwt: the token is not valid yet (`nbf`)".to_owned(),
                TokenRejection::Expired => "jwt: the token is expired (`exp`)".to_owned(),
            }
        }
        (Rule::Jwt(jwt), _) => {
            let place = jwt.field.as_deref().unwrap_or("authorization");
            format!("jwt: no token in `{place}`")
        }
        (Rule::ApiKeys(_), Miss::UnknownKey) => {
            "api_key: the key is not listed (hashed with this hash key file)".to_owned()
        }
        (Rule::ApiKeys(_), _) => "api_key: no key in the request".to_owned(),
        (Rule::Certificate { .. }, Miss::NoCertificate) => {
            "certificate: the client presented none; name its file with --certificate".to_owned()
        }
        (Rule::Certificate { name, .. }, Miss::Repeated) => {
            format!("certificate: it has more than one `{}`, so the tenant is ambiguous", name.name())
        }
        (Rule::Certificate { name, .. }, Miss::InvalidName) => {
            format!("certificate: its `{}` names no tenant", name.name())
        }
        (Rule::Certificate { name, .. }, _) => format!("certificate: it has no `{}`", name.name()),
        (Rule::Header { field, .. }, Miss::Untrusted) => {
            format!("header: `{field}` is set, but the peer is not one of `trusted_peers`")
        }
        (Rule::Header { field, .. }, Miss::Repeated) => {
            format!("header: `{field}` is set more than once, so the tenant is ambiguous")
        }
        (Rule::Header { field, tenant: TenantPart::Value, .. }, Miss::InvalidName) => {
            format!("header: the value of `{field}` is not a name")
        }
        (Rule::Header { field, .. }, Miss::InvalidName) => {
            format!("header: the value of `{field}` has no identity of a workload, or several")
        }
        (Rule::Header { field, .. }, _) => format!("header: no `{field}`"),
        (Rule::Body(key), Miss::BodyUnread) => {
            format!("body: no body for `{}`, so later rules are not tried", member(key))
        }
        (Rule::Body(key), Miss::InvalidName) => format!("body: the value of `{}` is not a name", member(key)),
        (Rule::Body(key), _) => format!("body: no text in `{}`", member(key)),
        (Rule::Path { prefix, .. }, _) => format!("path: it is not {prefix} or below"),
        (Rule::Peer { nets, .. }, _) => {
            format!("peer: its address is not in {}", nets.texts().collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns a source of keys without a query, which may hold a secret.
fn shown(source: &str) -> &str {
    match source.contains("://") {
        true => source.split(['?', '#']).next().unwrap_or_default(),
        false => source,
    }
}
