//! Both ends of a WebSocket, of a library that shares nothing with the proxy.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use http::Request;
use tungstenite::handshake::server::{Request as Handshake, Response};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::frame::{CloseFrame, Frame};
use tungstenite::{Error, Message, WebSocket, client::IntoClientRequest};

use crate::support::{Proxy, Wire};

/// One end of a WebSocket.
pub(crate) type Socket = WebSocket<Wire>;

/// A scripted server. Its threads end with the test process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// The header fields of each handshake.
    handshakes: Arc<Mutex<Vec<http::HeaderMap>>>,
}

impl Server {
    /// Runs `script` once per connection.
    pub(crate) fn start(script: impl Fn(&mut Socket) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let handshakes = Arc::<Mutex<Vec<http::HeaderMap>>>::default();
        let (seen, script) = (Arc::clone(&handshakes), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                std::thread::spawn(move || {
                    let stream = Wire::new(stream.unwrap());
                    #[expect(clippy::result_large_err, reason = "the library's signature")]
                    let note = |request: &Handshake, mut response: Response| {
                        let fields = request.headers();
                        if let Some(protocol) = fields.get("sec-websocket-protocol") {
                            response.headers_mut().insert("sec-websocket-protocol", protocol.clone());
                        }
                        seen.lock().unwrap().push(fields.clone());
                        Ok(response)
                    };
                    script(&mut tungstenite::accept_hdr(stream, note).unwrap());
                });
            }
        });
        Self { address, handshakes }
    }

    pub(crate) fn handshake(&self) -> http::HeaderMap {
        self.handshakes.lock().unwrap()[0].clone()
    }
}

/// A client that has switched protocols through the proxy at `target`, with these header fields.
pub(crate) fn connect(proxy: &Proxy, target: &str, fields: &[(&'static str, &str)]) -> Socket {
    try_connect(proxy, target, fields).unwrap()
}

/// As [`connect`]; the status of a refusal.
pub(crate) fn try_connect(
    proxy: &Proxy,
    target: &str,
    fields: &[(&'static str, &str)],
) -> Result<Socket, u16> {
    let address = proxy.address();
    let stream = Wire::new(TcpStream::connect(address).unwrap());
    let mut request: Request<()> = format!("ws://{address}{target}").into_client_request().unwrap();
    for (name, value) in fields {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(Error::Http(response))) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

/// Sends a text message.
pub(crate) fn send(socket: &mut Socket, text: &str) {
    socket.send(Message::text(text)).unwrap();
}

/// Receives a text message.
pub(crate) fn receive(socket: &mut Socket) -> String {
    loop {
        match socket.read().unwrap() {
            Message::Text(text) => return text.to_string(),
            Message::Ping(_) | Message::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Reads up to the close frame of the other end, and returns its code and reason.
pub(crate) fn closed(socket: &mut Socket) -> Option<(u16, String)> {
    loop {
        match socket.read() {
            Ok(Message::Close(frame)) => {
                let frame = frame.map(|CloseFrame { code, reason }| (u16::from(code), reason.to_string()));
                // Sends the answer.
                let _ = socket.flush();
                return frame;
            }
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

/// The bytes of a masked frame: a ping, or a piece of a message.
pub(crate) fn masked(payload: &str, opcode: u8, is_final: bool) -> Vec<u8> {
    let payload = payload.as_bytes().to_vec();
    let mut frame = match opcode {
        9 => Frame::ping(payload),
        opcode => Frame::message(payload, opcode.into(), is_final),
    };
    frame.header_mut().mask = Some([0x37, 0xFA, 0x21, 0x3D]);
    let mut bytes = Vec::new();
    frame.format(&mut bytes).unwrap();
    bytes
}

/// Closes the connection as a client does that has no more use for it.
pub(crate) fn close(mut socket: Socket) {
    socket.close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() })).unwrap();
    while socket.read().is_ok() {}
}
