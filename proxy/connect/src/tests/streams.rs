//! Streams of TCP and of Unix sockets.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixSocket, UnixStream};

use super::PATIENCE;
use super::authority::{Authority, Folder, Server};
use crate::{Address, ConnectError, Offer, Protocol, Step, Target, Tls};

#[tokio::test]
async fn unix_socket_carries_bytes() {
    let folder = Folder::new();
    let path = folder.path().join("s.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let target = Target::new(Address::Unix(path.as_path().into()), None);
    let mut stream = target.connect(Offer::Http1OrHttp2, PATIENCE).await.unwrap();
    let (mut peer, _) = listener.accept().await.unwrap();
    assert_eq!(stream.protocol(), Protocol::Http1);
    assert!(stream.is_alive());
    stream.write_all(b"ping").await.unwrap();
    let mut read = [0; 4];
    peer.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"ping");
    peer.write_all(b"pong").await.unwrap();
    assert!(!stream.is_alive(), "it has unread bytes");
    stream.read_exact(&mut read).await.unwrap();
    assert!(stream.is_alive());
    drop(peer);
    assert!(!stream.is_alive());
    drop(listener);
    let error = target.connect(Offer::Http1, PATIENCE).await.unwrap_err();
    assert!(matches!(error, ConnectError::Io(_)), "{error:?}");
    assert_eq!(target.to_string(), format!("unix:{}", path.display()));
}

#[tokio::test]
async fn full_queue_of_a_unix_socket_is_waited_for() {
    let folder = Folder::new();
    let path = folder.path().join("s.sock");
    let socket = UnixSocket::new_stream().unwrap();
    socket.bind(&path).unwrap();
    let listener = socket.listen(1).unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = UnixStream::connect(&path).await {
        queued.push(stream);
    }
    let target = Target::new(Address::Unix(path.as_path().into()), None);
    let error = target.connect(Offer::Http1, Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout(Step::Connect)), "{error:?}");
    let connecting = tokio::spawn(async move { target.connect(Offer::Http1, PATIENCE).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    listener.accept().await.unwrap();
    connecting.await.unwrap().unwrap();
}

#[tokio::test]
async fn url_of_a_target_has_its_scheme() {
    let authority = Authority::new();
    let server = Server::of(&authority.localhost()).await;
    let address = Address::host("::1", server.port);
    let tls = Tls::read(&authority.files()).unwrap();
    assert_eq!(Target::new(address.clone(), None).to_string(), format!("http://[::1]:{}", server.port));
    assert_eq!(Target::new(address, Some(tls)).to_string(), format!("https://[::1]:{}", server.port));
}
