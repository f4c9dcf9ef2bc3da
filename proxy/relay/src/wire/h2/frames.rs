//! The frames of a body, which are read as slices.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};

/// A body, and the rest of a frame of it.
pub(super) struct Frames<B> {
    body: B,
    ahead: Bytes,
}

impl<B: Body<Data = Bytes> + Unpin> Frames<B> {
    /// A body of which nothing was read.
    pub(super) fn new(body: B) -> Self {
        Self { body, ahead: Bytes::new() }
    }

    /// Reads the next slice; ready with its length, and with the end of the body, or an error, if that follows the slice.
    /// `has_trailers`: trailers may follow the last byte of a known length.
    #[expect(clippy::type_complexity, reason = "an alias would hide what is read")]
    pub(super) fn poll_slice(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        has_trailers: bool,
    ) -> Poll<(usize, Option<Result<HeaderMap, B::Error>>)> {
        let Self { body, ahead } = self;
        let mut last = None;
        if ahead.is_empty() && !body.is_end_stream() {
            match ready!(Pin::new(&mut *body).poll_frame(cx)).map(|read| read.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => *ahead = data,
                Some(Ok(Err(frame))) => last = Some(Ok(frame.into_trailers().unwrap_or_default())),
                Some(Err(error)) => last = Some(Err(error)),
                None => last = Some(Ok(HeaderMap::new())),
            }
        }
        let read = ahead.split_to(ahead.len().min(buffer.len()));
        buffer[..read.len()].copy_from_slice(&read);
        // The peer may leave its stream open after the last byte of a known length.
        if self.is_whole() && (!has_trailers || self.body.is_end_stream()) {
            last.get_or_insert_with(|| Ok(HeaderMap::new()));
        }
        Poll::Ready((read.len(), last))
    }

    /// Returns true if no more bytes follow.
    pub(super) fn is_whole(&self) -> bool {
        let Self { body, ahead } = self;
        ahead.is_empty() && (body.is_end_stream() || body.size_hint().exact() == Some(0))
    }
}
