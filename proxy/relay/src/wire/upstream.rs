//! A connection to an upstream, of either protocol.

use std::io;
use std::task::{Context, Poll};

use http::request::Parts;

use super::h1::Http1Up;
use super::h2::up::Http2Up;
use super::writer::Writer;
use super::{Buffers, Framing, Part, Received, Take, Unanswered, Up, Wire};
use crate::capacity::Permit;
use crate::conn::tunnel::UpstreamIo;
use crate::request::reject::Stop;
use crate::wire::failure::SendFailure;

/// A connection to an upstream.
#[expect(clippy::large_enum_variant, reason = "most connections have the larger one")]
pub(crate) enum Upstream {
    Http1(Http1Up),
    /// Boxed: it is large, and few upstreams have it.
    Http2(Box<Http2Up>),
}

/// Calls the connection, whatever its protocol is.
macro_rules! on {
    ($upstream:expr, $up:ident => $call:expr) => {
        match $upstream {
            Upstream::Http1($up) => $call,
            Upstream::Http2($up) => $call,
        }
    };
}

impl Upstream {
    /// Takes over the request of another HTTP/1.1 connection, on which nothing of it was sent.
    pub(crate) fn take_over(&mut self, other: &mut Self) {
        if let (Self::Http1(up), Self::Http1(other)) = (self, other) {
            up.take_over(other);
        }
    }

    /// Returns true if only the end of the response is missing. In HTTP/1.1, the end comes with the last byte.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::Http2(up) if up.is_whole())
    }

    /// Returns the socket of a connection whose server switched protocols.
    pub(crate) fn into_io(self) -> Option<UpstreamIo> {
        match self {
            Self::Http1(up) => up.into_io(),
            Self::Http2(_) => None,
        }
    }
}

impl Wire for Upstream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        on!(self, up => up.poll_read(cx, buffer))
    }

    fn parts(
        &mut self,
        received: Received<'_>,
        buffers: &Buffers,
        take: impl FnMut(Part<'_>) -> Result<Take, Stop>,
    ) -> Result<(), Stop> {
        on!(self, up => up.parts(received, buffers, take))
    }

    fn writer(&mut self) -> &mut Writer {
        on!(self, up => up.writer())
    }

    fn write(&mut self, cx: &mut Context<'_>, slice: &[u8], buffers: &Buffers) -> io::Result<()> {
        on!(self, up => up.write(cx, slice, buffers))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<io::Result<()>> {
        on!(self, up => up.poll_flush(cx, buffers))
    }
}

impl Up for Upstream {
    fn request(&mut self, parts: &Parts, received: &[u8], framing: Framing) {
        on!(self, up => up.request(parts, received, framing));
    }

    fn take_slot(&mut self) -> Option<Permit> {
        on!(self, up => up.take_slot())
    }

    fn release(&mut self, may_stay: bool) {
        on!(self, up => up.release(may_stay));
    }

    fn may_repeat(&self) -> bool {
        on!(self, up => up.may_repeat())
    }

    fn take_back(&mut self, cause: &SendFailure) -> Option<Unanswered> {
        on!(self, up => up.take_back(cause))
    }
}
