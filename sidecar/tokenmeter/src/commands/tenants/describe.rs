//! Describes a tenants file in text: a line per rule, in order.

use std::fmt::Write;

use rules::{Place, Tenants};
use tenant::{BodyKey, EndUser, Jwt, Rule, TenantPart};

/// Describes the whole file.
pub(super) fn rules(tenants: &Tenants) -> String {
    let spec = &tenants.spec;
    let mut text = String::new();
    for (index, rule) in spec.rules.iter().enumerate() {
        // Writing to a String succeeds.
        let _ = writeln!(text, "{}. {}", index + 1, rule_text(rule, tenants));
    }
    let default = spec.default.as_ref().map_or("default", |name| name.text());
    let others = if spec.rules.is_empty() { "Every request" } else { "Every other request" };
    let _ = writeln!(text, "{others}: the tenant is {default}.");
    if !spec.end_user.is_empty() {
        let places: Vec<String> = spec.end_user.iter().map(end_user).collect();
        let form = if spec.plain_end_users { "in plain text" } else { "as a keyed hash" };
        let _ = writeln!(text, "The end user is {}, stored {form}.", places.join(", or else "));
    }
    if !spec.trusted.is_empty() {
        let nets: Vec<String> = spec.trusted.texts().collect();
        let others =
            if spec.strip_untrusted { "ignored, counted and removed" } else { "ignored and counted" };
        let _ = writeln!(
            text,
            "Trusted peers are {}; the same headers of other peers are {others}.",
            nets.join(", ")
        );
    }
    text
}

fn rule_text(rule: &Rule, tenants: &Tenants) -> String {
    match rule {
        Rule::Jwt(jwt) => token(jwt, tenants),
        Rule::ApiKeys(keys) => {
            let plural = if keys.len() == 1 { "" } else { "s" };
            format!("api_key: one of {} API key{plural}: the tenant is that of the key.", keys.len())
        }
        Rule::Certificate { name, tenant } => {
            format!("certificate: the client's, with one `{}`: the tenant is {}.", name.name(), part(*tenant))
        }
        Rule::Header { field, tenant, principal } => {
            let part = part(*tenant);
            let principal = principal.as_ref().map(|field| format!(", the principal that of `{field}`"));
            format!(
                "header: `{field}`, set by a trusted peer: the tenant is {part}{}.",
                principal.unwrap_or_default()
            )
        }
        Rule::Body(key) => {
            format!("body: `{}`, as the client sends it: the tenant is its value.", member(key))
        }
        Rule::Path { prefix, tenant, strip } => {
            let strip = if *strip { ", and the upstream gets the path without the prefix" } else { "" };
            format!("path: {prefix} or below: the tenant is {}{strip}.", tenant.text())
        }
        Rule::Peer { nets, tenant } => {
            let nets: Vec<String> = nets.texts().collect();
            format!("peer: {}: the tenant is {}.", nets.join(", "), tenant.text())
        }
    }
}

fn part(tenant: TenantPart) -> &'static str {
    match tenant {
        TenantPart::Value => "its value",
        TenantPart::Namespace => "the namespace of the workload in it",
        TenantPart::ServiceAccount => "the namespace and service account of the workload in it",
    }
}

fn token(jwt: &Jwt, tenants: &Tenants) -> String {
    let source = tenants.sources.iter().find(|source| source.name == jwt.source);
    let keys = match source.map(|source| (&source.place, source.shown())) {
        Some((Place::File(_), name)) => format!("{} keys of {name}", jwt.keys.len()),
        Some((Place::Url(_), name)) => format!("keys of {name}, fetched while it runs"),
        None => "no keys".to_owned(),
    };
    let list = |texts: &[Box<str>]| texts.join(" or ");
    let audience = match &jwt.audiences[..] {
        [] => "any audience".to_owned(),
        audiences => list(audiences),
    };
    let principal = jwt.principal.as_ref();
    let principal = principal.map(|claim| format!(", the principal in `{}`", claim.0.join("` → `")));
    format!(
        "jwt: a token in {}, issued by {} for {audience}, signed by one of the {keys}: the tenant is in the claim \
         `{}`{}.",
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
