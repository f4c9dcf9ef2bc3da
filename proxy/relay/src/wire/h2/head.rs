//! Heads in HTTP/2: without the fields of a connection (RFC 9113 §8.2.2), and with `:authority` in the place of `Host`.

use http::header::{
    AUTHORIZATION, COOKIE, HOST, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING,
};
use http::request::Parts;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, Request, Uri, Version};

use crate::limits;
use crate::request::headers::text_bytes;

/// Returns the head of a request, whose parts are as for HTTP/1.1.
pub(super) fn request(parts: &Parts) -> Result<Request<()>, http::Error> {
    let authority = parts.headers.get(HOST).map_or(&b""[..], HeaderValue::as_bytes);
    let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let uri = Uri::builder().scheme(Scheme::HTTPS).authority(authority).path_and_query(path).build()?;
    let mut request =
        Request::builder().method(parts.method.clone()).uri(uri).version(Version::HTTP_2).body(())?;
    *request.headers_mut() = fields(&parts.headers);
    Ok(request)
}

/// Returns the fields of a head or of trailers.
pub(super) fn fields(headers: &HeaderMap) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers.iter().filter(|(name, _)| !is_of_connection(name)) {
        let mut value = value.clone();
        // Fields of many clients share one compression table: a secret in it could be guessed by the length of the
        // next head (RFC 7541 §7.1.3).
        value.set_sensitive(is_secret(name));
        fields.append(name, value);
    }
    fields
}

/// Returns true if a response head exceeds the limits of HTTP/1.1's heads.
pub(super) fn is_too_large(headers: &HeaderMap) -> bool {
    let bytes = text_bytes(headers) + headers.len() * FIELD_BYTES;
    headers.len() > limits::HEAD_FIELDS || bytes > limits::BUFFER_BYTES
}

/// Bytes of a field in HTTP/1.1 beside its name and value: `: ` and CRLF.
const FIELD_BYTES: usize = 4;

fn is_of_connection(name: &HeaderName) -> bool {
    matches!(*name, HOST | TRANSFER_ENCODING) || *name != TE && http1::is_hop_by_hop(name.as_str())
}

fn is_secret(name: &HeaderName) -> bool {
    matches!(*name, AUTHORIZATION | PROXY_AUTHORIZATION | COOKIE)
        || matches!(name.as_str(), "x-api-key" | "api-key" | "x-goog-api-key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_becomes_the_authority() {
        for (target, authority, expected) in [
            ("/v1/x?y", "a.example:81", "https://a.example:81/v1/x?y"),
            ("/", "[::1]:80", "https://[::1]:80/"),
            ("/x", "h:", "https://h:/x"),
        ] {
            let sent =
                Request::get(target).header(HOST, authority).header("te", "trailers").body(()).unwrap();
            let head = request(&sent.into_parts().0).unwrap();
            assert_eq!(head.uri().to_string(), expected);
            assert_eq!(head.headers().len(), 1, "{:?}", head.headers());
        }
    }

    #[test]
    fn options_of_the_server_keep_their_target() {
        let sent = Request::options("*").header(HOST, "h").body(()).unwrap();
        assert_eq!(request(&sent.into_parts().0).unwrap().uri().path(), "*");
    }

    #[test]
    fn fields_of_the_connection_are_removed_and_others_keep_their_order() {
        let sent = [
            ("host", "h"),
            ("a", "1"),
            ("transfer-encoding", "chunked"),
            ("b", "2"),
            ("connection", "close"),
            ("b", "3"),
            ("c", "4"),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(name, HeaderValue::from_static(value));
        }
        let left = fields(&headers);
        let left: Vec<_> =
            left.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(left, [("a", "1"), ("b", "2"), ("b", "3"), ("c", "4")]);
    }

    #[test]
    fn secrets_are_not_indexed() {
        let mut headers = HeaderMap::new();
        for name in ["authorization", "cookie", "x-api-key", "accept"] {
            headers.insert(name, HeaderValue::from_static("v"));
        }
        let sensitive: Vec<_> = fields(&headers)
            .iter()
            .filter(|(_, value)| value.is_sensitive())
            .map(|(name, _)| name.to_string())
            .collect();
        assert_eq!(sensitive, ["authorization", "cookie", "x-api-key"]);
    }
}
