//! TLS of the benchmark's ends and of the peers: one self-signed certificate of 127.0.0.1 and localhost, made at the
//! start.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, IpAddr, Ipv4Addr, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::Failure;

/// The connections of a proxy that use TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    /// None.
    Off,
    /// Those of its clients.
    Client,
    /// Those to its upstream.
    Upstream,
    /// All.
    Both,
}

impl Tls {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Off, Self::Client, Self::Upstream, Self::Both];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Client => "client",
            Self::Upstream => "upstream",
            Self::Both => "both",
        }
    }

    /// True if clients speak TLS.
    pub(crate) fn of_clients(self) -> bool {
        matches!(self, Self::Client | Self::Both)
    }

    /// True if the upstream speaks TLS.
    pub(crate) fn of_upstream(self) -> bool {
        matches!(self, Self::Upstream | Self::Both)
    }
}

/// The certificate's files.
#[derive(Clone, Debug)]
pub(crate) struct Certificate(PathBuf);

impl Certificate {
    /// Makes the certificate, in a folder.
    pub(crate) fn make(folder: &Path) -> Result<Self, Failure> {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let files = Self(folder.to_owned());
        fs::write(files.chain(), &certificate)?;
        fs::write(files.key(), &key)?;
        fs::write(files.both(), certificate + &key)?;
        Ok(files)
    }

    /// The certificate of this folder.
    pub(crate) fn of(folder: &str) -> Self {
        Self(folder.into())
    }

    /// The folder.
    pub(crate) fn folder(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }

    /// The certificate.
    pub(crate) fn chain(&self) -> String {
        self.file("cert.pem")
    }

    /// Its private key.
    pub(crate) fn key(&self) -> String {
        self.file("key.pem")
    }

    /// Both in one file, as HAProxy reads them.
    pub(crate) fn both(&self) -> String {
        self.file("both.pem")
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// Accepts TLS connections with the certificate, HTTP/1.1 only.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, Failure> {
        let chain = vec![CertificateDer::from_pem_file(self.chain())?];
        let key = PrivateKeyDer::from_pem_file(self.key())?;
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_no_client_auth()
                .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![HTTP1.to_vec()];
        Ok(Arc::new(config).into())
    }

    /// Opens TLS connections to servers with the certificate, HTTP/1.1 only.
    pub(crate) fn connector(&self) -> Result<TlsConnector, Failure> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.chain())?)?;
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = vec![HTTP1.to_vec()];
        Ok(Arc::new(config).into())
    }
}

/// The name in the certificate.
pub(crate) fn server_name() -> ServerName<'static> {
    ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([127, 0, 0, 1])))
}

const HTTP1: &[u8] = b"http/1.1";
