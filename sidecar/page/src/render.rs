//! Rendering and delivery of scrape pages and of long answers. Invariants: a page is rendered on a thread of its own, so that probes are
//! answered meanwhile; at most [`MAX_CONCURRENT_SCRAPES`] are rendered at once; and for a slow scraper the page is held
//! compressed, and decompressed in pieces if the scraper does not accept gzip.

use std::io::{self, BufWriter, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderValue, RETRY_AFTER, VARY};
use hyper::{Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::body::ResponseBody;
use crate::limits::{MAX_CONCURRENT_SCRAPES, PIECE_BYTES, RENDER_MAX_WAIT};
use crate::route;
use crate::source::Content;

/// The renderer of content, with a bounded concurrency.
#[derive(Debug)]
pub(crate) struct Renderer(Semaphore);

impl Default for Renderer {
    fn default() -> Self {
        Self(Semaphore::new(MAX_CONCURRENT_SCRAPES))
    }
}

impl Renderer {
    /// Renders a page, once a permit is free.
    pub(crate) async fn render(&self, content: Content, gzip: bool) -> Response<ResponseBody> {
        let content_type = content.content_type;
        let Ok(permit) = timeout(RENDER_MAX_WAIT, self.0.acquire()).await else {
            let mut response = route::error(content_type, StatusCode::SERVICE_UNAVAILABLE, BUSY);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return response.map(ResponseBody::Whole);
        };
        let rendered = spawn_blocking(move || Compressed::render(content)).await;
        drop(permit);
        let page = match rendered {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => return failed(content_type, &error.to_string()),
            // The panic hook already reported a panic.
            Err(_) => return failed(content_type, "it could not be rendered; the log has the error"),
        };
        let mut response = if gzip {
            let mut response = route::respond(content_type, ResponseBody::Whole(Full::new(page.bytes)));
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        } else {
            route::respond(content_type, ResponseBody::Page(Box::new(Decompressing::new(page))))
        };
        response.headers_mut().insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
        response
    }
}

/// A compressed page.
#[derive(Debug)]
struct Compressed {
    bytes: Bytes,
    /// Uncompressed bytes of the page.
    length: u64,
}

impl Compressed {
    fn render(content: Content) -> io::Result<Self> {
        let mut page = Counted { to: GzEncoder::new(Vec::new(), Compression::fast()), length: 0 };
        let mut buffer = BufWriter::with_capacity(PIECE_BYTES, &mut page);
        (content.write)(&mut buffer)?;
        buffer.flush()?;
        drop(buffer);
        Ok(Self { length: page.length, bytes: page.to.finish()?.into() })
    }
}

/// A writer that counts bytes.
struct Counted<W> {
    to: W,
    length: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A body that decompresses a page as the peer reads it.
#[derive(Debug)]
pub(crate) struct Decompressing {
    from: GzDecoder<io::Cursor<Bytes>>,
    left: u64,
}

impl Decompressing {
    fn new(page: Compressed) -> Self {
        Self { from: GzDecoder::new(io::Cursor::new(page.bytes)), left: page.length }
    }
}

impl Body for Decompressing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(this.left).unwrap_or(usize::MAX))];
        let read = this.from.read_exact(&mut piece);
        this.left -= piece.len() as u64;
        Poll::Ready(Some(read.map(|()| Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Returns true if `Accept-Encoding` has gzip or `*` with a `q` other than 0.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let fields =
        headers.get_all(hyper::header::ACCEPT_ENCODING).iter().filter_map(|field| field.to_str().ok());
    let mut any = false;
    for coding in fields.flat_map(|field| field.split(',')) {
        let mut words = coding.split(';').map(str::trim);
        let name = words.next().unwrap_or_default();
        let quality = words.find_map(|word| word.strip_prefix("q=").or_else(|| word.strip_prefix("Q=")));
        let accepted = quality.is_none_or(|q| q.parse::<f64>().is_ok_and(|q| q > 0.0));
        match name {
            name if ["gzip", "x-gzip"].iter().any(|gzip| name.eq_ignore_ascii_case(gzip)) => return accepted,
            "*" => any = accepted,
            _ => {}
        }
    }
    any
}

fn failed(content_type: &'static str, why: &str) -> Response<ResponseBody> {
    route::error(content_type, StatusCode::INTERNAL_SERVER_ERROR, why).map(ResponseBody::Whole)
}

const BUSY: &str = "too many concurrent requests: retry in a second, or use fewer scrapers";

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
