//! The client's side of one connection: its socket, its stage, and whether the client has left.
//!
//! The socket is shared between the engine, which reads and writes, and the connection's own future, which watches it:
//! an engine stops reading while it has unprocessed input or half-closing is allowed, and a client that leaves
//! meanwhile must still cancel its upstream at once (law 4).

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use connect::Stream;
use meter::Tick;
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::pace::Pace;
use super::tunnel::UpstreamIo;
use crate::capacity::Permit;
use crate::holder::{Holder, Key};
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
    stream: TcpStream,
    /// The address at its other end.
    pub(crate) peer: IpAddr,
    /// Names the connection within its worker.
    pub(crate) number: u64,
    /// The holder that is charged for it; `None` for a trusted peer, whose requests are charged to their tenants.
    pub(crate) holder: Option<Arc<Holder>>,
    _counted: Permit,
    /// True once the kernel is set to end the connection when the client reads nothing.
    is_timed: Cell<bool>,
    has_timed_out: Cell<bool>,
    /// The speed at which the client reads its responses.
    pub(crate) taking: Pace,
    /// Bytes read to detect the protocol that the engine has not yet received.
    first: RefCell<Bytes>,
    /// Interim responses to write before anything else.
    interim: RefCell<BytesMut>,
    /// The tick since which the socket accepts no more bytes.
    blocked: Cell<Option<Tick>>,
    waited: Cell<u64>,
    stage: Cell<Stage>,
    since: Cell<Tick>,
    /// The number of stage changes, by which an outdated deadline is recognised.
    turn: Cell<u64>,
    requests: Cell<usize>,
    /// Under HTTP/2 bytes may arrive without a request after them.
    http2: Cell<bool>,
    /// True if a request was answered before it was read completely.
    unread: Cell<bool>,
    /// The upstream's side of a connection that switches protocols.
    upstream_io: RefCell<Option<Switched>>,
}

impl Client {
    /// A connection from `peer`. An IPv4 address mapped into IPv6 becomes IPv4.
    pub(crate) fn new(worker: &WorkerState, stream: TcpStream, peer: SocketAddr, number: u64) -> Self {
        let peer = peer.ip().to_canonical();
        let is_trusted = worker.plan.tenants.load().trusts(peer);
        let holder = (!is_trusted).then(|| worker.capacities.holders.of(Key::network(peer)));
        let mut counted = worker.capacities.connections.permit(holder.clone());
        counted.add(1);
        Self {
            stream,
            peer,
            number,
            holder,
            _counted: counted,
            is_timed: Cell::new(false),
            has_timed_out: Cell::new(false),
            taking: Pace::default(),
            first: RefCell::default(),
            interim: RefCell::default(),
            blocked: Cell::new(None),
            waited: Cell::new(0),
            stage: Cell::new(Stage::Fresh),
            since: Cell::new(clock::now()),
            turn: Cell::new(0),
            requests: Cell::new(0),
            unread: Cell::new(false),
            upstream_io: RefCell::default(),
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

    /// Takes the stored upstream's side.
    pub(crate) fn switched(&self) -> Option<Switched> {
        self.upstream_io.take()
    }

    /// Takes the time since the last call in which bytes were ready and the socket did not accept them.
    pub(crate) fn take_waited(&self) -> u64 {
        if let Some(since) = self.blocked.get() {
            let now = clock::now();
            self.blocked.set(Some(now));
            self.waited.set(self.waited.get() + now.since(since));
        }
        self.waited.take()
    }

    /// Returns true if the socket accepts no more bytes.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.get().is_some()
    }

    /// The number of requests in flight on it.
    pub(crate) fn requests(&self) -> usize {
        self.requests.get()
    }

    /// Returns true once the client has spoken HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.http2.get()
    }

    pub(crate) fn stage(&self) -> (Stage, u64) {
        (self.stage.get(), self.turn.get())
    }

    /// Sets the kernel to end the connection when its client reads nothing for `stall`. Only the kernel can measure
    /// that: a socket is writable again only when much of its buffer is free.
    pub(crate) fn end_unread_after(&self, stall: Duration) {
        if !self.is_timed.replace(true)
            && let Err(error) = SockRef::from(&self.stream).set_tcp_user_timeout(Some(stall))
        {
            tracing::debug!(%error, "cannot set the timeout of a client's socket");
        }
    }

    /// Returns true if the kernel ended the connection for that.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.note(self.stream.take_error().ok().flatten().as_ref());
        self.is_timed.get() && self.has_timed_out.get()
    }

    /// Stores an error. The socket reports it once, to the first caller.
    fn note(&self, error: Option<&io::Error>) {
        if error.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            self.has_timed_out.set(true);
        }
    }

    /// The tick at which its stage began.
    pub(crate) fn since(&self) -> Tick {
        self.since.get()
    }

    /// Takes at most `len_max` of the bytes that were read to detect the protocol.
    pub(crate) fn take_first(&self, len_max: usize) -> Option<Bytes> {
        let mut first = self.first.borrow_mut();
        let taken = first.len().min(len_max);
        (!first.is_empty()).then(|| first.split_to(taken))
    }

    /// Reads from the socket into `buffer`.
    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(buffer) {
                Ok(read) => {
                    if 0 < read && read < buffer.len() {
                        // The socket is drained: clear its readiness, which saves a further read.
                        let drained = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
                        let _ = self.stream.try_io(Interest::READABLE, drained);
                    }
                    if read > 0 && !self.http2.get() && self.stage.get() == Stage::Idle {
                        self.set_stage(Stage::Head);
                    }
                    return Poll::Ready(Ok(read));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    self.note(Some(&error));
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// Writes interim responses, then bytes with `write`.
    pub(crate) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(cx))?;
        self.poll_socket(cx, write)
    }

    /// Returns true if the client uses HTTP/2 from its first byte; `None` if it left before that was known. Returns as
    /// soon as one byte differs, so a short HTTP/1 request does not wait.
    pub(crate) async fn speaks_http2(&self) -> io::Result<Option<bool>> {
        let mut first = [0; PREFACE.len()];
        let mut filled = 0;
        let http2 = loop {
            self.stream.readable().await?;
            match self.stream.try_read(&mut first[filled..]) {
                Ok(0) => return Ok(None),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            }
            if !PREFACE.starts_with(&first[..filled]) {
                break false;
            } else if filled == first.len() {
                break true;
            }
        };
        self.http2.set(http2);
        self.first.replace(Bytes::copy_from_slice(&first[..filled]));
        Ok(Some(http2))
    }

    /// Returns once the client has left: its socket is reset, or closed on its side where half-closing is not allowed.
    pub(crate) async fn gone(&self, half_close: bool) {
        let watched = if half_close { Interest::ERROR } else { Interest::READABLE | Interest::ERROR };
        loop {
            match self.stream.ready(watched).await {
                Ok(ready) if ready.is_error() => return,
                Ok(ready) if ready.is_read_closed() && !half_close => return,
                Ok(_unread) => tokio::time::sleep(limits::GONE_RECHECK).await,
                Err(_) => return,
            }
        }
    }

    /// Closes after an early answer: ends writing and reads on for a limited time, because closing with unread bytes
    /// would cause a reset that destroys the answer.
    pub(crate) async fn linger(&self) {
        if !self.unread.get() || self.shutdown().is_err() {
            return;
        }
        let drain = async {
            let mut left = limits::LINGER_BYTES;
            let mut away = [0; 4096];
            while left > 0 && self.stream.readable().await.is_ok() {
                match self.stream.try_read(&mut away) {
                    Ok(0) => break,
                    Ok(read) => left = left.saturating_sub(read),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        };
        // The end of either direction is the end of the connection.
        let _ = tokio::time::timeout(limits::LINGER, drain).await;
    }

    /// Shuts down writing.
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        match SockRef::from(&self.stream).shutdown(std::net::Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            done => done,
        }
    }

    fn set_stage(&self, stage: Stage) {
        self.stage.set(stage);
        self.since.set(clock::now());
        self.turn.set(self.turn.get().wrapping_add(1));
    }

    /// Writes once to the socket; records the time in which it accepts no bytes.
    fn poll_socket(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.stream.poll_write_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => {
                    if self.blocked.get().is_none() {
                        self.blocked.set(Some(clock::now()));
                        self.taking.wait();
                    }
                    return Poll::Pending;
                }
            }
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.note(written.as_ref().err());
                    self.taking.moved(*written.as_ref().unwrap_or(&0));
                    if let Some(since) = self.blocked.take() {
                        self.waited.set(self.waited.get() + clock::now().since(since));
                    }
                    return Poll::Ready(written);
                }
            }
        }
    }

    /// Writes the interim responses.
    pub(crate) fn poll_interim(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.interim.borrow().is_empty() {
            let mut interim = self.interim.borrow_mut();
            let written = ready!(self.poll_socket(cx, |stream| stream.try_write(&interim)))?;
            interim.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

/// The first bytes of a client with prior knowledge of HTTP/2 (RFC 9113 §3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
