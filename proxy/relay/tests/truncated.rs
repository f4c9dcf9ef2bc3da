//! The bytes before the end of a truncated answer reach an HTTP/2 client that does not read for a while: its socket takes few
//! bytes, and a reset of the stream would discard the others.

use connect::{Address, Target};
use http::Request;
use relay::outbox;
use relay::testing::LoneWorker;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::LocalOptions;
use tokio::task::{spawn_local, yield_now};

use crate::support::{DEADLINE, observer, plan};

/// Turns in which the proxy does all that it can without its client.
const TURNS: usize = 300;

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
        let mut plan = plan(([127, 0, 0, 1], 1).into());
        plan.upstreams[0].target = Target::new(Address::Unix(path.as_path().into()), None);
        let (sender, _inbox) = outbox(16);
        let worker = LoneWorker::new(plan.relay, plan.control, observer(), sender);
        let (client, proxys) = UnixStream::pair().unwrap();
        // The least that the kernel allows.
        socket2::SockRef::from(&proxys).set_send_buffer_size(1).unwrap();
        spawn_local(async move { worker.serve(proxys, None).await });
        let (mut sender, connection) = h2::client::handshake(client).await.unwrap();
        let mut connection = Box::pin(connection);
        let request = Request::get("http://h/x").body(()).unwrap();
        let (response, _) = sender.send_request(request, true).unwrap();
        // It writes the request, and reads nothing more.
        let first = std::future::poll_fn(|cx| std::task::Poll::Ready(connection.as_mut().poll(cx)));
        assert!(first.await.is_pending());
        for _ in 0..TURNS {
            yield_now().await;
        }
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
