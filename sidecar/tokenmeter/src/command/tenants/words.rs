//! What a tenants file does, in words: a line for each rule, in the order they are asked.

use std::fmt::Write;

use tenant::{BodyKey, EndUser, Jwt, Rule};

use crate::plan::tenants::{Place, Tenants};

/// The file as a whole.
pub(super) fn rules(tenants: &Tenants) -> String {
    let spec = &tenants.spec;
    let mut text = String::new();
    for (index, rule) in spec.rules.iter().enumerate() {
        // A string takes whatever it is given.
        let _ = writeln!(text, "{}. {}", index + 1, in_words(rule, tenants));
    }
    let default = spec.default.as_ref().map_or("default", |name| name.text());
    let others = if spec.rules.is_empty() { "Every request" } else { "Every other request" };
    let _ = writeln!(text, "{others} is {default}'s.");
    if !spec.end_user.is_empty() {
        let places: Vec<String> = spec.end_user.iter().map(end_user).collect();
        let kept = if spec.plain_end_users { "as it is" } else { "as a keyed hash" };
        let _ = writeln!(text, "The end user is {}, kept {kept}.", places.join(", or else "));
    }
    if !spec.trusted.is_empty() {
        let nets: Vec<String> = spec.trusted.texts().collect();
        let others =
            if spec.strip_untrusted { "ignored, counted and taken out" } else { "ignored and counted" };
        let _ =
            writeln!(text, "Headers are believed from {}; from others they are {others}.", nets.join(", "));
    }
    text
}

fn in_words(rule: &Rule, tenants: &Tenants) -> String {
    match rule {
        Rule::Jwt(jwt) => token(jwt, tenants),
        Rule::ApiKeys(keys) => {
            format!("A request with one of {} known API keys is its owner's.", keys.len())
        }
        Rule::Header { field, principal } => {
            let principal = principal.as_ref().map(|field| format!(", for the principal in `{field}`"));
            format!(
                "A request whose `{field}` a trusted peer set is that tenant's{}.",
                principal.unwrap_or_default()
            )
        }
        Rule::Body(key) => {
            format!("A request whose body has `{}` is that tenant's, as its client says.", member(key))
        }
        Rule::Path { prefix, tenant, strip } => {
            let strip = if *strip { "; the upstream is spared that beginning" } else { "" };
            format!("A request whose path begins with {prefix} is {}'s{strip}.", tenant.text())
        }
        Rule::Peer { nets, tenant } => {
            let nets: Vec<String> = nets.texts().collect();
            format!("A request from {} is {}'s.", nets.join(", "), tenant.text())
        }
    }
}

fn token(jwt: &Jwt, tenants: &Tenants) -> String {
    let source = tenants.sources.iter().find(|source| source.name == jwt.source);
    let keys = match source.map(|source| (&source.place, source.shown())) {
        Some((Place::File(_), name)) => format!("{} keys of {name}", jwt.keys.len()),
        Some((Place::Url(_), name)) => format!("keys of {name}, asked when it runs"),
        None => "no keys".to_owned(),
    };
    let list = |texts: &[Box<str>]| texts.join(" or ");
    let audience = match &jwt.audiences[..] {
        [] => "anybody".to_owned(),
        audiences => list(audiences),
    };
    let principal = jwt.principal.as_ref();
    let principal = principal.map(|claim| format!(", for the principal in `{}`", claim.0.join("` → `")));
    format!(
        "A request with a token in {}, issued by {} for {audience}, signed by one of the {keys}, is the tenant's in its \
         claim `{}`{}.",
        jwt.field.as_deref().map_or("`authorization`".to_owned(), |field| format!("`{field}`")),
        list(&jwt.issuers),
        jwt.tenant.0.join("` → `"),
        principal.unwrap_or_default(),
    )
}

fn end_user(end_user: &EndUser) -> String {
    match end_user {
        EndUser::Body(key) => format!("the body's `{}`", member(key)),
        EndUser::Header(field) => format!("a trusted peer's `{field}`"),
    }
}

pub(super) fn member(key: &BodyKey) -> String {
    match key {
        BodyKey::User => "user".to_owned(),
        BodyKey::SafetyIdentifier => "safety_identifier".to_owned(),
        BodyKey::Metadata(key) => format!("metadata.{key}"),
    }
}
