//! The bodies of responses.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};

use crate::render::Decompressing;
use crate::stream::Events;

/// The body of any response.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    /// All bytes, in memory.
    Whole(Full<Bytes>),
    /// A page that is decompressed as the peer reads it.
    Page(Box<Decompressing>),
    /// The events of a stream.
    Events(Events),
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(whole) => Pin::new(whole).poll_frame(cx).map_err(|never| match never {}),
            Self::Page(page) => Pin::new(&mut **page).poll_frame(cx),
            Self::Events(events) => events.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Page(page) => page.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Page(page) => page.size_hint(),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
