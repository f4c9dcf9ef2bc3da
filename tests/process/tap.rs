//! A tap between the proxy and its upstream: forwards every byte, and records those that go upstream.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// The address to which the proxy connects. It taps until the tests end.
pub(crate) struct Tap {
    pub(crate) address: SocketAddr,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    /// Starts a tap before `upstream`.
    pub(crate) fn before(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let sent = Arc::new(Mutex::default());
        let kept = Arc::clone(&sent);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(upstream) else { continue };
                let (there, back) = (client.try_clone(), server.try_clone());
                let (there, back) = (there.expect("a socket"), back.expect("a socket"));
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || pass(there, server, Some(&kept)));
                std::thread::spawn(move || pass(back, client, None));
            }
        });
        Self { address, sent }
    }

    /// All bytes sent upstream so far, over every connection.
    pub(crate) fn sent(&self) -> String {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&sent).into_owned()
    }
}

/// Copies one direction until one side is closed.
fn pass(mut from: TcpStream, mut to: TcpStream, kept: Option<&Mutex<Vec<u8>>>) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if let Some(kept) = kept {
            kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..read]);
        }
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    // A closed peer needs no shutdown.
    let _ = to.shutdown(Shutdown::Write);
}
