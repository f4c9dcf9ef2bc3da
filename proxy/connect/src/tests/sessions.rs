//! Agreed protocols, sessions that are resumed, and idle streams.

use std::sync::Arc;

use rcgen::ExtendedKeyUsagePurpose;
use rustls::crypto::ring::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS12;
use rustls::{HandshakeKind, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::authority::{Authority, Folder, Server, config, own};
use super::{PATIENCE, connect, target};
use crate::{Address, ClientFiles, ConnectError, Offer, Protocol, Target, Tls, TlsError, TlsFiles};

#[tokio::test]
async fn protocol_is_agreed_by_alpn() {
    let authority = Authority::new();
    let identity = authority.localhost();
    for (speaks, offer, agreed) in [
        (&[&b"h2"[..], b"http/1.1"][..], Offer::Http1OrHttp2, Protocol::Http2),
        (&[b"h2", b"http/1.1"], Offer::Http1, Protocol::Http1),
        (&[b"http/1.1"], Offer::Http1OrHttp2, Protocol::Http1),
        (&[], Offer::Http1OrHttp2, Protocol::Http1),
    ] {
        let server = Server::echo(config(&identity, speaks)).await;
        let stream = target(&server, authority.files()).connect(offer, PATIENCE).await.unwrap();
        assert_eq!(stream.protocol(), agreed, "{speaks:?} {offer:?}");
    }
}

#[tokio::test]
async fn second_connection_resumes_the_session() {
    let authority = Authority::new();
    let server = Server::of(&authority.localhost()).await;
    let target = target(&server, authority.files());
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let mut stream = target.clone().connect(Offer::Http1, PATIENCE).await.unwrap();
        // The tickets come before the first answer.
        stream.write_all(b"hello").await.unwrap();
        stream.read_exact(&mut [0; 5]).await.unwrap();
        kinds.push(stream.handshake_kind());
    }
    assert_eq!(kinds, [Some(HandshakeKind::Full), Some(HandshakeKind::Resumed)]);
}

#[tokio::test]
async fn new_connections_use_reloaded_files() {
    let (authority, other) = (Authority::new(), Authority::new());
    let mut roots = RootCertStore::empty();
    roots.add(authority.root_der()).unwrap();
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let identity = authority.localhost();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS12])
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(identity.chain.clone(), identity.key_der())
        .unwrap();
    let server = Server::echo(config).await;

    let write = |authority: &Authority, folder: &Folder| {
        let mut params = own(&["client"]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let identity = authority.sign(params);
        let key = folder.file("client.key", &identity.key.serialize_pem());
        ClientFiles { cert: folder.file("client.pem", &identity.pem), key }
    };
    let folder = authority.folder();
    let tls = Tls::read(&TlsFiles { client: Some(write(&other, folder)), ..authority.files() }).unwrap();
    let target = Target::new(Address::host("localhost", server.port), Some(tls.clone()));
    let connect = async || target.connect(Offer::Http1, PATIENCE).await;
    assert!(matches!(connect().await, Err(ConnectError::Tls(_))));
    let client = write(&authority, folder);
    assert!(connect().await.is_err(), "nothing was reloaded");
    tls.reload().unwrap();
    let mut open = connect().await.unwrap();

    // A broken pair changes nothing.
    folder.file("client.pem", "");
    let TlsError::Cert(error) = tls.reload().unwrap_err() else { panic!("no error") };
    assert_eq!(error.file, client.cert);
    connect().await.unwrap();
    write(&other, folder);
    tls.reload().unwrap();
    assert!(connect().await.is_err());
    open.write_all(b"hello").await.unwrap();
    open.read_exact(&mut [0; 5]).await.unwrap();
}

#[tokio::test]
async fn name_is_the_configured_one() {
    let authority = Authority::new();
    let server = Server::of(&authority.sign(own(&["gpu.example"]))).await;
    let files = TlsFiles { server_name: Some("gpu.example".to_owned()), ..authority.files() };
    target(&server, files).connect(Offer::Http1, PATIENCE).await.unwrap();
    connect(&server, &authority).await.unwrap_err();
}

#[tokio::test]
async fn unread_tickets_leave_an_idle_stream_alive() {
    let authority = Authority::new();
    let server = Server::of(&authority.localhost()).await;
    let mut stream = connect(&server, &authority).await.unwrap();
    // The tickets may arrive at any time now; no read has been polled.
    for _ in 0..20 {
        assert!(stream.is_alive());
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    stream.write_all(b"hello").await.unwrap();
    stream.read_exact(&mut [0; 5]).await.unwrap();
    assert!(stream.is_alive());
    // An unread answer, then the end.
    stream.write_all(b"unasked").await.unwrap();
    eventually(|| !stream.is_alive()).await;

    let mut stream = connect(&server, &authority).await.unwrap();
    stream.write_all(b"quit").await.unwrap();
    eventually(|| !stream.is_alive()).await;
}

async fn eventually(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it holds in time");
}
