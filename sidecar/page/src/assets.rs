//! The files of the live page, which `web/` builds. They are part of the binary.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, VARY};
use hyper::{Response, StatusCode};

use crate::render::accepts_gzip;
use crate::route::respond;

/// The files: path, media type and content.
const FILES: [(&str, &str, &[u8]); 4] = [
    ("/", "text/html; charset=utf-8", include_bytes!("../web/built/index.html")),
    ("/assets/app.js", "text/javascript; charset=utf-8", include_bytes!("../web/built/app.js")),
    ("/assets/app.css", "text/css; charset=utf-8", include_bytes!("../web/built/app.css")),
    ("/assets/icon.svg", "image/svg+xml", include_bytes!("../web/built/icon.svg")),
];

/// The files, as they are sent.
#[derive(Debug)]
pub(crate) struct Assets([Asset; FILES.len()]);

#[derive(Debug)]
struct Asset {
    path: &'static str,
    content_type: &'static str,
    /// Plain, and compressed; each with its entity tag.
    variants: [(Bytes, HeaderValue); 2],
}

impl Default for Assets {
    fn default() -> Self {
        Self(FILES.map(|(path, content_type, plain)| {
            let variants = [Bytes::from_static(plain), gzip(plain)];
            let variants = variants.map(|bytes| {
                let tag = format!("\"{}\"", blake3::hash(&bytes).to_hex());
                (bytes, HeaderValue::try_from(tag).expect("hexadecimal digits are a field value"))
            });
            Asset { path, content_type, variants }
        }))
    }
}

impl Assets {
    /// Returns the response of a path; `None` if it is not a file.
    pub(crate) fn answer(&self, path: &str, headers: &HeaderMap) -> Option<Response<Full<Bytes>>> {
        let Asset { content_type, variants, .. } = self.0.iter().find(|asset| asset.path == path)?;
        let is_gzip = accepts_gzip(headers);
        let (bytes, tag) = &variants[usize::from(is_gzip)];
        let is_known = has_tag(headers, tag);
        let body = if is_known { Bytes::new() } else { bytes.clone() };
        let mut response = respond(content_type, Full::new(body));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let fields = response.headers_mut();
        fields.insert(ETAG, tag.clone());
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        fields.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if is_gzip {
            fields.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        Some(response)
    }
}

fn gzip(plain: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let whole = encoder.write_all(plain).and_then(|()| encoder.finish());
    whole.expect("a Vec takes any bytes").into()
}

/// Returns true if `If-None-Match` has the tag.
fn has_tag(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let fields = headers.get_all(IF_NONE_MATCH).iter().filter_map(|field| field.to_str().ok());
    let mut tags = fields.flat_map(|field| field.split(',')).map(str::trim);
    // A cache that transforms the content weakens the tag.
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known).as_bytes() == tag.as_bytes())
}
