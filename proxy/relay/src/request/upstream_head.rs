//! The head of a request for the upstream.

use http::Version;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING};
use http::request;
use http::uri::{PathAndQuery, Uri};

use super::headers;
use crate::Upstream;

/// The target for the upstream: origin form, under its prefix, without its first `prefix_len` bytes.
pub(crate) fn target(uri: &Uri, prefix_len: usize, upstream: &Upstream) -> Result<Uri, http::Error> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if path == "*" {
        return Ok(Uri::from(PathAndQuery::from_static("*")));
    }
    if prefix_len == 0 && upstream.prefix.is_empty() && uri.authority().is_none() {
        return Ok(uri.clone());
    }
    let path = path.get(prefix_len..).unwrap_or(path);
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(Uri::from(PathAndQuery::try_from(format!("{}{slash}{path}", upstream.prefix))?))
}

/// Changes the head for the next hop, and only what must differ.
pub(crate) fn rewrite(
    parts: &mut request::Parts,
    uri: Uri,
    upstream: &Upstream,
    upgrade: bool,
    has_body: bool,
) {
    parts.headers = headers::for_upstream(std::mem::take(&mut parts.headers), upgrade);
    // A hosted provider serves many names at one address, and only by its own.
    if let Some(authority) = &upstream.authority {
        if let Ok(authority) = HeaderValue::from_str(authority) {
            parts.headers.insert(HOST, authority);
        }
        // In absolute form, and under HTTP/2, the target names the host (RFC 9112 §3.2.2).
    } else if let Some(authority) = parts.uri.authority() {
        if let Ok(authority) = HeaderValue::from_str(authority.as_str()) {
            parts.headers.insert(HOST, authority);
        }
    } else if !parts.headers.contains_key(HOST) {
        // HTTP/1.0 may omit it; the upstream connection uses 1.1.
        if let Ok(host) = HeaderValue::from_str(&upstream.target.address().authority()) {
            parts.headers.insert(HOST, host);
        }
    }
    if parts.version == Version::HTTP_2 {
        // HTTP/2 needs neither field for a body.
        if has_body && !parts.headers.contains_key(CONTENT_LENGTH) {
            parts.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
    parts.uri = uri;
    parts.version = Version::HTTP_11;
}
