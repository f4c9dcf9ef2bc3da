//! The bytes before the end of a truncated answer reach an HTTP/2 client that does not read for a while: its socket takes few
//! bytes, and a reset of the stream would discard the others.

use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::runtime::LocalOptions;
use tokio::task::spawn_local;

use crate::support::{DEADLINE, late_reader};

/// Bytes of the answer: less than the client's window.
const ANSWERED: usize = 40_000;

#[test]
fn bytes_before_a_reset_reach_a_client_that_reads_late() {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build_local(LocalOptions::default()).unwrap();
    let path = std::env::temp_dir().join(format!("truncated-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let (read, end) = runtime.block_on(async {
        let listener = UnixListener::bind(&path).unwrap();
        spawn_local(async move {
            let (mut server, _) = listener.accept().await.unwrap();
            assert!(server.read(&mut [0; 4096]).await.unwrap() > 0);
            server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").await.unwrap();
            server.write_all(&[b'x'; ANSWERED]).await.unwrap();
        });
        let client = late_reader::connect(&path, None);
        let (mut sender, connection) = h2::client::handshake(client).await.unwrap();
        let mut connection = Box::pin(connection);
        let request = Request::get("http://h/x").body(()).unwrap();
        let (response, _) = sender.send_request(request, true).unwrap();
        // It writes the request, and reads nothing more.
        let first = std::future::poll_fn(|cx| std::task::Poll::Ready(connection.as_mut().poll(cx)));
        assert!(first.await.is_pending());
        late_reader::wait().await;
        spawn_local(connection);
        let reading = async {
            let mut body = response.await.unwrap().into_body();
            let mut read = 0;
            loop {
                match body.data().await {
                    Some(Ok(data)) => read += data.len(),
                    end => break (read, end.map(|end| end.unwrap_err().is_reset())),
                }
            }
        };
        tokio::time::timeout(DEADLINE, reading).await.expect("the rest is not sent")
    });
    let _ = std::fs::remove_file(&path);
    assert_eq!((read, end), (ANSWERED, Some(true)));
}
