//! TLS between a test's client and the proxy. The certificates are made once for the process, and a client uses TLS if
//! the address that it connects to is that of a proxy with TLS.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex};

use arc_swap::ArcSwap;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

/// The name in the server's certificate.
pub(crate) const NAME: &str = "proxy.test";

/// An authority, and a certificate that it signed.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
    chain: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| {
    let root_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&root_key).unwrap();
    let issuer = Issuer::new(params, root_key);
    let (chain, key) = signed(&issuer, NAME);
    Authority { issuer, root: root.der().clone(), chain, key }
});

/// A certificate for this DNS name, and its key.
fn signed(
    issuer: &Issuer<'static, KeyPair>,
    name: &str,
) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, issuer).unwrap();
    (leaf.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
}

static LISTENERS: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());

/// The addresses of a proxy with TLS, until it is dropped.
pub(crate) struct Registered(Vec<SocketAddr>);

impl Registered {
    pub(crate) fn new(addresses: Vec<SocketAddr>) -> Self {
        LISTENERS.lock().unwrap().extend(&addresses);
        Self(addresses)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        LISTENERS.lock().unwrap().retain(|address| !self.0.contains(address));
    }
}

/// Returns true if a proxy with TLS listens there.
pub(crate) fn is_expected_at(address: SocketAddr) -> bool {
    LISTENERS.lock().unwrap().contains(&address)
}

/// The configuration of a proxy's listener.
pub(crate) fn server() -> Arc<ArcSwap<ServerConfig>> {
    server_with(WebPkiClientVerifier::no_client_auth())
}

/// As [`server`], for clients with a certificate of the authority.
pub(crate) fn verifying_server() -> Arc<ArcSwap<ServerConfig>> {
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots()), provider).build().unwrap();
    server_with(verifier)
}

fn server_with(clients: Arc<dyn ClientCertVerifier>) -> Arc<ArcSwap<ServerConfig>> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![AUTHORITY.chain.clone()], AUTHORITY.key.clone_key())
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(ArcSwap::from_pointee(config))
}

/// The configuration of a client that offers these protocols.
pub(crate) fn client(protocols: &[&str]) -> Arc<ClientConfig> {
    client_of(protocols, rustls::ALL_VERSIONS)
}

/// The configuration of a client that offers these protocols, and these versions of TLS.
pub(crate) fn client_of(
    protocols: &[&str],
    versions: &[&'static SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    let builder =
        ClientConfig::builder_with_provider(Arc::new(default_provider())).with_protocol_versions(versions);
    let mut config = builder.unwrap().with_root_certificates(roots()).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// As [`client`], with a certificate for this DNS name.
pub(crate) fn presenting(protocols: &[&str], name: &str) -> Arc<ClientConfig> {
    let (chain, key) = signed(&AUTHORITY.issuer, name);
    let mut config = (*client(protocols)).clone();
    let provider = default_provider();
    let key = CertifiedKey::from_der(vec![chain], key, &provider).unwrap();
    config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(key));
    Arc::new(config)
}

fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(AUTHORITY.root.clone()).unwrap();
    roots
}
