//! The client's side of one connection: its socket, with or without TLS, its stage, and whether the client has left.
//!
//! The socket is shared between the engine, which reads and writes, and the connection's own future, which watches it:
//! an engine stops reading while it has unprocessed input or half-closing is allowed, and a client that leaves
//! meanwhile must still cancel its upstream at once (law 4).

mod first_bytes;
#[cfg(feature = "spike-engine")]
mod trial;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use connect::Stream;
use meter::Tick;
use tenant::CertificateNames;

use super::body_waker::BodyWaker;
use super::socket::{Output, Socket};
use super::tls::{HandshakeError, Tls};
use super::tunnel::UpstreamIo;
use super::write_progress::WriteProgress;
use crate::capacity::Permit;
use crate::holder::{Holder, Key};
use crate::proxy_header::{self, Source, Step};
use crate::session::Session;
use crate::state::WorkerState;
use crate::{clock, limits};

/// The stage of a connection: the event it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its first request.
    Fresh,
    /// Its next request.
    Idle,
    /// The rest of a head whose first bytes arrived.
    Head,
    /// The end of at least one request.
    Busy,
}

/// The upstream's side of a connection that switches protocols, and its session, if it is metered.
type Switched = (UpstreamIo<Stream>, Option<Box<Session>>);

/// One client connection.
pub(crate) struct Client {
    socket: Socket,
    /// The waker with which the engine drives the connection, with HTTP/1.
    pub(crate) waker: BodyWaker,
    /// Its session, if the listener has TLS. Boxed: it is large, and most connections do not have it.
    tls: Option<Box<Tls>>,
    /// The address at its other end, or the one that a trusted load balancer named there.
    peer: Cell<IpAddr>,
    /// True until the header of the PROXY protocol was read, where one is expected.
    awaits_header: Cell<bool>,
    /// Names the connection within its worker.
    pub(crate) number: u64,
    /// The holder that is charged for it; `None` for a trusted peer, whose requests are charged to their tenants.
    holder: RefCell<Option<Arc<Holder>>>,
    counted: RefCell<Permit>,
    /// Its place among all sockets, while it is served.
    socket_place: RefCell<Option<Permit>>,
    /// True once the kernel is set to end the connection when the client reads nothing.
    is_timed: Cell<bool>,
    pub(crate) writes: WriteProgress,
    /// Bytes read to detect the protocol, or put back, that the engine has not yet received.
    first: RefCell<Bytes>,
    /// Interim responses to write before anything else.
    interim: RefCell<BytesMut>,
    stage: Cell<Stage>,
    since: Cell<Tick>,
    /// The number of stage changes. A deadline with another number is outdated.
    stage_number: Cell<u64>,
    requests: Cell<usize>,
    /// Under HTTP/2 bytes may arrive without a request after them.
    http2: Cell<bool>,
    /// True if a request was answered before it was read completely.
    unread: Cell<bool>,
    /// The upstream's side of a connection that switches protocols.
    upstream_io: RefCell<Option<Switched>>,
    /// The tick at which the client of a tunnel last sent bytes.
    tunnel_read: Cell<Option<Tick>>,
    /// True while the trial serves the connection.
    #[cfg(feature = "spike-engine")]
    is_raw: Cell<bool>,
    /// The index of a tunnel's upstream, and the holder of the connection to it.
    tunnel_holder: RefCell<Option<(usize, Arc<Holder>)>>,
}

impl Client {
    /// A connection from `peer`. An IPv4 address mapped into IPv6 becomes IPv4.
    pub(crate) fn new(
        worker: &WorkerState,
        socket: Socket,
        tls: Option<Box<Tls>>,
        (peer, awaits_header): (IpAddr, bool),
        number: u64,
    ) -> Self {
        let peer = peer.to_canonical();
        let holder = holder(worker, peer);
        let mut counted = worker.capacities.connections.permit(holder.clone());
        counted.add(1);
        Self {
            socket,
            waker: BodyWaker::default(),
            tls,
            peer: Cell::new(peer),
            awaits_header: Cell::new(awaits_header),
            number,
            holder: RefCell::new(holder),
            counted: RefCell::new(counted),
            socket_place: RefCell::default(),
            is_timed: Cell::new(false),
            writes: WriteProgress::default(),
            first: RefCell::default(),
            interim: RefCell::default(),
            stage: Cell::new(Stage::Fresh),
            since: Cell::new(clock::now()),
            stage_number: Cell::new(0),
            requests: Cell::new(0),
            unread: Cell::new(false),
            upstream_io: RefCell::default(),
            tunnel_read: Cell::new(None),
            #[cfg(feature = "spike-engine")]
            is_raw: Cell::new(false),
            tunnel_holder: RefCell::default(),
            http2: Cell::new(false),
        }
    }

    /// Records that a request begins.
    pub(crate) fn enter(&self) {
        self.requests.set(self.requests.get() + 1);
        self.set_stage(Stage::Busy);
    }

    /// Records that a request ended.
    pub(crate) fn leave(&self) {
        self.requests.set(self.requests.get() - 1);
        if self.requests.get() == 0 {
            self.set_stage(Stage::Idle);
        }
    }

    /// Records that a request was answered before all of its body was read: the connection ends after the answer.
    pub(crate) fn leave_unread(&self) {
        self.unread.set(true);
    }

    /// Queues an interim response; the engine's next flush, in this turn, sends it.
    pub(crate) fn interim(&self, head: &[u8]) {
        self.interim.borrow_mut().extend_from_slice(head);
    }

    /// Stores the upstream's side, and the session, if it is metered, until the engine has sent the 101.
    pub(crate) fn switch(&self, upstream_io: UpstreamIo<Stream>, session: Option<Box<Session>>) {
        self.upstream_io.replace(Some((upstream_io, session)));
    }

    /// Returns true if the connection switches protocols.
    pub(crate) fn has_switched(&self) -> bool {
        self.upstream_io.borrow().is_some()
    }

    /// Takes the stored side of the upstream with this index: the connection is a tunnel from now on.
    pub(crate) fn switched(&self, upstream: usize) -> Option<Switched> {
        let switched = self.upstream_io.take();
        self.tunnel_read.set(switched.as_ref().map(|_| clock::now()));
        let slot = switched.as_ref().and_then(|(upstream_io, _)| upstream_io.places.0.as_ref());
        let holder = slot.and_then(Permit::holder);
        self.tunnel_holder.replace(holder.map(|holder| (upstream, Arc::clone(holder))));
        switched
    }

    /// The tick at which the client of a tunnel last sent bytes; `None` if the connection is not a tunnel.
    pub(crate) fn tunnel_read(&self) -> Option<Tick> {
        self.tunnel_read.get()
    }

    /// The holder of this tunnel's connection to the upstream with this index; `None` if the connection is not a tunnel
    /// to it, or no share limits its holder.
    pub(crate) fn tunnel_holder(&self, upstream: usize) -> Option<Arc<Holder>> {
        let held = self.tunnel_holder.borrow();
        held.as_ref().filter(|(to, _)| *to == upstream).map(|(_, holder)| Arc::clone(holder))
    }

    /// The number of requests in flight on it.
    pub(crate) fn requests(&self) -> usize {
        self.requests.get()
    }

    /// Returns true once the client has spoken HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.http2.get()
    }

    /// Returns the stage and its number.
    pub(crate) fn stage(&self) -> (Stage, u64) {
        (self.stage.get(), self.stage_number.get())
    }

    /// Sets the kernel to end the connection when its client reads nothing for `stall`. Only the kernel can measure
    /// that: a socket is writable again only when much of its buffer is free.
    pub(crate) fn end_unread_after(&self, stall: Duration) {
        if !self.is_timed.replace(true)
            && let Err(error) = self.socket.set_user_timeout(stall)
        {
            tracing::debug!(%error, "cannot set the timeout of a client's socket");
        }
    }

    /// Returns true if the kernel ended the connection because its client read nothing.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.writes.note(self.socket.take_error().as_ref());
        self.is_timed.get() && self.writes.has_timed_out()
    }

    /// The tick at which its stage began.
    pub(crate) fn since(&self) -> Tick {
        self.since.get()
    }

    /// Is ready when the socket has bytes, has ended or has failed.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_read_ready(cx).map(|_ready| ())
    }

    /// Reads from the socket, or from its session, into `buffer`.
    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let read = match &self.tls {
            None => ready!(self.poll_clear(cx, buffer)),
            Some(tls) => ready!(tls.poll_read((&self.socket, &self.writes), cx, buffer)),
        };
        match &read {
            Ok(0) => {}
            Ok(_) if self.tunnel_read.get().is_some() => self.tunnel_read.set(Some(clock::now())),
            Ok(_) => self.begin_head(),
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

    /// Announces the end of writing to a client with TLS, which otherwise takes the end for a truncation.
    fn poll_close(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(tls) = self.tls.as_ref().filter(|tls| !tls.is_handshaking()) else {
            return Poll::Ready(Ok(()));
        };
        tls.close();
        self.poll_records(cx, tls)
    }

    /// Returns the address at its other end, or the one that a trusted load balancer named there.
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer.get()
    }

    /// Returns true if its listener has TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The holder that is charged for it.
    pub(crate) fn holder(&self) -> Option<Arc<Holder>> {
        self.holder.borrow().clone()
    }

    /// Stores its place among all sockets, or removes it.
    pub(crate) fn set_socket_place(&self, place: Option<Permit>) {
        self.socket_place.replace(place);
    }

    /// Returns true until the header of the PROXY protocol was read, where one is expected.
    pub(crate) fn awaits_header(&self) -> bool {
        self.awaits_header.get()
    }

    /// Reads the header of the PROXY protocol, where one is expected: from then on the connection is one of the client
    /// that the header names.
    pub(crate) async fn read_proxy_header(&self, worker: &WorkerState) -> io::Result<()> {
        if !self.awaits_header.get() {
            return Ok(());
        }
        let mut header = Vec::new();
        let source = loop {
            match proxy_header::read(&header) {
                Step::Done(source) => break source,
                Step::Invalid => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "no header of the PROXY protocol",
                    ));
                }
                Step::More(more) => {
                    let filled = header.len();
                    header.resize(filled + more, 0);
                    let read = poll_fn(|cx| self.poll_clear(cx, &mut header[filled..])).await?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    header.truncate(filled + read);
                }
            }
        };
        self.awaits_header.set(false);
        let named = match source {
            Source::Client(address) => Some(address.to_canonical()),
            // It has no address, and nothing of the load balancer's trust.
            Source::Unknown => Some(Ipv4Addr::UNSPECIFIED.into()),
            Source::Balancer => None,
        };
        if let Some(peer) = named {
            let holder = holder(worker, peer);
            self.peer.set(peer);
            self.counted.borrow_mut().charge(holder.clone());
            if let Some(place) = &mut *self.socket_place.borrow_mut() {
                place.charge(holder.clone());
            }
            self.holder.replace(holder);
        }
        Ok(())
    }

    /// Establishes the session, if the listener has TLS.
    pub(crate) async fn handshake(&self) -> Result<(), HandshakeError> {
        let Some(tls) = &self.tls else { return Ok(()) };
        let done = poll_fn(|cx| tls.poll_handshake(&self.socket, cx)).await;
        if matches!(done, Err(HandshakeError::Http)) {
            // A new socket takes so few bytes.
            let _ = self.socket.try_write(Output::Slice(TLS_EXPECTED));
        }
        if matches!(done, Err(HandshakeError::Http | HandshakeError::Tls(_))) {
            self.leave_unread();
        }
        done
    }

    /// The names in the client's verified certificate, if it presented one.
    pub(crate) fn certificate(&self) -> Option<&Arc<CertificateNames>> {
        self.tls.as_ref()?.certificate()
    }

    /// Returns true if the listener has TLS and no session is established.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Returns once the client has left: its socket is reset, or closed on its side where half-closing is not allowed.
    /// Announcing the end of a session is closing.
    pub(crate) async fn gone(&self, half_close: bool) {
        match &self.tls {
            Some(tls) if !half_close => tokio::select! {
                () = self.socket.ended(false) => {}
                () = tls.closed_by_client(&self.socket, &self.writes) => {}
            },
            _ => self.socket.ended(half_close).await,
        }
    }

    /// Returns once the client of a tunnel has left while nothing is read from it: its socket is reset or, in a
    /// session, has been closed for [`limits::CLIENT_CLOSE`]. Clients of other tunnels may close their half.
    pub(crate) async fn left_tunnel(&self, is_session: bool) {
        let closed = async {
            self.gone(false).await;
            tokio::time::sleep(limits::CLIENT_CLOSE).await;
        };
        tokio::select! {
            () = self.gone(true) => {}
            () = closed, if is_session => {}
        }
    }

    /// Ends the connection after its last response: announces the end to a client with TLS, within a limited time.
    /// After an early answer, and if the client has sent more, also ends writing, and reads on, because closing with
    /// unread bytes would cause a reset that destroys the answer.
    pub(crate) async fn linger(&self) {
        // One byte is enough: the content is not needed any more.
        if matches!(self.socket.try_read(&mut [0]), Ok(1..)) {
            self.leave_unread();
        }
        if self.tls.is_none() && !self.unread.get() {
            return;
        }
        let end = async {
            if poll_fn(|cx| self.poll_close(cx)).await.is_err()
                || !self.unread.get()
                || self.socket.shutdown().is_err()
            {
                return;
            }
            let mut left = limits::LINGER_BYTES;
            // On the heap, because every connection's future has space for this one, and few linger.
            let mut away = vec![0; limits::LINGER_READ_BYTES];
            while left > 0 {
                match poll_fn(|cx| self.poll_clear(cx, &mut away)).await {
                    Ok(0) | Err(_) => break,
                    Ok(read) => left = left.saturating_sub(read),
                }
            }
        };
        // The end of either direction is the end of the connection.
        let _ = tokio::time::timeout(limits::LINGER, end).await;
    }

    /// Begins the stage of the next head, if the connection was idle.
    fn begin_head(&self) {
        if !self.http2.get() && self.stage.get() == Stage::Idle {
            self.set_stage(Stage::Head);
        }
    }

    fn set_stage(&self, stage: Stage) {
        self.stage.set(stage);
        self.since.set(clock::now());
        self.stage_number.set(self.stage_number.get().wrapping_add(1));
    }

    /// Writes to the socket, or makes records and sends them in this turn (law 2). Records that the socket does not
    /// take wait for the next write or flush, which then takes no bytes before them.
    fn poll_output(&self, cx: &mut Context<'_>, output: Output<'_>) -> Poll<io::Result<usize>> {
        let Some(tls) = &self.tls else { return self.poll_socket(cx, |socket| socket.try_write(output)) };
        // At most one write's records wait: a client that reads slowly stops the engine, as without TLS.
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
            match self.socket.poll_write_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => {
                    self.writes.block();
                    return Poll::Pending;
                }
            }
            match write(&self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.writes.wrote(&written);
                    return Poll::Ready(written);
                }
            }
        }
    }

    /// Writes the interim responses.
    fn poll_interim(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.interim.borrow().is_empty() {
            let mut interim = self.interim.borrow_mut();
            let written = ready!(self.poll_output(cx, Output::Slice(&interim)))?;
            interim.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

/// Returns the holder that is charged for a connection of `peer`.
fn holder(worker: &WorkerState, peer: IpAddr) -> Option<Arc<Holder>> {
    let is_trusted = worker.control.tenants.load().trusts(peer);
    (!is_trusted).then(|| worker.capacities.holders.of(Key::network(peer)))
}

/// The answer to HTTP on a listener with TLS.
const TLS_EXPECTED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 44\r\n\
    Connection: close\r\n\r\nThis listener expects TLS: use an https URL\n";
