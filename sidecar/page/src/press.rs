//! Scrape pages on their way out. The laws: a page is printed on a thread of its own, so that a
//! probe is answered meanwhile; at most [`PRINTINGS`] are printed at once; and a scraper that reads
//! slowly holds the page compressed, unpacked again a piece at a time if it wants it plain.

use std::io::{self, BufWriter, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderValue, RETRY_AFTER, VARY};
use hyper::{Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::limits::{PIECE_BYTES, PRINTING_WAIT, PRINTINGS};
use crate::route;
use crate::source::Scrape;

/// The body of any answer.
pub(crate) type Answered = Either<Full<Bytes>, Unpacked>;

/// The few places where a page is printed.
#[derive(Debug)]
pub(crate) struct Press(Semaphore);

impl Default for Press {
    fn default() -> Self {
        Self(Semaphore::new(PRINTINGS))
    }
}

impl Press {
    /// Prints a page, once there is a place for it.
    pub(crate) async fn print(&self, scrape: Scrape, gzip: bool) -> Response<Answered> {
        let Ok(place) = timeout(PRINTING_WAIT, self.0.acquire()).await else {
            let mut response = route::text(StatusCode::SERVICE_UNAVAILABLE, BUSY.to_owned());
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return response.map(Either::Left);
        };
        let content_type = scrape.content_type;
        let printed = spawn_blocking(move || Packed::print(scrape)).await;
        drop(place);
        // A page that panicked was reported when it did.
        let Ok(Ok(packed)) = printed else {
            let broken = "the page could not be printed; the log says why\n".to_owned();
            return route::text(StatusCode::INTERNAL_SERVER_ERROR, broken).map(Either::Left);
        };
        let mut response = if gzip {
            let mut response = route::respond(content_type, Either::Left(Full::new(packed.bytes)));
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        } else {
            route::respond(content_type, Either::Right(Unpacked::new(packed)))
        };
        response.headers_mut().insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
        response
    }
}

/// A page, compressed.
#[derive(Debug)]
struct Packed {
    bytes: Bytes,
    /// Bytes of the page.
    length: u64,
}

impl Packed {
    fn print(scrape: Scrape) -> io::Result<Self> {
        let mut page = Counted { to: GzEncoder::new(Vec::new(), Compression::fast()), length: 0 };
        let mut buffer = BufWriter::with_capacity(PIECE_BYTES, &mut page);
        (scrape.write)(&mut buffer)?;
        buffer.flush()?;
        drop(buffer);
        Ok(Self { length: page.length, bytes: page.to.finish()?.into() })
    }
}

/// Counts what passes.
struct Counted<W> {
    to: W,
    length: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.to.write(bytes)?;
        self.length += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A page that is unpacked as fast as it is read.
#[derive(Debug)]
pub(crate) struct Unpacked {
    from: GzDecoder<io::Cursor<Bytes>>,
    left: u64,
}

impl Unpacked {
    fn new(packed: Packed) -> Self {
        Self { from: GzDecoder::new(io::Cursor::new(packed.bytes)), left: packed.length }
    }
}

impl Body for Unpacked {
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

/// Whether an answer may be compressed: gzip, or anything, with a `q` that is not zero.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let fields =
        headers.get_all(hyper::header::ACCEPT_ENCODING).iter().filter_map(|field| field.to_str().ok());
    let mut any = false;
    for coding in fields.flat_map(|field| field.split(',')) {
        let mut words = coding.split(';').map(str::trim);
        let name = words.next().unwrap_or_default();
        let quality = words.find_map(|word| word.strip_prefix("q=").or_else(|| word.strip_prefix("Q=")));
        let wanted = quality.is_none_or(|q| q.parse::<f64>().is_ok_and(|q| q > 0.0));
        match name {
            name if ["gzip", "x-gzip"].iter().any(|gzip| name.eq_ignore_ascii_case(gzip)) => return wanted,
            "*" => any = wanted,
            _ => {}
        }
    }
    any
}

const BUSY: &str =
    "too many pages are being printed at once: ask again in a second, or with fewer scrapers\n";

#[cfg(test)]
#[path = "press_tests.rs"]
mod tests;
