//! An authority whose root is in a file, and servers with certificates of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use crate::TlsFiles;

/// A folder of its own, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tokenmeter-connect-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A root that is trusted by the files that it yields.
pub(crate) struct Authority {
    root: CertifiedIssuer<'static, KeyPair>,
    folder: Folder,
}

/// A certificate chain, the server's first, and its key.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    /// The server's certificate as a PEM file has it.
    pub(crate) pem: String,
    pub(crate) key: KeyPair,
}

impl Identity {
    pub(crate) fn key_der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }
}

/// Parameters of an issuer's certificate.
pub(crate) fn issuer(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// Parameters of a server's certificate.
pub(crate) fn own(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, "server");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let root = CertifiedIssuer::self_signed(issuer("Test Root"), key).unwrap();
        Self { root, folder: Folder::new() }
    }

    /// The files of a client that trusts this authority.
    pub(crate) fn files(&self) -> TlsFiles {
        let ca = Some(self.folder.file("ca.pem", &self.root.pem()));
        TlsFiles { ca, ..TlsFiles::default() }
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// A certificate for `localhost`.
    pub(crate) fn localhost(&self) -> Identity {
        self.sign(own(&["localhost"]))
    }

    pub(crate) fn sign(&self, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.root).unwrap();
        Identity { chain: vec![certificate.der().clone()], pem: certificate.pem(), key }
    }

    /// A certificate for `localhost` of an intermediate issuer, with the chain to it.
    pub(crate) fn through_intermediate(&self) -> Identity {
        let key = KeyPair::generate().unwrap();
        let middle = CertifiedIssuer::signed_by(issuer("Test Intermediate"), key, &self.root).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = own(&["localhost"]).signed_by(&key, &middle).unwrap();
        let chain = vec![certificate.der().clone(), middle.der().clone()];
        Identity { chain, pem: certificate.pem(), key }
    }

    pub(crate) fn root_der(&self) -> CertificateDer<'static> {
        self.root.der().clone()
    }
}

/// A server on loopback, which ends when this is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Runs `serve` for each connection.
    pub(crate) async fn with<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Self { port, task: task.abort_handle() }
    }

    /// A TLS server that echoes each line, and closes with TLS after `quit`.
    pub(crate) async fn echo(config: ServerConfig) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self::with(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut buffer = [0; 100];
                while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                    if buffer[..read].starts_with(b"quit") {
                        break;
                    }
                    if stream.write_all(&buffer[..read]).await.is_err() {
                        return;
                    }
                }
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    /// The same with this identity, and with both protocols.
    pub(crate) async fn of(identity: &Identity) -> Self {
        Self::echo(config(identity, &[b"h2", b"http/1.1"])).await
    }
}

/// A server's configuration.
pub(crate) fn config(identity: &Identity, alpn: &[&[u8]]) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(identity.chain.clone(), identity.key_der())
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config
}
