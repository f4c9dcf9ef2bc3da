//! TLS of clients and of the upstream: certificates, and bridges by which clients and servers without TLS reach a proxy
//! with it.
//!
//! Every test of this topic runs with TLS on the sides that the run names ([`chance::Side`]).

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType, date_time_ymd};
use rustls::client::WantsClientCert;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// An authority, and a folder with the files of a server's certificate; removed when dropped.
pub(crate) struct Pki {
    pub(crate) folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// The files of the bridge.
static BRIDGE: LazyLock<Pki> = LazyLock::new(|| Pki::new("bridge"));

impl Pki {
    /// Makes `ca.crt`, and `tls.crt` with `tls.key` for 127.0.0.1.
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tokenmeter-tls-{name}-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let root = params.self_signed(&key).expect("a certificate");
        std::fs::write(folder.join("ca.crt"), root.pem()).expect("a file");
        let pki = Self { folder, issuer: Issuer::new(params, key) };
        pki.write("tls", &pki.server(2020, 2050));
        pki
    }

    /// Returns a certificate for 127.0.0.1 that is valid from one year to another, and its key, in PEM.
    pub(crate) fn server(&self, from: i32, until: i32) -> (String, String) {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        self.signed(params)
    }

    /// Returns a client's certificate with these names, and its key, in PEM.
    pub(crate) fn client(&self, common_name: &str, names: Vec<SanType>) -> (String, String) {
        self.client_with(|params| {
            params.subject_alt_names = names;
            params.distinguished_name.push(DnType::CommonName, common_name);
        })
    }

    /// Returns a client's certificate, after a change of what it says, and its key, in PEM.
    pub(crate) fn client_with(&self, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        change(&mut params);
        self.signed(params)
    }

    fn signed(&self, params: CertificateParams) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    /// Writes `NAME.crt` and `NAME.key`, each by a rename.
    pub(crate) fn write(&self, name: &str, (certificate, key): &(String, String)) {
        self.replace(&format!("{name}.crt"), certificate);
        self.replace(&format!("{name}.key"), key);
    }

    /// Writes a file by a rename.
    pub(crate) fn replace(&self, name: &str, content: &str) {
        std::fs::write(self.folder.join("new"), content).expect("a file");
        std::fs::rename(self.folder.join("new"), self.folder.join(name)).expect("a rename");
    }

    /// Returns the path of a file.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Returns a client's configuration that trusts the authority.
    pub(crate) fn trusting(&self) -> Arc<ClientConfig> {
        Arc::new(self.builder().with_no_client_auth())
    }

    /// As [`Pki::trusting`], with these certificates and this key in PEM.
    pub(crate) fn presenting(&self, (certificate, key): &(String, String)) -> Arc<ClientConfig> {
        let chain =
            CertificateDer::pem_slice_iter(certificate.as_bytes()).map(|one| one.expect("a certificate"));
        let chain = chain.collect();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        Arc::new(self.builder().with_client_auth_cert(chain, key).expect("a pair"))
    }

    fn builder(&self) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(self.folder.join("ca.crt")).expect("a certificate");
        roots.add(root).expect("a root");
        ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
    }
}

impl Drop for Pki {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the options of a listener with TLS for the bridge.
pub(crate) fn options() -> [String; 6] {
    let file = |name: &str| BRIDGE.path(name);
    [
        "--listen-tls".into(),
        "127.0.0.1:0".into(),
        "--tls-cert".into(),
        file("tls.crt"),
        "--tls-key".into(),
        file("tls.key"),
    ]
}

/// Starts a server with TLS in front of one without, until the tests end; returns its URL and the file of its root.
pub(crate) fn front(server: SocketAddr) -> (String, String) {
    let chain = CertificateDer::from_pem_file(BRIDGE.folder.join("tls.crt")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(BRIDGE.folder.join("tls.key")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .expect("a pair");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let address = listen(move |client| {
        let acceptor = acceptor.clone();
        async move {
            let server = connect(&client, server).await;
            if let (Some(server), Ok(client)) = (server, acceptor.accept(client).await) {
                carry(client, server).await;
            }
        }
    });
    (format!("https://{address}"), BRIDGE.path("ca.crt"))
}

/// Listens for connections without TLS, and relays each to `to` with TLS, until the tests end.
pub(crate) fn bridge(to: SocketAddr) -> SocketAddr {
    let connector = TlsConnector::from(BRIDGE.trusting());
    listen(move |client| {
        let connector = connector.clone();
        async move {
            let Some(server) = connect(&client, to).await else { return };
            if let Ok(server) = connector.connect(ServerName::from(to.ip()), server).await {
                carry(client, server).await;
            }
        }
    })
}

/// Runs `serve` for each connection, until the tests end; returns the address.
fn listen<S: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(TcpStream) -> S + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            while let Ok((client, _)) = listener.accept().await {
                let _ = client.set_nodelay(true);
                tokio::spawn(serve(client));
            }
        });
    });
    address
}

/// Connects from the address of the client, by which the proxy tells clients apart.
async fn connect(client: &TcpStream, to: SocketAddr) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().ok()?;
    socket.bind((client.peer_addr().ok()?.ip(), 0).into()).ok()?;
    let server = socket.connect(to).await.ok()?;
    server.set_nodelay(true).ok()?;
    Some(server)
}

/// Copies bytes both ways. The tests see how a connection ended by its bytes.
async fn carry(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    mut server: impl AsyncRead + AsyncWrite + Unpin,
) {
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}
