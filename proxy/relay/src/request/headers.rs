//! Hop-by-hop fields end at each hop, everything else passes: same names, same values, same order
//! (law 1). Nothing is added here: no `Via`, no `X-Forwarded-For`.
//!
//! RFC 9110 §7.6.1: the fixed list, and whatever `Connection` names, except the fields that carry
//! the message's own framing and address. Those are never dropped because a peer listed them.

use http::HeaderMap;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, Entry, HOST, HeaderName, HeaderValue, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};

/// llama.cpp: names a conversation whose answer goes on when its client leaves, and can be fetched again.
pub(crate) const CONVERSATION_ID: &str = "x-conversation-id";

/// The fields of a request as the upstream gets them. `upgrade` keeps the request to switch
/// protocols, which is ours to make again on this hop.
pub(crate) fn for_upstream(headers: HeaderMap, upgrade: bool) -> HeaderMap {
    let trailers = lists(&headers, &TE, "trailers");
    strip(headers, upgrade, |name, value| match *name {
        // We take trailers and pass them on, so the upstream may send them; other codings were
        // offered to this hop only.
        TE if trailers => Some(HeaderValue::from_static("trailers")),
        TE => None,
        // The engine answers the client's 100-continue itself, when the upstream takes the body.
        EXPECT if value.as_bytes().eq_ignore_ascii_case(b"100-continue") => None,
        _ => Some(value),
    })
}

/// The fields of a response as the client gets them. `upgrade` keeps what a 101 says.
pub(crate) fn for_client(headers: HeaderMap, upgrade: bool) -> HeaderMap {
    strip(headers, upgrade, |name, value| if *name == TE { None } else { Some(value) })
}

/// Joins the `Cookie` crumbs of an HTTP/2 request, which HTTP/1.1 wants in one field (RFC 9113
/// §8.2.3).
pub(crate) fn join_cookies(headers: &mut HeaderMap) {
    let Entry::Occupied(mut crumbs) = headers.entry(COOKIE) else { return };
    if crumbs.iter().nth(1).is_none() {
        return;
    }
    let joined = crumbs.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b"; "[..]);
    if let Ok(joined) = HeaderValue::from_bytes(&joined) {
        crumbs.insert(joined);
    }
}

/// Takes out every field of this name, and leaves the others in their order.
pub(crate) fn take_out(headers: &mut HeaderMap, field: &HeaderName) {
    if headers.contains_key(field) {
        let others = headers.iter().filter(|(name, _)| *name != field);
        *headers = others.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
}

/// Returns true if the message is gRPC's, in which a client may be silent between two messages.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    kind.is_some_and(|kind| kind.get(..16).is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/grpc")))
}

/// Returns true if a comma-separated field names `token`, in any of its lines.
pub(crate) fn lists(headers: &HeaderMap, field: &HeaderName, token: &str) -> bool {
    tokens(headers, field).any(|listed| listed.eq_ignore_ascii_case(token.as_bytes()))
}

/// Returns true if a field vouches for the body's bytes, so that none of them can be changed unnoticed:
/// digests (RFC 9530, RFC 3230, RFC 1864) and signatures (RFC 9421).
pub(crate) fn is_sealed(headers: &HeaderMap) -> bool {
    // A message has few fields: looking at their names costs less than five hashes.
    let seals = ["content-digest", "repr-digest", "digest", "content-md5", "signature"];
    headers.keys().any(|name| seals.contains(&name.as_str()))
}

/// The elements of a comma-separated field, over all its lines, without the empty ones.
pub(crate) fn tokens<'h>(headers: &'h HeaderMap, field: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    headers
        .get_all(field)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

/// Copies what stays. A copy and not a removal, because removing from a `HeaderMap` moves the last
/// field into the gap, and order is part of what the sender wrote.
fn strip(
    headers: HeaderMap,
    upgrade: bool,
    keep: impl Fn(&HeaderName, HeaderValue) -> Option<HeaderValue>,
) -> HeaderMap {
    if !headers.keys().any(|name| is_hop_by_hop(name) || matches!(*name, TE | EXPECT)) {
        return headers;
    }
    let named: Vec<HeaderName> = tokens(&headers, &CONNECTION)
        .filter_map(|token| HeaderName::from_bytes(token).ok())
        .filter(|name| !is_framing(name))
        .collect();
    let mut kept = HeaderMap::with_capacity(headers.len());
    let mut current = None;
    for (name, value) in headers {
        let first = name.is_some();
        if first {
            current = name;
        }
        let name = current.as_ref().expect("a header map's first item carries a name");
        let value = match *name {
            CONNECTION if upgrade && first => Some(HeaderValue::from_static("upgrade")),
            UPGRADE if upgrade => Some(value),
            TE if !first => None,
            TE => keep(name, value),
            _ if is_hop_by_hop(name) || named.contains(name) => None,
            _ => keep(name, value),
        };
        if let Some(value) = value {
            kept.append(name, value);
        }
    }
    kept
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(*name, CONNECTION | UPGRADE)
        || matches!(name.as_str(), "keep-alive" | "proxy-connection" | "http2-settings")
}

/// Never dropped on a peer's word: without them the message is another one. `TE` has its own rule.
fn is_framing(name: &HeaderName) -> bool {
    matches!(*name, CONTENT_LENGTH | TRANSFER_ENCODING | TRAILER | HOST | TE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn list(headers: &HeaderMap) -> Vec<(&str, &str)> {
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect()
    }

    #[test]
    fn order_and_repeats_stay() {
        let fields = [("a", "1"), ("set-cookie", "x"), ("set-cookie", "y"), ("b", "2"), ("c", "3")];
        let with_hop = [&[("connection", "close")][..], &fields[..], &[("keep-alive", "5")][..]].concat();
        assert_eq!(list(&for_client(map(&with_hop), false)), fields);
        assert_eq!(list(&for_client(map(&fields), false)), fields);
    }

    #[test]
    fn what_connection_names_goes_but_never_the_framing() {
        let sent = map(&[
            ("host", "h"),
            ("connection", "close, X-Private , content-length"),
            ("connection", "Host, transfer-encoding, te"),
            ("x-private", "1"),
            ("content-length", "3"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
        ]);
        let expected =
            [("host", "h"), ("content-length", "3"), ("transfer-encoding", "chunked"), ("te", "trailers")];
        assert_eq!(list(&for_upstream(sent, false)), expected);
    }

    #[test]
    fn te_passes_only_as_trailers() {
        assert_eq!(list(&for_upstream(map(&[("te", "gzip, trailers")]), false)), [("te", "trailers")]);
        assert_eq!(
            list(&for_upstream(map(&[("te", "gzip"), ("te", "trailers")]), false)),
            [("te", "trailers")]
        );
        assert_eq!(list(&for_upstream(map(&[("te", "gzip")]), false)), []);
    }

    #[test]
    fn only_expect_100_continue_is_removed() {
        assert_eq!(list(&for_upstream(map(&[("expect", "100-Continue")]), false)), []);
        assert_eq!(list(&for_upstream(map(&[("expect", "x")]), false)), [("expect", "x")]);
    }

    #[test]
    fn an_upgrade_is_asked_again_on_this_hop() {
        let sent =
            map(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket"), ("keep-alive", "1")]);
        assert_eq!(
            list(&for_upstream(sent.clone(), true)),
            [("connection", "upgrade"), ("upgrade", "websocket")]
        );
        assert_eq!(list(&for_upstream(sent, false)), []);
    }

    #[test]
    fn cookie_crumbs_become_one_field() {
        let mut headers = map(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")]);
        join_cookies(&mut headers);
        assert_eq!(list(&headers), [("cookie", "a=1; b=2"), ("x", "y")]);
    }
}
