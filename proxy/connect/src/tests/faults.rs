//! Each fault of a certificate and of a handshake has a text for people.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, CertifiedIssuer, CustomExtension, KeyPair, date_time_ymd};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::authority::{Authority, Identity, Server, config, issuer, own};
use super::{PATIENCE, connect, target};
use crate::fault::TlsFault;
use crate::pem;
use crate::verifier::{Verifier, of_key};
use crate::{Address, ConnectError, Offer, Step, Target, TlsFiles, Verification};

/// Connects to a server with this certificate, and returns the text of the fault.
async fn fault(identity: &Identity, authority: &Authority) -> String {
    let server = Server::of(identity).await;
    match connect(&server, authority).await {
        Err(error @ ConnectError::Certificate(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn self_signed(params: CertificateParams) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Identity { chain: vec![certificate.der().clone()], pem: certificate.pem(), key }
}

#[tokio::test]
async fn expired_certificate_has_its_date() {
    let authority = Authority::new();
    let mut params = own(&["localhost"]);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 10, 1);
    let text = fault(&authority.sign(params), &authority).await;
    assert_eq!(text, "the certificate of localhost expired on 2021-10-01");
}

#[tokio::test]
async fn future_certificate_has_its_date() {
    let authority = Authority::new();
    let mut params = own(&["localhost"]);
    params.not_before = date_time_ymd(2090, 2, 3);
    params.not_after = date_time_ymd(2091, 1, 1);
    let text = fault(&authority.sign(params), &authority).await;
    assert!(text.starts_with("the certificate of localhost is not valid before 2090-02-03"), "{text}");
}

#[tokio::test]
async fn wrong_name_lists_the_names() {
    let authority = Authority::new();
    let text = fault(&authority.sign(own(&["a.example", "*.b.example", "10.0.0.7"])), &authority).await;
    let names = "the certificate of localhost is for a.example, *.b.example and 10.0.0.7; correct the URL";
    assert!(text.starts_with(names), "{text}");

    let many: Vec<String> = (0..40).map(|number| format!("n{number}.example")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let text = fault(&authority.sign(own(&many)), &authority).await;
    assert!(text.contains("n4.example and 35 more;"), "{text}");

    let text = fault(&authority.sign(own(&[])), &authority).await;
    assert!(text.contains("is for no name at all"), "{text}");
}

#[tokio::test]
async fn self_signed_certificate_is_named() {
    let text = fault(&self_signed(own(&["localhost"])), &Authority::new()).await;
    assert!(text.starts_with("the certificate of localhost is self-signed and not trusted"), "{text}");
}

/// No server of rustls presents such a certificate, so the verifier is called.
#[test]
fn unknown_extension_is_not_blamed_on_the_root() {
    let authority = Authority::new();
    let mut params = own(&["localhost"]);
    let mut extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99_999], vec![5, 0]);
    extension.set_criticality(true);
    params.custom_extensions.push(extension);
    let chain = authority.sign(params).chain;
    let mut roots = RootCertStore::empty();
    roots.add(authority.root_der()).unwrap();
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()));
    let verifier = Verifier::new(inner.build().unwrap(), Vec::new());
    let name = ServerName::try_from("localhost").unwrap();
    let error = verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], UnixTime::now()).unwrap_err();
    let text = TlsFault::of(&io::Error::other(error), "localhost").to_string();
    assert!(text.starts_with("the certificate of localhost cannot be verified: "), "{text}");
    assert!(!text.contains("root"), "{text}");
}

/// A certificate that an authority with an RSA key of 1024 bits signed, then that authority's. No server of rustls
/// presents them.
#[test]
fn short_rsa_key_is_named() {
    let chain = pem::certificates("short".as_ref(), include_bytes!("short_rsa.pem")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(chain[1].clone()).unwrap();
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()));
    let verifier = Verifier::new(inner.build().unwrap(), vec![chain[1].clone()]);
    let name = ServerName::try_from("localhost").unwrap();
    let error = verifier.verify_server_cert(&chain[0], &[], &name, &[], UnixTime::now()).unwrap_err();
    let text = TlsFault::of(&io::Error::other(error), "localhost").to_string();
    let expected =
        "the certificate of localhost is issued by 'CN=Short Root', whose RSA key has less than 2048 bits";
    assert!(text.starts_with(expected), "{text}");

    let bad = || rustls::Error::from(CertificateError::BadSignature);
    let text = TlsFault::of(&io::Error::other(of_key(bad(), &chain[1])), "localhost").to_string();
    assert!(text.starts_with("the certificate of localhost has an RSA key of less than 2048 bits"), "{text}");
    assert_eq!(of_key(bad(), &chain[0]), bad());
}

#[tokio::test]
async fn unknown_root_is_named() {
    let (trusted, other) = (Authority::new(), Authority::new());
    let text = fault(&other.localhost(), &trusted).await;
    assert!(text.contains("is not signed with the key of the trusted issuer of that name"), "{text}");
    let other = CertifiedIssuer::self_signed(issuer("Other Root"), KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = own(&["localhost"]).signed_by(&key, &other).unwrap();
    let identity = Identity { chain: vec![own.der().clone(), other.der().clone()], pem: own.pem(), key };
    let text = fault(&identity, &trusted).await;
    assert!(text.contains("is issued under the root 'CN=Other Root', which is not trusted"), "{text}");
}

#[tokio::test]
async fn missing_intermediate_is_named() {
    let authority = Authority::new();
    let mut identity = authority.through_intermediate();
    let server = Server::of(&identity).await;
    connect(&server, &authority).await.unwrap();
    identity.chain.truncate(1);
    let text = fault(&identity, &authority).await;
    assert!(text.contains("issued by 'CN=Test Intermediate'"), "{text}");
    assert!(text.contains("sent no intermediate certificate"), "{text}");
}

#[tokio::test]
async fn trusted_certificate_of_an_issuer_serves_itself() {
    // As `openssl req -x509` makes it.
    let mut params = issuer("gpu-1");
    params.subject_alt_names = own(&["localhost"]).subject_alt_names;
    let identity = self_signed(params);
    let authority = Authority::new();
    let ca = Some(authority.folder().file("own.pem", &identity.pem));
    let server = Server::of(&identity).await;
    let files = TlsFiles { ca, ..TlsFiles::default() };
    target(&server, files.clone()).connect(Offer::Http1, PATIENCE).await.unwrap();
    // By another name it is rejected.
    let files = TlsFiles { server_name: Some("gpu-2".to_owned()), ..files };
    let error = target(&server, files).connect(Offer::Http1, PATIENCE).await.unwrap_err();
    assert!(error.to_string().contains("the certificate of gpu-2 is for localhost"), "{error}");
    // And where it is not trusted.
    let error = connect(&server, &authority).await.unwrap_err();
    assert!(error.to_string().contains("self-signed"), "{error}");
}

#[tokio::test]
async fn verification_is_off_only_if_asked() {
    let server = Server::of(&self_signed(own(&["other"]))).await;
    let files = TlsFiles { verification: Verification::Off, ..TlsFiles::default() };
    let target = target(&server, files);
    assert!(target.is_unverified());
    target.connect(Offer::Http1, PATIENCE).await.unwrap();
}

#[tokio::test]
async fn server_without_tls_is_named() {
    let authority = Authority::new();
    let server = Server::with(|mut stream| async move {
        let _ = stream.read(&mut [0; 100]).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read(&mut [0; 1000]).await;
    })
    .await;
    let error = connect(&server, &authority).await.unwrap_err();
    assert!(matches!(error, ConnectError::Tls(_)), "{error:?}");
    assert_eq!(error.to_string(), "it answered without TLS; write http://");

    let server = Server::with(|mut stream| async move {
        let _ = stream.read(&mut [0; 1000]).await;
    })
    .await;
    let error = connect(&server, &authority).await.unwrap_err().to_string();
    assert!(error.contains("closed the connection during the TLS handshake"), "{error}");
}

#[tokio::test]
async fn chain_that_is_too_long_is_named() {
    let authority = Authority::new();
    let mut identity = authority.localhost();
    let copies = vec![identity.chain[0].clone(); 300];
    identity.chain.extend(copies);
    let server = Server::of(&identity).await;
    let error = connect(&server, &authority).await.unwrap_err().to_string();
    assert!(error.contains("certificate chain is too long"), "{error}");
}

/// With TLS 1.2 also the answer to a missing client certificate.
#[tokio::test]
async fn rejected_handshake_is_named() {
    let server = Server::with(|mut stream| async move {
        let _ = stream.read(&mut [0; 1000]).await;
        let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 40]).await;
        let _ = stream.read(&mut [0; 1000]).await;
    })
    .await;
    let error = connect(&server, &Authority::new()).await.unwrap_err().to_string();
    assert!(error.contains("it requires a client certificate (set cert and key), or shares no"), "{error}");
}

#[tokio::test]
async fn tls_on_a_clear_upstream_is_named() {
    let server = Server::of(&Authority::new().localhost()).await;
    let clear = Target::new(Address::host("127.0.0.1", server.port), None);
    let mut stream = clear.connect(Offer::Http1, PATIENCE).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let error = stream.read(&mut [0; 100]).await.unwrap_err();
    assert_eq!(error.to_string(), "it speaks TLS; write https://");
}

#[tokio::test]
async fn required_client_certificate_is_named() {
    let authority = Authority::new();
    let mut roots = RootCertStore::empty();
    roots.add(authority.root_der()).unwrap();
    let provider = Arc::new(default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let identity = authority.localhost();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain.clone(), identity.key_der())
        .unwrap();
    let server = Server::echo(config).await;
    // TLS 1.3 rejects the client after its handshake.
    let mut stream = connect(&server, &authority).await.unwrap();
    let _ = stream.write_all(b"hello").await;
    let error = stream.read(&mut [0; 100]).await.unwrap_err();
    assert_eq!(error.to_string(), "it requires a client certificate; set cert and key");
    let error = target(&server, authority.files()).probe(PATIENCE).await.unwrap_err();
    assert!(matches!(error, ConnectError::Tls(_)), "{error:?}");
    assert_eq!(error.to_string(), "it requires a client certificate; set cert and key");
}

/// Session tickets prove that the server accepts the client; a server without them sends nothing.
#[tokio::test]
async fn probe_succeeds_without_a_fault() {
    let authority = Authority::new();
    for tickets in [0, 2] {
        let mut config = config(&authority.localhost(), &[b"h2", b"http/1.1"]);
        config.send_tls13_tickets = tickets;
        let server = Server::echo(config).await;
        target(&server, authority.files()).probe(PATIENCE).await.unwrap();
    }
}

#[tokio::test]
async fn stalled_handshake_ends_at_the_time_limit() {
    let server = Server::with(|stream| async move {
        tokio::time::sleep(PATIENCE).await;
        drop(stream);
    })
    .await;
    let target = target(&server, Authority::new().files());
    let error = target.connect(Offer::Http1, Duration::from_millis(100)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout(Step::Handshake)), "{error:?}");
    // The probe without a handshake succeeds.
    target.reach(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn refused_connection_and_unknown_name_are_named() {
    let server = Server::of(&Authority::new().localhost()).await;
    let port = server.port;
    drop(server);
    tokio::task::yield_now().await;
    let closed = Target::new(Address::host("127.0.0.1", port), None);
    let mut error = closed.reach(PATIENCE).await;
    while error.is_ok() {
        tokio::task::yield_now().await;
        error = closed.reach(PATIENCE).await;
    }
    assert_eq!(error.unwrap_err().to_string(), "connection refused");
    let unknown = Target::new(Address::host("nowhere.invalid", 1), None);
    let error = unknown.reach(PATIENCE).await.unwrap_err();
    assert!(matches!(error, ConnectError::Name(_) | ConnectError::Timeout(Step::Resolve)), "{error:?}");
}

#[tokio::test]
async fn no_common_protocol_is_named() {
    let authority = Authority::new();
    let server = Server::echo(config(&authority.localhost(), &[b"http/1.1"])).await;
    let error = target(&server, authority.files()).connect(Offer::Http2, PATIENCE).await.unwrap_err();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
}
