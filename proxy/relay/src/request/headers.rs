//! Header fields on their way through the proxy. Hop-by-hop fields end at each hop; all others pass: same names, same
//! values, same order (law 1). Nothing is added here: no `Via`, no `X-Forwarded-For`.
//!
//! Hop-by-hop (RFC 9110 §7.6.1) are a fixed list and the fields that `Connection` names, except those for the message's own
//! framing and address.

use http::HeaderMap;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, Entry, HOST,
    HeaderName, HeaderValue, MAX_FORWARDS, PRAGMA, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RANGE,
    SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, WWW_AUTHENTICATE,
};

/// Makes the fields of a request for the upstream. `upgrade` keeps the request to switch protocols, which the proxy
/// repeats on this hop.
pub(crate) fn for_upstream(headers: HeaderMap, upgrade: bool) -> HeaderMap {
    let trailers = lists(&headers, &TE, "trailers");
    strip(headers, upgrade, |name, value| match *name {
        // The proxy forwards trailers, so the upstream may send them. Other codings were offered to this hop only.
        TE if trailers => Some(HeaderValue::from_static("trailers")),
        TE => None,
        // The client's 100-continue is answered on its own hop, when the upstream takes the body.
        EXPECT if value.as_bytes().eq_ignore_ascii_case(b"100-continue") => None,
        _ => Some(value),
    })
}

/// Makes the fields of a response for the client. `upgrade` keeps the fields of a 101.
pub(crate) fn for_client(headers: HeaderMap, upgrade: bool) -> HeaderMap {
    strip(headers, upgrade, |name, value| if *name == TE { None } else { Some(value) })
}

/// Joins the `Cookie` fields of an HTTP/2 request, because HTTP/1.1 allows one field only (RFC 9113 §8.2.3).
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

/// Removes every field of this name, and keeps the order of the others.
pub(crate) fn take_out(headers: &mut HeaderMap, field: &HeaderName) {
    retain(headers, |name| name != field);
}

/// Changes framing fields that another parser may reject or read differently: equal lengths become one (RFC 9110 §8.6), and
/// the name of the coding gets lower case.
pub(crate) fn make_canonical(map: &mut HeaderMap) {
    if let Some(coding) = map.get_mut(TRANSFER_ENCODING).filter(|coding| coding.as_bytes() != b"chunked")
        && coding.as_bytes().eq_ignore_ascii_case(b"chunked")
    {
        *coding = HeaderValue::from_static("chunked");
    }
    let mut values = map.get_all(CONTENT_LENGTH).iter();
    let Some(first) = values.next() else { return };
    let number = first.as_bytes().split(|&byte| byte == b',').next().unwrap_or_default().trim_ascii();
    if (values.next().is_some() || number.len() < first.len())
        && let Ok(number) = HeaderValue::from_bytes(number)
    {
        map.insert(CONTENT_LENGTH, number);
    }
}

/// Removes trailers that would change the message if its receiver added them to the head: those that frame, route or
/// authorise it, or describe its body (RFC 9110 §6.5.1).
pub(crate) fn keep_trailers(trailers: &mut HeaderMap) {
    retain(trailers, may_trail);
}

/// Removes all other fields. It copies those that it keeps, because a removal from a `HeaderMap` moves the last field into
/// the gap, and the order must stay.
pub(crate) fn retain(headers: &mut HeaderMap, keeps: impl Fn(&HeaderName) -> bool) {
    if !headers.keys().all(&keeps) {
        let kept = headers.iter().filter(|(name, _)| keeps(name));
        *headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
}

fn may_trail(name: &HeaderName) -> bool {
    let text = name.as_str();
    let is_head = matches!(
        *name,
        AUTHORIZATION
            | CACHE_CONTROL
            | COOKIE
            | EXPECT
            | HOST
            | MAX_FORWARDS
            | PRAGMA
            | PROXY_AUTHENTICATE
            | PROXY_AUTHORIZATION
            | RANGE
            | SET_COOKIE
            | TRAILER
            | TRANSFER_ENCODING
            | WWW_AUTHENTICATE
    );
    // The digest of a content is known only after it (RFC 9530).
    let is_of_body = text.starts_with("content-") && text != "content-digest";
    !(is_head || is_of_body || text.starts_with("if-") || is_hop_by_hop(name))
}

/// Returns true if the message is gRPC, in which a client may be silent between two messages.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    kind.is_some_and(|kind| kind.get(..16).is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/grpc")))
}

/// Returns true if a comma-separated field contains `token`, in any of its lines.
pub(crate) fn lists(headers: &HeaderMap, field: &HeaderName, token: &str) -> bool {
    tokens(headers, field).any(|listed| listed.eq_ignore_ascii_case(token.as_bytes()))
}

/// The elements of a comma-separated field, over all its lines, without empty ones.
pub(crate) fn tokens<'h>(headers: &'h HeaderMap, field: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    headers.get_all(field).iter().flat_map(|line| http1::tokens(line.as_bytes()))
}

/// Removes the fields that end at this hop; `keep` changes or removes others.
fn strip(
    headers: HeaderMap,
    upgrade: bool,
    keep: impl Fn(&HeaderName, HeaderValue) -> Option<HeaderValue>,
) -> HeaderMap {
    if !headers.keys().any(|name| is_hop_by_hop(name) || *name == EXPECT) {
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
        let name = current.as_ref().expect("a header map's first item has a name");
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

/// Returns the bytes of all names and values.
pub(crate) fn text_bytes(fields: &HeaderMap) -> usize {
    fields.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// Returns the size as HTTP/2 limits it (RFC 9113 §6.5.2), in bytes: 32 more for each field.
pub(crate) fn list_bytes(fields: &HeaderMap) -> usize {
    text_bytes(fields) + fields.len() * 32
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    http1::is_hop_by_hop(name.as_str())
}

/// Returns true for a field that stays although `Connection` names it: without it, the message would have another meaning.
/// `TE` has a rule of its own.
pub(crate) fn is_framing(name: &HeaderName) -> bool {
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
    fn order_and_repetitions_are_kept() {
        let fields = [("a", "1"), ("set-cookie", "x"), ("set-cookie", "y"), ("b", "2"), ("c", "3")];
        let with_hop = [&[("connection", "close")][..], &fields[..], &[("keep-alive", "5")][..]].concat();
        assert_eq!(list(&for_client(map(&with_hop), false)), fields);
        assert_eq!(list(&for_client(map(&fields), false)), fields);
    }

    #[test]
    fn connection_removes_named_fields_except_framing() {
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
    fn an_upgrade_is_repeated_on_this_hop() {
        let sent =
            map(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket"), ("keep-alive", "1")]);
        assert_eq!(
            list(&for_upstream(sent.clone(), true)),
            [("connection", "upgrade"), ("upgrade", "websocket")]
        );
        assert_eq!(list(&for_upstream(sent, false)), []);
    }

    #[test]
    fn trailers_change_no_message() {
        let mut trailers = map(&[
            ("content-length", "1"),
            ("x-t", "a"),
            ("connection", "close"),
            ("if-match", "b"),
            ("content-digest", "c"),
            ("content-disposition", "d"),
            ("www-authenticate", "e"),
            ("x-t", "f"),
        ]);
        keep_trailers(&mut trailers);
        assert_eq!(list(&trailers), [("x-t", "a"), ("x-t", "f"), ("content-digest", "c")]);
    }

    #[test]
    fn cookie_fields_are_joined() {
        let mut headers = map(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")]);
        join_cookies(&mut headers);
        assert_eq!(list(&headers), [("cookie", "a=1; b=2"), ("x", "y")]);
    }
}
