//! Identities of Kubernetes workloads, as a mesh's proxy writes them into a header field: a SPIFFE id
//! (`spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT`), alone or in Envoy's `x-forwarded-client-cert`, or Linkerd's
//! `ACCOUNT.NAMESPACE.serviceaccount.identity.…`.
//!
//! Law: what a client wrote before the proxy's own part cannot change what is read.

/// The identity of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workload<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) service_account: &'a str,
}

impl<'a> Workload<'a> {
    /// Reads the value of a header field; `None` if it has no identity, or more than one.
    pub(crate) fn read(value: &'a str) -> Option<Self> {
        let value = value.trim();
        if value.starts_with("spiffe://") {
            Self::of_spiffe(value)
        } else if value.contains('=') {
            Self::of_client_cert(last_element(value))
        } else {
            Self::of_linkerd(value)
        }
    }

    /// Reads an element of `x-forwarded-client-cert`.
    fn of_client_cert(element: &'a str) -> Option<Self> {
        let mut ids = pairs(element)
            .filter_map(|pair| pair.split_once('='))
            .filter(|(key, _)| key.trim().eq_ignore_ascii_case("URI"))
            .map(|(_, id)| id.trim().trim_matches('"'));
        let id = ids.next()?;
        // A certificate with several identities is ambiguous.
        ids.next().is_none().then(|| Self::of_spiffe(id))?
    }

    fn of_spiffe(id: &'a str) -> Option<Self> {
        let mut parts = id.strip_prefix("spiffe://")?.split('/');
        let (Some(_), Some("ns"), Some(namespace), Some("sa"), Some(account), None) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        Self::of(namespace, account)
    }

    fn of_linkerd(name: &'a str) -> Option<Self> {
        let (before, _) = name.split_once(".serviceaccount.identity.")?;
        // A namespace has no dot; an account may.
        let (account, namespace) = before.rsplit_once('.')?;
        Self::of(namespace, account)
    }

    fn of(namespace: &'a str, service_account: &'a str) -> Option<Self> {
        let label = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_namespace = (1..=63).contains(&namespace.len()) && namespace.bytes().all(label);
        let is_account = (1..=253).contains(&service_account.len())
            && service_account.bytes().all(|byte| label(byte) || byte == b'.');
        (is_namespace && is_account).then_some(Self { namespace, service_account })
    }
}

/// Returns the last element of a list with quoted values: the one that the proxy nearest to us appended. The search
/// begins at the end, because quotes in earlier elements are a client's and need not be balanced.
fn last_element(list: &str) -> &str {
    let bytes = list.as_bytes();
    let mut is_quoted = false;
    for at in (0..bytes.len()).rev() {
        match bytes[at] {
            b'"' if !is_escaped(&bytes[..at]) => is_quoted = !is_quoted,
            b',' if !is_quoted => return &list[at + 1..],
            _ => {}
        }
    }
    list
}

/// Returns true if an odd number of backslashes precedes.
fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Splits an element at the semicolons outside quotes.
fn pairs(element: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_after_backslash) = (false, false);
    element.split(move |character| {
        let is_escaped = is_after_backslash;
        is_after_backslash = character == '\\' && !is_escaped;
        if character == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        character == ';' && !is_quoted
    })
}

#[cfg(test)]
#[path = "workload_tests.rs"]
mod tests;
