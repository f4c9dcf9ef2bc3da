//! TLS towards one server: its roots, its client certificate and its sessions, which all connections share. The
//! files can be read again; files that cannot be used change nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::error::{ConnectError, Step};
use crate::pem::{self, PemError};
use crate::socket::Socket;
use crate::stream::Stream;
use crate::verifier::{Unverified, Verifier};

/// The protocols that the client can speak on a connection; TLS offers them by ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, else HTTP/1.1.
    Http1OrHttp2,
    /// HTTP/2 only.
    Http2,
}

impl Offer {
    fn alpn(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Http1 => &[b"http/1.1"],
            Self::Http1OrHttp2 => &[b"h2", b"http/1.1"],
            Self::Http2 => &[b"h2"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// The verification of the server's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// The certificate must lead to a trusted root and have the server's name.
    #[default]
    On,
    /// Every certificate is accepted: anyone on the network path can read and change all requests.
    Off,
}

/// The files of a client certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// The certificate and its chain.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The files and choices from which [`Tls`] is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The trusted roots (PEM), in place of the system's.
    pub ca: Option<PathBuf>,
    /// The client certificate, if the server requires one.
    pub client: Option<ClientFiles>,
    /// The name that the certificate must have, and that SNI names, in place of the URL's host.
    pub server_name: Option<String>,
    /// The verification of the certificate.
    pub verification: Verification,
}

/// The error of a file or choice, by its part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The roots.
    #[error("{0}")]
    Ca(PemError),
    /// The client certificate.
    #[error("{0}")]
    Cert(PemError),
    /// The key of the client certificate.
    #[error("{0}")]
    Key(PemError),
    /// The name is neither a host name nor an address.
    #[error("`{}` is neither a host name nor an address", .0.escape_debug())]
    ServerName(String),
    /// The system has no root certificates.
    #[error("the system has no root certificates")]
    NoSystemRoots,
}

/// TLS towards one server. Cheap to clone; clones share files, configuration and sessions.
#[derive(Clone, Debug)]
pub struct Tls {
    files: Arc<TlsFiles>,
    /// The configuration of new connections.
    config: Arc<ArcSwap<ClientConfig>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// The file or choice that cannot be used.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let config = Arc::new(ArcSwap::from_pointee(files.config()?));
        Ok(Self { files: Arc::new(files.clone()), config })
    }

    /// Reads the files again, for new connections. Open ones keep what they have.
    ///
    /// # Errors
    /// As [`read`](Self::read). On an error, nothing changes.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.config.store(Arc::new(self.files.config()?));
        Ok(())
    }

    /// Returns the paths of the files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let client = self.files.client.iter().flat_map(|client| [&client.cert, &client.key]);
        self.files.ca.iter().chain(client).map(PathBuf::as_path)
    }

    /// Returns the verification of the server's certificate.
    pub fn verification(&self) -> Verification {
        self.files.verification
    }

    /// Starts TLS on a socket that is connected to `host`.
    pub(crate) async fn handshake(
        &self,
        socket: Socket,
        host: &str,
        offer: Offer,
        deadline: Instant,
    ) -> Result<Stream, ConnectError> {
        let name = self.files.server_name.as_deref().unwrap_or(host);
        let server = ServerName::try_from(name.to_owned()).map_err(|_| {
            let problem = "no certificate can have this host as its name; set server_name";
            ConnectError::Name(std::io::Error::new(std::io::ErrorKind::InvalidInput, problem))
        })?;
        let connector = TlsConnector::from(self.config.load_full());
        let handshake = connector.with_alpn(offer.alpn()).connect(server, socket);
        match timeout_at(deadline, handshake).await {
            Ok(Ok(stream)) => Ok(Stream::tls(stream)),
            Ok(Err(error)) => Err(ConnectError::of_handshake(&error, name)),
            Err(_elapsed) => Err(ConnectError::Timeout(Step::Handshake)),
        }
    }
}

impl TlsFiles {
    /// Reads the files, and makes the configuration of connections.
    fn config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has suites of TLS 1.2 and 1.3")
            .dangerous();
        let trusted = match &self.ca {
            Some(file) => read_certificates(file).map_err(TlsError::Ca)?,
            None => Vec::new(),
        };
        let builder = match (self.verification, &self.ca) {
            (Verification::Off, _) => {
                builder.with_custom_certificate_verifier(Arc::new(Unverified(provider)))
            }
            (Verification::On, ca) => {
                let roots = match ca {
                    Some(file) => {
                        let mut roots = RootCertStore::empty();
                        for (index, certificate) in trusted.iter().enumerate() {
                            roots.add(certificate.clone()).map_err(|_invalid| {
                                let problem = format!("has an invalid certificate (number {})", index + 1);
                                TlsError::Ca(PemError::new(file, problem))
                            })?;
                        }
                        Arc::new(roots)
                    }
                    None => system_roots()?,
                };
                let inner = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
                let inner = inner.expect("there is a root, and no revocation list");
                builder.with_custom_certificate_verifier(Arc::new(Verifier::new(inner, trusted)))
            }
        };
        let config = match &self.client {
            None => builder.with_no_client_auth(),
            Some(client) => {
                let key = pem::read(&client.key).and_then(|content| pem::key(&client.key, &content));
                let key = key.map_err(TlsError::Key)?;
                let chain = read_certificates(&client.cert).map_err(TlsError::Cert)?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    let problem = match error {
                        rustls::Error::InconsistentKeys(_) => {
                            format!("is not the key of {}", client.cert.display())
                        }
                        _ => "has a key of an unsupported kind".to_owned(),
                    };
                    TlsError::Key(PemError::new(&client.key, problem))
                })?
            }
        };
        match &self.server_name {
            Some(name) if ServerName::try_from(name.as_str()).is_err() => {
                Err(TlsError::ServerName(name.clone()))
            }
            _ => Ok(config),
        }
    }
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    pem::read(file).and_then(|content| pem::certificates(file, &content))
}

/// Returns the valid root certificates of the system, read once; on some systems a few are invalid.
fn system_roots() -> Result<Arc<RootCertStore>, TlsError> {
    static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    if ROOTS.is_empty() { Err(TlsError::NoSystemRoots) } else { Ok(Arc::clone(&ROOTS)) }
}
