//! A client's socket, for hyper to read and write.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::rt::ReadBufCursor;

use super::Hyper;
use crate::engine::net::client::Client;
use crate::engine::net::read_budget::ReadBudget;
use crate::engine::net::socket::Output;

/// A client's socket with hyper's traits.
pub(crate) struct ClientIo {
    client: Rc<Client>,
    engine: Rc<Hyper>,
    budget: ReadBudget,
}

impl ClientIo {
    pub(crate) fn new(client: &Rc<Client>, engine: &Rc<Hyper>) -> Self {
        let budget = ReadBudget::new(&engine.worker.turn);
        Self { client: Rc::clone(client), engine: Rc::clone(engine), budget }
    }
}

impl hyper::rt::Read for ClientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(first) = self.client.take_first(into.remaining()) {
            into.put_slice(&first);
            return Poll::Ready(Ok(()));
        }
        let Self { client, engine, budget } = &mut *self;
        let limit = ready!(budget.poll(cx));
        let mut buffer = engine.read_buffer.borrow_mut();
        let len = buffer.len().min(into.remaining()).min(limit);
        let read = ready!(client.poll_read(cx, &mut buffer[..len]))?;
        into.put_slice(&buffer[..read]);
        budget.spend(read);
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for ClientIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.client.poll_write(cx, Output::Slice(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.client.poll_write(cx, Output::Slices(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.poll_shutdown(cx)
    }
}
