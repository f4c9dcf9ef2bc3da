//! Adds the client's address, protocol and host to a request: `X-Forwarded-For`, `-Proto`, `-Host`, and `Forwarded`
//! (RFC 7239). Fields of a trusted peer are kept and extended; those of other peers are replaced.

use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;
use http::header::{FORWARDED, HOST, HeaderName, HeaderValue};

use crate::request::headers;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST_OF_CLIENT: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The client's side of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    /// The address at the other end of the connection.
    pub(crate) peer: IpAddr,
    /// True if the fields that it sent are kept.
    pub(crate) is_trusted: bool,
    /// True if the connection has TLS.
    pub(crate) is_tls: bool,
}

/// Adds this hop to the fields of a request with its `Host`.
pub(crate) fn append(fields: &mut HeaderMap, sender: Sender) {
    if !sender.is_trusted {
        remove(fields);
    }
    let proto = if sender.is_tls { "https" } else { "http" };
    let host = fields.get(HOST).cloned();
    let peer = match sender.peer {
        // A load balancer did not state the address.
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => "unknown".to_owned(),
        peer => peer.to_string(),
    };
    let node = if sender.peer.is_ipv6() { format!("\"[{peer}]\"") } else { peer.clone() };
    let mut element = format!("for={node};proto={proto}");
    // Quotes and backslashes are not part of a host.
    if let Some(host) =
        host.as_ref().and_then(|host| host.to_str().ok()).filter(|host| !host.contains(['"', '\\']))
    {
        element.extend([";host=\"", host, "\""]);
    }
    extend(fields, FOR, &peer);
    extend(fields, FORWARDED, &element);
    fields.entry(PROTO).or_insert(HeaderValue::from_static(proto));
    if let Some(host) = host {
        fields.entry(HOST_OF_CLIENT).or_insert(host);
    }
}

/// Removes these fields, of a head or of trailers.
pub(crate) fn remove(fields: &mut HeaderMap) {
    headers::retain(fields, |name| ![FOR, PROTO, HOST_OF_CLIENT, FORWARDED].contains(name));
}

/// Adds an element to a field's list, as one line.
fn extend(fields: &mut HeaderMap, field: HeaderName, element: &str) {
    let lines = fields.get_all(&field).iter().map(HeaderValue::as_bytes);
    let list = lines.chain([element.as_bytes()]).collect::<Vec<_>>().join(&b", "[..]);
    if let Ok(list) = HeaderValue::from_bytes(&list) {
        fields.insert(field, list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(sent: &[(&str, &str)], is_trusted: bool, peer: &str, is_tls: bool) -> Vec<String> {
        let mut fields = HeaderMap::new();
        for (name, value) in sent {
            fields.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        append(&mut fields, Sender { peer: peer.parse().unwrap(), is_trusted, is_tls });
        fields.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    const SENT: &[(&str, &str)] = &[
        ("host", "api.example.com"),
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-for", "10.0.0.9"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "outside.example.com"),
        ("forwarded", "for=203.0.113.9"),
    ];

    #[test]
    fn fields_of_a_trusted_peer_are_extended() {
        assert_eq!(
            after(SENT, true, "10.0.0.1", false),
            [
                "host: api.example.com",
                "x-forwarded-for: 203.0.113.9, 10.0.0.9, 10.0.0.1",
                "x-forwarded-proto: https",
                "x-forwarded-host: outside.example.com",
                "forwarded: for=203.0.113.9, for=10.0.0.1;proto=http;host=\"api.example.com\"",
            ]
        );
    }

    #[test]
    fn fields_of_an_untrusted_peer_are_replaced() {
        assert_eq!(
            after(SENT, false, "2001:db8::7", true),
            [
                "host: api.example.com",
                "x-forwarded-for: 2001:db8::7",
                "forwarded: for=\"[2001:db8::7]\";proto=https;host=\"api.example.com\"",
                "x-forwarded-proto: https",
                "x-forwarded-host: api.example.com",
            ]
        );
    }

    #[test]
    fn unstated_address_is_unknown() {
        let added = after(&[("host", "a")], false, "0.0.0.0", false);
        assert_eq!(added[1..3], ["x-forwarded-for: unknown", "forwarded: for=unknown;proto=http;host=\"a\""]);
    }

    #[test]
    fn odd_host_is_left_out() {
        let added = after(&[("host", "a\"b")], false, "192.0.2.7", false);
        assert!(added.contains(&"forwarded: for=192.0.2.7;proto=http".to_owned()), "{added:?}");
    }
}
