//! A scripted server that speaks HTTP/2 over TLS: a function handles each connection, frame by frame.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use connect::Protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use super::http2_front;

/// The server. Its thread ends with the test process.
pub(crate) struct Http2Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Http2Server {
    /// Runs `script` once per connection, with the connection's number.
    pub(crate) fn start<R: Future<Output = ()> + 'static>(
        script: impl Fn(Frames, usize) -> R + Send + 'static,
    ) -> Self {
        Self::start_either(script, SocketAddr::from(([127, 0, 0, 1], 1)))
    }

    /// As [`start`](Self::start); connections that agree on HTTP/1.1 go to another server, and are not counted.
    pub(crate) fn start_either<R: Future<Output = ()> + 'static>(
        script: impl Fn(Frames, usize) -> R + Send + 'static,
        http1: SocketAddr,
    ) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let connections = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let (listener, acceptor) =
                    (TcpListener::from_std(listener).unwrap(), http2_front::acceptor(Protocol::Http2));
                while let Ok((socket, _)) = listener.accept().await {
                    socket.set_nodelay(true).unwrap();
                    let Ok(mut stream) = acceptor.accept(socket).await else { continue };
                    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                        tokio::task::spawn_local(async move {
                            let mut script = TcpStream::connect(http1).await.unwrap();
                            let _ = tokio::io::copy_bidirectional(&mut stream, &mut script).await;
                        });
                        continue;
                    }
                    let number = counted.fetch_add(1, Ordering::SeqCst);
                    tokio::task::spawn_local(script(Frames { stream }, number));
                }
            });
        });
        Self { address, connections }
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// A frame (RFC 9113 §4.1).
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// The reason `CANCEL` in a RST_STREAM.
pub(crate) const CANCEL: [u8; 4] = [0, 0, 0, 8];
/// The reason `REFUSED_STREAM`.
pub(crate) const REFUSED: [u8; 4] = [0, 0, 0, 7];

/// `:status: 200`, indexed (RFC 7541 appendix A).
pub(crate) const OK: &[u8] = &[0x88];

/// The server's side of one connection.
pub(crate) struct Frames {
    stream: TlsStream<TcpStream>,
}

impl Frames {
    /// Reads the client's preface, sends the settings and acknowledges the client's.
    pub(crate) async fn begin(&mut self, settings: &[(u16, u32)]) {
        let mut preface = [0; 24];
        self.stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        assert!(self.send(SETTINGS, 0, 0, &payload).await);
        assert!(self.send(SETTINGS, ACK, 0, &[]).await);
    }

    /// Sends a frame; false if the client closed the connection.
    pub(crate) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.raw(&[&head, payload].concat()).await
    }

    /// Sends bytes; false if the client closed the connection.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Reads a frame; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// Reads frames up to one of this kind; `None` at the end of the connection.
    pub(crate) async fn until(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next().await?;
            if frame.kind == kind && !(kind == SETTINGS && frame.flags & ACK != 0) {
                return Some(frame);
            }
        }
    }

    /// Reads the request that begins next, and returns its stream and its body.
    pub(crate) async fn request(&mut self) -> Option<(u32, Vec<u8>)> {
        let head = self.until(HEADERS).await?;
        let (mut body, mut flags) = (Vec::new(), head.flags);
        while flags & END_STREAM == 0 {
            let data = self.next().await?;
            if data.kind == DATA {
                body.extend(data.payload);
                flags = data.flags;
            }
        }
        Some((head.stream, body))
    }

    /// Answers a request with this body.
    pub(crate) async fn answer(&mut self, stream: u32, body: &str) {
        self.send(HEADERS, END_HEADERS, stream, OK).await;
        self.send(DATA, END_STREAM, stream, body.as_bytes()).await;
    }

    /// Answers every request, to the end of the connection.
    pub(crate) async fn answer_all(&mut self, body: &str) {
        while let Some((stream, _)) = self.request().await {
            self.answer(stream, body).await;
        }
    }
}
