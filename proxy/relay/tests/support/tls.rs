//! TLS between a test's client and the proxy. The certificates are made once for the process, and a client uses TLS if
//! the address that it connects to is that of a proxy with TLS.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex};

use arc_swap::ArcSwap;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

/// The name in the server's certificate.
pub(crate) const NAME: &str = "proxy.test";

/// An authority, and a certificate that it signed.
struct Authority {
    root: CertificateDer<'static>,
    chain: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| {
    let root_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&root_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new([NAME.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &Issuer::new(params, root_key)).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    Authority { root: root.der().clone(), chain: leaf.der().clone(), key }
});

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
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
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
    let mut roots = RootCertStore::empty();
    roots.add(AUTHORITY.root.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Arc::new(config)
}
