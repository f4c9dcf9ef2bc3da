//! An admin listener that sends what a test wants.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::child::PATIENCE;

/// The listener, closed on drop.
pub(crate) struct FakeAdmin {
    pub(crate) address: SocketAddr,
    is_closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeAdmin {
    /// Listens on a free port, or on that of an earlier listener. `respond` gets the path and the field `Authorization`; it
    /// returns status and body.
    pub(crate) fn start(
        address: Option<SocketAddr>,
        respond: impl Fn(&str, Option<&str>) -> (u16, String) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address.unwrap_or(([127, 0, 0, 1], 0).into())).unwrap();
        let address = listener.local_addr().unwrap();
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        let thread = thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                // A client that left gets nothing.
                let _ = serve(connection, &respond);
            }
        });
        Self { address, is_closed, thread: Some(thread) }
    }
}

fn serve(
    mut connection: TcpStream,
    respond: &impl Fn(&str, Option<&str>) -> (u16, String),
) -> std::io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(connection.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut token = None;
    for line in lines {
        let line = line?;
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                token = Some(value.to_owned())
            }
            Some(_) => {}
            None => break,
        }
    }
    let (status, body) = respond(first.split(' ').nth(1).unwrap_or_default(), token.as_deref());
    let length = body.len();
    write!(connection, "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

impl Drop for FakeAdmin {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().unwrap().join();
    }
}
