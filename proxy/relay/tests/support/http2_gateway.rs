//! A client that uses HTTP/2, for a test that speaks HTTP/1.1: each connection of the test becomes a connection to the
//! proxy, and each of its requests a stream. If the test leaves, its stream is reset; a response that breaks off closes its
//! connection.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::header::{CONNECTION, HOST, HeaderName, UPGRADE};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{Interest, Ready};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::http2::start_with_task;

/// The window of each response, in bytes.
const WINDOW: u32 = 64 << 10;

/// Starts the gateway to a proxy, which ends with the test process, and returns its address.
pub(crate) fn start(proxy: SocketAddr) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(connection(socket, proxy));
            }
        });
    });
    address
}

/// Carries the requests of one connection.
async fn connection(socket: TcpStream, proxy: SocketAddr) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    // The proxy tells clients apart by their addresses.
    let onward = TcpSocket::new_v4().ok()?;
    let address = socket.peer_addr().ok()?.ip();
    // A socket that is bound needs a port that no other connection has lately had, and a run has more of them than ports.
    if address != Ipv4Addr::LOCALHOST {
        onward.bind((address, 0).into()).ok()?;
    }
    let onward = onward.connect(proxy).await.ok()?;
    onward.set_nodelay(true).ok()?;
    let (sender, task) = start_with_task(onward, WINDOW).await;

    let socket = socket.into_std().ok()?;
    let watched = TcpStream::from_std(socket.try_clone().ok()?).ok()?;
    let written = Arc::<Mutex<Written>>::default();
    let socket =
        Socket { io: TokioIo::new(TcpStream::from_std(socket).ok()?), written: Arc::clone(&written) };
    let service = service_fn(move |request| exchange(sender.clone(), request, Arc::clone(&written)));
    let mut server = hyper::server::conn::http1::Builder::new();
    let mut serving = pin!(server.auto_date_header(false).serve_connection(socket, service));
    let served = async {
        tokio::select! {
            _ = serving.as_mut() => return,
            _ = task => {}
        }
        // The proxy has closed the connection.
        serving.as_mut().graceful_shutdown();
        let _ = serving.await;
    };
    tokio::select! {
        () = served => {}
        () = ended(&watched) => {}
    }
    Some(())
}

/// Returns once the peer has closed its side, or has reset the connection.
async fn ended(socket: &TcpStream) {
    let ends = Interest::PRIORITY | Interest::ERROR;
    while socket.ready(ends).await.is_ok_and(Ready::is_empty) {}
}

/// Carries one request to the proxy and the response back.
async fn exchange(
    mut sender: SendRequest<Upload>,
    request: Request<Incoming>,
    written: Arc<Mutex<Written>>,
) -> hyper::Result<Response<Download>> {
    let mut request = request.map(Upload);
    let fields = request.headers_mut();
    let named: Vec<HeaderName> = fields
        .get_all(CONNECTION)
        .iter()
        .flat_map(|line| line.to_str().unwrap().split(',').filter_map(|name| name.trim().parse().ok()))
        .collect();
    for name in named.iter().filter(|name| **name != "te") {
        fields.remove(name);
    }
    let host = fields.remove(HOST);
    for name in [CONNECTION, UPGRADE] {
        fields.remove(name);
    }
    if request.uri().authority().is_none() {
        let host = host.as_ref().map_or("h", |host| host.to_str().unwrap());
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() =
            Uri::builder().scheme("http").authority(host).path_and_query(path).build().unwrap();
    }
    let response = sender.send_request(request).await?;
    written.lock().unwrap().is_all = false;
    let is_unchanged = response.status() == StatusCode::NOT_MODIFIED;
    Ok(response.map(|body| Download { body, is_unchanged, written, error: None }))
}

/// The body of a request. Its head states the length, if it has one.
struct Upload(Incoming);

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}

/// The body of a response. The library drops what is not written when a body fails, so this one fails after that.
struct Download {
    body: Incoming,
    /// True if it belongs to a 304, whose length the library would drop with a body that has ended.
    is_unchanged: bool,
    written: Arc<Mutex<Written>>,
    error: Option<hyper::Error>,
}

impl Body for Download {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let Self { body, written, error, .. } = self.get_mut();
        if error.is_none() {
            match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Err(cause)) => *error = Some(cause),
                frame => {
                    written.lock().unwrap().is_all = false;
                    return Poll::Ready(frame);
                }
            }
        }
        let mut written = written.lock().unwrap();
        if !written.is_all {
            written.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(error.take().map(Err))
    }

    fn is_end_stream(&self) -> bool {
        self.error.is_none() && !self.is_unchanged && self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

/// Whether all of a response so far was written.
#[derive(Default)]
struct Written {
    is_all: bool,
    waiting: Option<Waker>,
}

/// The socket of a test.
struct Socket {
    io: TokioIo<TcpStream>,
    written: Arc<Mutex<Written>>,
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    /// Called once everything is written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut written = self.written.lock().unwrap();
        written.is_all = true;
        if let Some(waiting) = written.waiting.take() {
            waiting.wake();
        }
        drop(written);
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
