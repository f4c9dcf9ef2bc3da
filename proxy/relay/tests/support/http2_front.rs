//! A server with TLS in front of a scripted one. With HTTP/2, each stream becomes one connection to the script: a reset
//! stream closes its connection, and a connection that breaks resets its stream. With HTTP/1.1, bytes pass unread.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use connect::Protocol;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use hyper::body::{Body, Frame};
use hyper::header::{CONNECTION, HOST, HeaderName, TRANSFER_ENCODING};
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Bytes of requests that the kernel holds on either side of the server. Otherwise it would hold more the more the server
/// reads, and no test could fill it.
const BUFFER_BYTES: usize = 64 << 10;

/// Starts the server, which offers protocols up to this one and ends with the test process, and returns its address.
pub(crate) fn start(script: SocketAddr, newest: Protocol) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    SockRef::from(&listener).set_recv_buffer_size(BUFFER_BYTES).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let listener = TcpListener::from_std(listener).unwrap();
            let acceptor = acceptor(newest);
            while let Ok((socket, _)) = listener.accept().await {
                tokio::task::spawn_local(connection(socket, acceptor.clone(), script));
            }
        });
    });
    address
}

/// TLS with a certificate of its own, and protocols up to `newest`.
pub(crate) fn acceptor(newest: Protocol) -> TlsAcceptor {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth();
    let mut config = config.with_single_cert(vec![own.cert.der().clone()], key.into()).unwrap();
    let protocols = [b"h2".to_vec(), b"http/1.1".to_vec()];
    config.alpn_protocols = protocols[usize::from(newest == Protocol::Http1)..].to_vec();
    TlsAcceptor::from(Arc::new(config))
}

async fn connection(socket: TcpStream, acceptor: TlsAcceptor, script: SocketAddr) {
    socket.set_nodelay(true).unwrap();
    let Ok(mut stream) = acceptor.accept(socket).await else { return };
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        let Ok(mut script) = TcpStream::connect(script).await else { return };
        script.set_nodelay(true).unwrap();
        SockRef::from(&script).set_send_buffer_size(BUFFER_BYTES).unwrap();
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut script).await;
        return;
    }
    let Ok(mut connection) = h2::server::Builder::new().initial_window_size(64 << 10).handshake(stream).await
    else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::task::spawn_local(async move {
            // `None` if the stream was reset, or the script broke off: dropping both ends does the rest.
            let _ = exchange(request, respond, script).await;
        });
    }
}

/// Carries one request to the script and the response back.
async fn exchange(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    script: SocketAddr,
) -> Option<()> {
    let respond = Rc::new(RefCell::new(respond));
    let socket = TcpStream::connect(script).await.ok()?;
    socket.set_nodelay(true).ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.ok()?;
    let mut connection = std::pin::pin!(connection);

    let (parts, body) = request.into_parts();
    let authority = parts.uri.authority().map(ToString::to_string).unwrap_or_default();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let mut onward = Request::builder().method(parts.method).uri(path);
    onward = onward.header(HOST, authority);
    let mut onward = onward.body(Upload(body)).unwrap();
    onward.headers_mut().extend(parts.headers);
    if !onward.body().0.is_end_stream() && !onward.headers().contains_key("content-length") {
        onward.headers_mut().insert(TRANSFER_ENCODING, "chunked".parse().unwrap());
    }
    let (interim, mut interims) = tokio::sync::mpsc::unbounded_channel();
    hyper::ext::on_informational(&mut onward, move |head| {
        let _ = interim.send((head.status(), head.headers().clone()));
    });

    let mut sending = std::pin::pin!(sender.send_request(onward));
    let head = std::future::poll_fn(|cx| {
        let _ = connection.as_mut().poll(cx);
        while let Poll::Ready(Some((status, fields))) = interims.poll_recv(cx) {
            let mut head = Response::new(());
            *head.status_mut() = status;
            *head.headers_mut() = end_to_end(fields);
            let _ = respond.borrow_mut().send_informational(head);
        }
        if respond.borrow_mut().poll_reset(cx).is_ready() {
            return Poll::Ready(None);
        }
        sending.as_mut().poll(cx).map(Result::ok)
    });
    let Some(response) = head.await else {
        respond.borrow_mut().send_reset(Reason::INTERNAL_ERROR);
        return None;
    };
    let (parts, mut body) = response.into_parts();
    let mut head = Response::new(());
    *head.status_mut() = parts.status;
    *head.headers_mut() = end_to_end(parts.headers);
    let mut out = respond.borrow_mut().send_response(head, body.is_end_stream()).ok()?;
    if body.is_end_stream() {
        return Some(());
    }
    loop {
        let frame = std::future::poll_fn(|cx| {
            let _ = connection.as_mut().poll(cx);
            if out.poll_reset(cx).is_ready() {
                return Poll::Ready(None);
            }
            Pin::new(&mut body).poll_frame(cx).map(Some)
        });
        match frame.await? {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) => send(&mut out, bytes).await?,
                Err(trailers) => {
                    return out.send_trailers(trailers.into_trailers().unwrap()).ok();
                }
            },
            Some(Err(_)) => {
                // A reset discards what is queued, so the connection's task has turns to write it.
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                out.send_reset(Reason::INTERNAL_ERROR);
                return None;
            }
            None => return out.send_data(Bytes::new(), true).ok(),
        }
    }
}

/// Sends a slice within the client's window.
async fn send(out: &mut SendStream<Bytes>, mut bytes: Bytes) -> Option<()> {
    while !bytes.is_empty() {
        out.reserve_capacity(bytes.len());
        let capacity = match out.capacity() {
            0 => std::future::poll_fn(|cx| out.poll_capacity(cx)).await?.ok()?,
            capacity => capacity,
        };
        out.send_data(bytes.split_to(capacity.min(bytes.len())), false).ok()?;
    }
    Some(())
}

/// The fields that belong to no connection.
fn end_to_end(fields: HeaderMap) -> HeaderMap {
    let named: Vec<HeaderName> = fields
        .get_all(CONNECTION)
        .iter()
        .flat_map(|line| line.to_str().unwrap().split(',').map(|name| name.trim().parse().unwrap()))
        .collect();
    let mut kept = HeaderMap::new();
    for (name, value) in &fields {
        if !named.contains(name)
            && !["connection", "keep-alive", "transfer-encoding"].contains(&name.as_str())
        {
            kept.append(name, value.clone());
        }
    }
    kept
}

/// The body of a request, for the script.
struct Upload(RecvStream);

impl Body for Upload {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        match ready!(self.0.poll_data(cx)) {
            Some(Ok(bytes)) => {
                let _ = self.0.flow_control().release_capacity(bytes.len());
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                let trailers = ready!(self.0.poll_trailers(cx))?;
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}
