//! A request to try the rules on, in HTTP/1.1 syntax with any line ends.

use std::fmt::Write;
use std::net::IpAddr;

use serde_json::Value;
use tenant::{BodyFacts, CertificateNames, Head, Resolution, Rules};

use super::misses;

/// A parsed request.
#[derive(Debug)]
pub(super) struct Request<'a> {
    path: &'a str,
    fields: Vec<(String, &'a str)>,
    body: Option<Value>,
}

impl<'a> Request<'a> {
    /// Parses a request; the error names the part that is missing or invalid.
    pub(super) fn read(text: &'a str) -> Result<Self, &'static str> {
        let mut rest = text;
        let mut line = || {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            rest = after;
            line.trim_end_matches('\r')
        };
        let mut words = line().split_whitespace();
        let (Some(_), Some(target)) = (words.next(), words.next()) else {
            return Err("its first line has no method and path");
        };
        if !target.starts_with('/') {
            return Err("its path does not begin with `/`");
        }
        let mut fields = Vec::new();
        loop {
            match line() {
                "" => break,
                field => {
                    let (name, value) = field.split_once(':').ok_or("a header line has no `:`")?;
                    fields.push((name.trim().to_ascii_lowercase(), value.trim()));
                }
            }
        }
        let body = match rest.trim() {
            "" => None,
            json => Some(serde_json::from_str(json).map_err(|_| "its body is not JSON")?),
        };
        let path = target.split('?').next().unwrap_or_default();
        Ok(Self { path, fields, body })
    }

    /// Renders the tenant by these rules, and why other rules do not match.
    pub(super) fn who(
        &self,
        rules: &Rules,
        (peer, certificate): (IpAddr, Option<&CertificateNames>),
        now_unix_s: u64,
    ) -> String {
        let field = |name: &str, at| {
            let values = self.fields.iter().filter(|(known, _)| known == name);
            values.map(|(_, value)| value.as_bytes()).nth(at)
        };
        let head = Head { peer, certificate, path: self.path, field: &field, now_unix_s };
        let metadata = members(self.body.as_ref().and_then(|body| body.get("metadata")));
        let facts = self.body.as_ref().map(|body| {
            let text = |key| body.get(key).and_then(Value::as_str).map(str::as_bytes);
            BodyFacts {
                user: text("user"),
                safety_identifier: text("safety_identifier"),
                metadata: &metadata,
            }
        });
        let who = match (rules.head(&head), &facts) {
            (Resolution::Resolved(who), _) => who,
            (Resolution::NeedsBody(pending), None) => pending.unread(),
            (Resolution::NeedsBody(pending), Some(facts)) => rules.body(pending, facts),
        };
        let mut text = format!("tenant: {}\nrule: {}\n", who.tenant, who.rule.name());
        let names = [("principal", &who.principal), ("end user", &who.consumer)];
        for (label, name) in names {
            if let Some(name) = name {
                // Writing to a String succeeds.
                let _ = writeln!(text, "{label}: {name}");
            }
        }
        for (at, (rule, miss)) in rules.misses(&head, facts.as_ref()).into_iter().enumerate() {
            let _ = writeln!(text, "rule {} does not match: {}", at + 1, misses::reason(rule, miss));
        }
        let strip = rules.strip(self.path);
        if strip > 0 {
            let rest = if strip == self.path.len() { "/" } else { &self.path[strip..] };
            let _ = writeln!(text, "the upstream gets: {rest}");
        }
        for field in rules.untrusted(peer).filter(|field| self.fields.iter().any(|(name, _)| name == field)) {
            let done = if rules.strips_untrusted() { "ignored and removed" } else { "ignored" };
            let _ = writeln!(text, "{done}: {field}, since {peer} is not trusted");
        }
        text
    }
}

fn members(value: Option<&Value>) -> Vec<(&str, &[u8])> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?.as_bytes()))).collect()
}
