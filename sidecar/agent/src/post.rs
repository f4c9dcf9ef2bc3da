//! One attempt to post. The response body is read only so that the connection can be reused.

use std::fmt;
use std::time::Duration;

use ureq::http::Request;

use crate::agent::{Agent, Options};
use crate::endpoint::Endpoint;
use crate::failure::Failure;

/// Posts to one address.
pub struct Post {
    agent: Agent,
    endpoint: Endpoint,
    refuses_pages: bool,
}

impl Post {
    /// Returns the sender to an address. `roots`: trusted certificates (DER) in place of the system's. `within`: the
    /// timeout of an attempt. `through_proxy`: uses the proxy of the environment (`HTTPS_PROXY` and the like).
    pub fn new(endpoint: Endpoint, roots: Option<&[Vec<u8>]>, within: Duration, through_proxy: bool) -> Self {
        let secure = endpoint.uri().scheme_str() == Some("https");
        let (within, body_max_bytes) = (Some(within), RESPONSE_BODY_MAX_BYTES);
        let options = Options { secure, roots, through_proxy, within, redirects: 0, body_max_bytes };
        Self { agent: Agent::new(&options), endpoint, refuses_pages: false }
    }

    /// Makes a success with an HTML page a failure: a login page or a web UI at the address accepts nothing.
    #[must_use]
    pub fn refusing_pages(self) -> Self {
        Self { refuses_pages: true, ..self }
    }

    /// Posts a body with these header fields.
    ///
    /// # Errors
    /// If there is no response in time, its status is not a success, or it is an HTML page that is refused.
    pub fn attempt(&self, headers: &[(&str, &str)], body: &[u8]) -> Result<(), Failure> {
        let mut request = Request::post(self.endpoint.uri());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let reply = self.agent.send(request, body).map_err(|error| Failure::unreachable(&error))?;
        let retry_after = reply.headers.get("retry-after").and_then(|text| text.to_str().ok());
        let is_html = reply.headers.get("content-type").is_some_and(|kind| is_html(kind.as_bytes()));
        // The status, the content type and whether there is a body decide; its contents do not.
        let has_body = !reply.body.is_ok_and(|body| body.is_empty());
        match Failure::of_status(reply.status, retry_after) {
            Some(failure) => Err(failure),
            None if self.refuses_pages && is_html && has_body => Err(Failure::page(reply.status)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Post({})", self.endpoint)
    }
}

impl fmt::Display for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

/// Returns true for the media type of HTML, with or without parameters.
fn is_html(content_type: &[u8]) -> bool {
    const HTML: &[u8] = b"text/html";
    content_type.trim_ascii_start().get(..HTML.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(HTML))
}

/// Bytes of a response body that are read; receivers answer `ok`.
const RESPONSE_BODY_MAX_BYTES: u64 = 64 * 1024;
