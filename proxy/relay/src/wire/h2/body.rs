//! The body of a response over HTTP/2. Reading it opens the stream's window for more.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

/// A response body. It fails if it is shorter or longer than its `Content-Length`, or if the stream is reset.
pub(super) struct Http2Body {
    stream: RecvStream,
    /// The bytes that are still to come, if they are known.
    left: Option<u64>,
    /// True after the last byte: trailers may follow.
    is_read: bool,
    /// True if its head says that it is empty. The end of its stream may come in a later frame.
    is_empty: bool,
}

impl Http2Body {
    /// Returns the response with its body. `is_head`: it answers a `HEAD`.
    pub(super) fn of(response: Response<RecvStream>, is_head: bool) -> Response<Self> {
        let length =
            response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        // These have no content (RFC 9110 §6.4.1).
        let is_empty = is_head
            || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
            || length == Some(0);
        response.map(|stream| Self { stream, left: length, is_read: false, is_empty })
    }

    /// Returns true if its head says that it is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }
}

impl Body for Http2Body {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        while !self.is_read {
            match ready!(self.stream.poll_data(cx)) {
                // An empty frame that ends the stream.
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(bytes)) => {
                    // It fails for a stream that has ended, which has no window.
                    let _ = self.stream.flow_control().release_capacity(bytes.len());
                    self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.is_read = true,
            }
        }
        let trailers = ready!(self.stream.poll_trailers(cx))?;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty || self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
