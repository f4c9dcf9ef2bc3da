//! The requests that may be forwarded. One that two parsers could read differently is rejected, not repaired (law 1). The
//! framing of an HTTP/1.1 request was checked before, when its head was parsed ([`http1::request_body`]).

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::uri::Authority;
use http::{HeaderMap, Method, StatusCode, Uri, Version};

use crate::Refusal;
use crate::limits::CONTENT_LENGTH_MAX;
use crate::request::answer::Answer;
use crate::request::headers::lists;

/// Returns the answer to a request that may not be forwarded, as an error.
pub(crate) fn check(method: &Method, uri: &Uri, version: Version, headers: &HeaderMap) -> Result<(), Answer> {
    if method == Method::CONNECT {
        let message =
            "tokenmeter forwards to one inference server and opens no tunnels: CONNECT is not served";
        let status = StatusCode::METHOD_NOT_ALLOWED;
        return Err(Answer::refused(status, Refusal::Target, "method_not_allowed", message));
    }
    target(method, uri)?;
    if version == Version::HTTP_2 {
        framing(headers)?;
    }
    host(uri, version, headers)
}

/// Returns true if the client requests another protocol that the proxy can carry. A cleartext HTTP/2 upgrade is not
/// one: the field is removed and the request served without it (RFC 9110 §7.8 allows it). Neither is a WebSocket by
/// another method than `GET`, or with a body, in which a server could find messages (RFC 6455 §4.1).
pub(crate) fn asks_upgrade(method: &Method, version: Version, headers: &HeaderMap) -> bool {
    version == Version::HTTP_11
        && headers.contains_key(UPGRADE)
        && lists(headers, &CONNECTION, "upgrade")
        && !may_ask_for(headers, b"h2c")
        && (!may_ask_for(headers, b"websocket") || method == Method::GET && !has_body(headers))
}

/// Returns true if the protocol that is requested may have this name: in any spelling, such as `websocket/13`, or with
/// bytes around it that a server may take for blanks.
pub(crate) fn may_ask_for(headers: &HeaderMap, name: &[u8]) -> bool {
    let has =
        |line: &HeaderValue| line.as_bytes().windows(name.len()).any(|part| part.eq_ignore_ascii_case(name));
    headers.get_all(UPGRADE).iter().any(has)
}

fn has_body(headers: &HeaderMap) -> bool {
    let is_empty = |length: &HeaderValue| digits(length.as_bytes()) == Some(0);
    headers.contains_key(TRANSFER_ENCODING) || !headers.get_all(CONTENT_LENGTH).iter().all(is_empty)
}

fn target(method: &Method, uri: &Uri) -> Result<(), Answer> {
    let wrong =
        |message| Err(Answer::refused(StatusCode::BAD_REQUEST, Refusal::Target, "invalid_target", message));
    // Only a target of HTTP/2 can have some here: one of HTTP/1.1 was rejected when its head was parsed.
    if uri.path_and_query().is_some_and(|target| !target.as_str().is_ascii()) {
        return wrong("the request target has bytes beyond ASCII");
    }
    if let Some(authority) = uri.authority() {
        if !is_authority(authority.as_str().as_bytes()) {
            return wrong("the request target's authority is not a host name with an optional port");
        }
        // In HTTP/2, `*` comes with an authority.
        if uri.path() == "*" && method != Method::OPTIONS {
            return wrong("the request target * belongs to OPTIONS");
        }
        return match uri.scheme_str() {
            Some("http" | "https") => Ok(()),
            Some(_) => wrong("the request target's scheme is neither http nor https"),
            None => wrong("the request target is neither a path nor a URL"),
        };
    }
    match uri.path() {
        "*" if method == Method::OPTIONS => Ok(()),
        "*" => wrong("the request target * belongs to OPTIONS"),
        path if path.starts_with('/') => Ok(()),
        _ => wrong("the request target is neither a path nor a URL"),
    }
}

/// Checks the framing of an HTTP/2 request, which may be forwarded by HTTP/1.1.
fn framing(headers: &HeaderMap) -> Result<(), Answer> {
    let wrong =
        |message| Err(Answer::refused(StatusCode::BAD_REQUEST, Refusal::Framing, "invalid_framing", message));
    if headers.contains_key(TRANSFER_ENCODING) {
        return wrong("Transfer-Encoding belongs to HTTP/1.1 only");
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => wrong("Content-Length is given more than once"),
        (Some(length), None) => match digits(length.as_bytes()) {
            Some(length) if length <= CONTENT_LENGTH_MAX => Ok(()),
            _ => wrong("Content-Length is not a length"),
        },
    }
}

fn host(uri: &Uri, version: Version, headers: &HeaderMap) -> Result<(), Answer> {
    let wrong =
        |message| Err(Answer::refused(StatusCode::BAD_REQUEST, Refusal::Host, "invalid_host", message));
    let mut hosts = headers.get_all(HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return wrong("Host is given more than once");
    }
    match (host, version) {
        (Some(host), _) if !is_authority(host.as_bytes()) => {
            wrong("Host is not a host name with an optional port")
        }
        // HTTP/2 has the authority in a pseudo-header; the two must not name different servers.
        (Some(host), Version::HTTP_2) => match uri.authority() {
            Some(authority) if !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()) => {
                wrong("Host and :authority differ")
            }
            _ => Ok(()),
        },
        (None, Version::HTTP_11) => wrong("Host is missing"),
        _ => Ok(()),
    }
}

fn is_authority(value: &[u8]) -> bool {
    is_plain_authority(value) || is_parsed_authority(value)
}

/// Returns true for a name of letters, digits, `-`, `_` and `.`, with or without a port of up to four digits. Most
/// hosts have this form, and need no parser.
fn is_plain_authority(value: &[u8]) -> bool {
    let name_len = value.iter().take_while(|byte| is_name_byte(**byte)).count();
    match value[name_len..] {
        _ if name_len == 0 => false,
        [] => true,
        [b':', ref port @ ..] => port.len() <= 4 && port.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn is_parsed_authority(value: &[u8]) -> bool {
    let valid = Authority::try_from(value);
    valid.is_ok_and(|authority| {
        let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        !authority.host().is_empty()
            && !authority.as_str().contains('@')
            // The parser accepts any text after the colon; RFC 3986 allows `Host: name:` only.
            && (port.is_empty() || port == ":" || authority.port_u16().is_some())
    })
}

fn digits(text: &[u8]) -> Option<u64> {
    let plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if plain { str::from_utf8(text).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = [(&'static str, &'static str)];
    type Verdict = Option<(u16, &'static str)>;

    struct Request {
        method: Method,
        target: &'static str,
        version: Version,
        fields: Vec<(&'static str, &'static str)>,
    }

    fn get(fields: &Fields) -> Request {
        Request { method: Method::GET, target: "/", version: Version::HTTP_11, fields: fields.to_vec() }
    }

    fn judge(request: &Request) -> Verdict {
        let mut headers = HeaderMap::new();
        for (name, value) in &request.fields {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let uri: Uri = request.target.parse().unwrap();
        let verdict = check(&request.method, &uri, request.version, &headers);
        verdict.err().map(|answer| (answer.status.as_u16(), answer.code))
    }

    #[test]
    fn framing_must_be_unambiguous() {
        let rows: [(&Fields, Verdict); 6] = [
            (&[("transfer-encoding", "chunked")], Some((400, "invalid_framing"))),
            (&[("content-length", "9223372036854775807")], None),
            (&[("content-length", "9223372036854775808")], Some((400, "invalid_framing"))),
            (&[("content-length", "+3")], Some((400, "invalid_framing"))),
            (&[("content-length", "3, 3")], Some((400, "invalid_framing"))),
            (&[("content-length", "3"), ("content-length", "3")], Some((400, "invalid_framing"))),
        ];
        for (fields, expected) in rows {
            let mut request = get(fields);
            request.version = Version::HTTP_2;
            assert_eq!(judge(&request), expected, "{fields:?}");
        }
    }

    #[test]
    fn host_is_a_name_with_a_port() {
        let rows: [(&Fields, Verdict); 12] = [
            (&[("host", "h")], None),
            (&[("host", "my_service.ns.svc:8000")], None),
            (&[("host", "[::1]:80")], None),
            (&[("host", "127.0.0.1")], None),
            (&[("host", "h:")], None),
            (&[], Some((400, "invalid_host"))),
            (&[("host", "h"), ("host", "h")], Some((400, "invalid_host"))),
            (&[("host", "")], Some((400, "invalid_host"))),
            (&[("host", "a b")], Some((400, "invalid_host"))),
            (&[("host", "h/x")], Some((400, "invalid_host"))),
            (&[("host", "user@h")], Some((400, "invalid_host"))),
            (&[("host", "h:99999")], Some((400, "invalid_host"))),
        ];
        for (fields, expected) in rows {
            assert_eq!(judge(&get(fields)), expected, "{fields:?}");
        }
        let mut old = get(&[]);
        old.version = Version::HTTP_10;
        assert_eq!(judge(&old), None, "HTTP/1.0 knows no Host");
    }

    #[test]
    fn plain_hosts_are_those_that_the_parser_accepts() {
        let hosts =
            ["h", "my_service.ns.svc", "127.0.0.1", "-", "..", "", "a b", "h/x", "user@h", "[::1]", "é"];
        let ports = ["", ":", ":0", ":80", ":9999", ":65535", ":99999", ":+80", ":8o", ":80:80", "::", ":-1"];
        for (host, port) in hosts.iter().flat_map(|host| ports.iter().map(move |port| (host, port))) {
            let value = format!("{host}{port}");
            let is_plain = is_plain_authority(value.as_bytes());
            assert!(!is_plain || is_parsed_authority(value.as_bytes()), "{value:?}");
            let expected = !host.is_empty() && host.bytes().all(is_name_byte);
            assert_eq!(is_plain, expected && ["", ":", ":0", ":80", ":9999"].contains(port), "{value:?}");
        }
    }

    #[test]
    fn http2_host_and_authority_must_agree() {
        let mut request = get(&[("host", "A.example")]);
        request.version = Version::HTTP_2;
        request.target = "http://a.example/";
        assert_eq!(judge(&request), None);
        request.target = "http://b.example/";
        assert_eq!(judge(&request), Some((400, "invalid_host")));
        request.fields.clear();
        assert_eq!(judge(&request), None);
    }

    #[test]
    fn invalid_targets_are_rejected() {
        let rows = [
            (Method::GET, "/a?b", None),
            (Method::GET, "//a", None),
            (Method::GET, "http://other/a", None),
            (Method::OPTIONS, "*", None),
            (Method::GET, "*", Some((400, "invalid_target"))),
            (Method::GET, "host:80", Some((400, "invalid_target"))),
            (Method::GET, "http://user@h/", Some((400, "invalid_target"))),
            (Method::GET, "http://h:99999/", Some((400, "invalid_target"))),
            (Method::GET, "/\u{e9}", Some((400, "invalid_target"))),
            (Method::GET, "http://h/?\u{e9}", Some((400, "invalid_target"))),
            (Method::GET, "ftp://h/", Some((400, "invalid_target"))),
            (Method::CONNECT, "host:80", Some((405, "method_not_allowed"))),
        ];
        for (method, target, expected) in rows {
            let request = Request { method, target, ..get(&[("host", "h")]) };
            assert_eq!(judge(&request), expected, "{target}");
        }
    }

    #[test]
    fn only_known_upgrades_are_kept() {
        let asks = |fields: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(*name, HeaderValue::from_static(value));
            }
            asks_upgrade(&Method::GET, Version::HTTP_11, &headers)
        };
        assert!(asks(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]));
        assert!(!asks(&[("upgrade", "websocket")]));
        assert!(!asks(&[("connection", "upgrade"), ("upgrade", "h2c")]));
    }
}
