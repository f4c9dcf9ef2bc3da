//! The body of an upstream's response.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::http2::Http2Body;
use crate::engine::Cut;

/// The body of an upstream's response.
pub(crate) enum UpstreamAnswer {
    /// Over HTTP/1.1.
    Http1(Incoming),
    /// Over HTTP/2.
    Http2(Http2Body),
}

impl Body for UpstreamAnswer {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Self::Http1(body) => Pin::new(body).poll_frame(cx).map_err(|_cause| Cut),
            Self::Http2(body) => Pin::new(body).poll_frame(cx).map_err(|_cause| Cut),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
        }
    }
}
