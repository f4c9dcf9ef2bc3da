//! The client's side of one connection: its socket, with or without TLS, its stage, and whether the client has left.
//!
//! The socket is watched while it is not read, because a client that leaves then must still cancel its upstream at once
//! (law 4).

mod end;
mod first_bytes;
mod opening;
mod payer;
mod stage;
mod tunnel;

use std::cell::{Cell, RefCell};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use meter::Tick;

use self::payer::Payer;
pub(crate) use self::stage::Stage;
use self::stage::Stages;
use self::tunnel::Tunnel;
use super::socket::{Output, Socket};
use super::task::Task;
use super::tls::Tls;
use super::write_progress::WriteProgress;
use crate::clock;
use crate::holder::Holder;
use crate::state::WorkerState;

/// One client connection.
pub(crate) struct Client {
    // First the fields that each frame uses, so that they are in few cache lines.
    pub(crate) writes: WriteProgress,
    /// Interim responses to write before anything else.
    interim: RefCell<BytesMut>,
    /// Its session, if the listener has TLS. Boxed: it is large, and most connections do not have it.
    tls: Option<Box<Tls>>,
    socket: Socket,
    /// The number of the connection within its worker.
    pub(crate) number: u64,
    payer: RefCell<Payer>,
    stages: Cell<Stages>,
    /// The task of a connection whose protocol can announce its end, which is woken for that.
    task: Task,
    /// Bytes that were read to detect the protocol, or put back, and not taken.
    first: RefCell<Bytes>,
    /// True if a request was answered before it was read completely.
    unread: Cell<bool>,
    /// Set if it is a tunnel.
    tunnel: RefCell<Option<Tunnel>>,
    /// True once the kernel probes whether the client is still there.
    is_probed: Cell<bool>,
}

impl Client {
    /// A connection from `peer`.
    pub(crate) fn new(
        worker: &WorkerState,
        socket: Socket,
        tls: Option<Box<Tls>>,
        peer: (IpAddr, bool),
        number: u64,
    ) -> Self {
        Self {
            socket,
            tls,
            number,
            payer: RefCell::new(Payer::new(worker, peer)),
            stages: Cell::new(Stages::new(clock::now())),
            task: Task::default(),
            writes: WriteProgress::default(),
            first: RefCell::default(),
            interim: RefCell::default(),
            unread: Cell::new(false),
            tunnel: RefCell::default(),
            is_probed: Cell::new(false),
        }
    }

    /// Queues an interim response, which the next write or flush of this turn sends.
    pub(crate) fn interim(&self, head: &[u8]) {
        self.interim.borrow_mut().extend_from_slice(head);
    }

    /// Records that the connection is a tunnel to the upstream with this index from now on. `holder`: that of the connection
    /// to it.
    pub(crate) fn begin_tunnel(&self, upstream: usize, holder: Option<&Arc<Holder>>) {
        let holder = holder.map(|holder| (upstream, Arc::clone(holder)));
        self.tunnel.replace(Some(Tunnel { read: clock::now(), holder }));
    }

    /// The tick at which the client of a tunnel last sent bytes; `None` if the connection is not a tunnel.
    pub(crate) fn tunnel_read(&self) -> Option<Tick> {
        self.tunnel.borrow().as_ref().map(|tunnel| tunnel.read)
    }

    /// The holder of this tunnel's connection to the upstream with this index; `None` if the connection is not a tunnel
    /// to it, or no share limits its holder.
    pub(crate) fn tunnel_holder(&self, upstream: usize) -> Option<Arc<Holder>> {
        let tunnel = self.tunnel.borrow();
        let (to, holder) = tunnel.as_ref()?.holder.as_ref()?;
        (*to == upstream).then(|| Arc::clone(holder))
    }

    /// Returns true if its socket has nothing to read, as far as the runtime knows. Registers no task.
    pub(crate) fn is_quiet(&self) -> bool {
        self.socket.is_quiet()
    }

    /// Reads from the socket, or from its session, into `buffer`.
    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let read = match &self.tls {
            None => ready!(self.poll_clear(cx, buffer)),
            Some(tls) => ready!(tls.poll_read((&self.socket, &self.writes), cx, buffer)),
        };
        match &read {
            Ok(0) => {}
            Ok(_) => match &mut *self.tunnel.borrow_mut() {
                Some(tunnel) => tunnel.read = clock::now(),
                None => self.begin_head(),
            },
            Err(error) => self.writes.note(Some(error)),
        }
        Poll::Ready(read)
    }

    fn poll_clear(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            match self.socket.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }

    /// Writes interim responses, then these bytes.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, output: Output<'_>) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(cx))?;
        self.poll_output(cx, output)
    }

    /// Sends everything that was written.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_interim(cx))?;
        match &self.tls {
            None => Poll::Ready(Ok(())),
            Some(tls) => self.poll_records(cx, tls),
        }
    }

    /// Announces the end of writing, then shuts it down.
    pub(crate) fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_close(cx))?;
        Poll::Ready(self.socket.shutdown())
    }

    /// Writes to the socket, or makes records and sends them in this turn (law 2). Records that the socket does not
    /// take wait for the next write or flush, which then takes no bytes before them.
    fn poll_output(&self, cx: &mut Context<'_>, output: Output<'_>) -> Poll<io::Result<usize>> {
        let Some(tls) = &self.tls else { return self.poll_socket(cx, |socket| socket.try_write(output)) };
        // At most one write's records wait: a client that reads slowly stops its upstream, as without TLS.
        ready!(self.poll_records(cx, tls))?;
        let written = tls.write(output)?;
        match self.poll_records(cx, tls) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(written)),
        }
    }

    /// Sends the records of its session.
    fn poll_records(&self, cx: &mut Context<'_>, tls: &Tls) -> Poll<io::Result<()>> {
        while tls.wants_write() {
            ready!(self.poll_socket(cx, |socket| tls.write_to(socket)))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes once to the socket; records the time in which it accepts no bytes.
    fn poll_socket(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&Socket) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            // The socket is usually ready: the task is registered only if it is not.
            match write(&self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.writes.wrote(&written);
                    return Poll::Ready(written);
                }
            }
            match self.socket.poll_write_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => {
                    self.writes.block();
                    return Poll::Pending;
                }
            }
        }
    }

    /// Writes the interim responses.
    #[inline]
    fn poll_interim(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.interim.borrow().is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.poll_queued(cx)
    }

    /// Writes the interim responses, of which there are some.
    #[cold]
    fn poll_queued(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.interim.borrow().is_empty() {
            let mut interim = self.interim.borrow_mut();
            let written = ready!(self.poll_output(cx, Output::Slice(&interim)))?;
            interim.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}
