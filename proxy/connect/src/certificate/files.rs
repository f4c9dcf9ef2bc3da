//! The files of one listener.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use super::Validity;
use crate::pem::{self, PemError};

/// The paths of the files, each in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The certificate chain, the listener's own first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authorities of the clients' certificates; `None` if clients need none.
    pub client_ca: Option<PathBuf>,
}

/// The files, and the content that was read last.
///
/// Contents are compared, not times: Kubernetes replaces a folder's symlink, and other tools rename.
#[derive(Clone, Debug)]
pub struct Files {
    paths: Paths,
    protocols: &'static [&'static str],
    accepts_unverified: bool,
    last: Last,
}

/// The content that was read last.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Last {
    /// None.
    Unread,
    /// One of the files could not be read.
    Unreadable,
    Used(Contents),
    /// It cannot be used.
    Refused(Contents),
    /// It can be used from this Unix time on, in seconds.
    Early(Contents, u64),
}

type Contents = [Vec<u8>; 3];

/// A usable set of files.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// TLS with the certificate.
    pub tls: Arc<ServerConfig>,
    /// The period in which all certificates of the chain are valid.
    pub validity: Validity,
}

impl Files {
    /// The files at these paths; nothing is read. `protocols`: those that the listener speaks, by their names for ALPN,
    /// the preferred one first.
    pub fn new(paths: Paths, protocols: &'static [&'static str]) -> Self {
        Self { paths, protocols, accepts_unverified: false, last: Last::Unread }
    }

    /// Returns the files of a listener that also accepts clients without a certificate, and refuses their requests
    /// itself where one is needed.
    pub fn accepting_unverified(self) -> Self {
        Self { accepts_unverified: true, ..self }
    }

    /// Returns true if the certificates of clients are verified.
    pub fn verifies_clients(&self) -> bool {
        self.paths.client_ca.is_some()
    }

    /// Reads the files for the first time. A certificate that is not valid now is loaded; its clients refuse it.
    ///
    /// # Errors
    ///
    /// The file that cannot be used, and the reason.
    pub fn load(&mut self) -> Result<Loaded, PemError> {
        let contents = self.read()?;
        let loaded = self.parse(&contents)?;
        self.last = Last::Used(contents);
        Ok(loaded)
    }

    /// Reads the files; returns their content if it differs from that of the last call. An error is returned once for
    /// each change. Content that is not valid now is an error; that of a certificate which becomes valid later is
    /// returned then.
    pub fn changed(&mut self, now: UnixTime) -> Option<Result<Loaded, PemError>> {
        let now_unix_s = now.as_secs();
        let contents = match self.read() {
            Ok(contents) => contents,
            // While files are replaced, one of them may be absent.
            Err(error) => {
                let last = std::mem::replace(&mut self.last, Last::Unreadable);
                return (last != Last::Unreadable).then_some(Err(error));
            }
        };
        match &self.last {
            Last::Used(last) | Last::Refused(last) if *last == contents => return None,
            Last::Early(last, from) if *last == contents && now_unix_s < *from => return None,
            _ => {}
        }
        let (last, result) = match self.parse(&contents) {
            Err(error) => (Last::Refused(contents), Err(error)),
            Ok(loaded) => {
                let from = loaded.validity.from_unix_s;
                let invalid = |reason| {
                    PemError::new(&self.paths.certificate, format!("has a certificate that {reason}"))
                };
                match loaded.validity.check(now_unix_s).map_err(invalid) {
                    Ok(()) => (Last::Used(contents), Ok(loaded)),
                    Err(error) if now_unix_s < from => (Last::Early(contents, from), Err(error)),
                    Err(error) => (Last::Refused(contents), Err(error)),
                }
            }
        };
        self.last = last;
        Some(result)
    }

    /// Makes the next call of [`changed`](Self::changed) return the content, or its error, in any case.
    pub fn forget(&mut self) {
        self.last = Last::Unread;
    }

    fn read(&self) -> Result<Contents, PemError> {
        let Paths { certificate, key, client_ca } = &self.paths;
        let client_ca = client_ca.as_deref().map_or(Ok(Vec::new()), pem::read)?;
        Ok([pem::read(certificate)?, pem::read(key)?, client_ca])
    }

    fn parse(&self, [certificate, key, client_ca]: &Contents) -> Result<Loaded, PemError> {
        let paths = &self.paths;
        let chain = pem::certificates(&paths.certificate, certificate)?;
        let validity = Validity::of(&chain).map_err(|problem| PemError::new(&paths.certificate, problem))?;
        let key = pem::key(&paths.key, key)?;
        let tls = match &paths.client_ca {
            None => self.config(None, chain, key)?,
            Some(path) => {
                let roots = pem::certificates(path, client_ca)?;
                self.config(Some((path, roots)), chain, key)?
            }
        };
        Ok(Loaded { tls: Arc::new(tls), validity })
    }

    fn config(
        &self,
        client_ca: Option<(&PathBuf, Vec<CertificateDer<'static>>)>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<ServerConfig, PemError> {
        let paths = &self.paths;
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has suites of TLS 1.2 and 1.3");
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some((path, certificates)) => {
                let mut roots = RootCertStore::empty();
                for (index, certificate) in certificates.into_iter().enumerate() {
                    roots.add(certificate).map_err(|_invalid| {
                        PemError::new(path, format!("has an invalid certificate (number {})", index + 1))
                    })?;
                }
                let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                if self.accepts_unverified {
                    verifier = verifier.allow_unauthenticated();
                }
                builder.with_client_cert_verifier(
                    verifier.build().expect("there is a root, and no revocation list"),
                )
            }
        };
        let mut tls = builder.with_single_cert(chain, key).map_err(|error| {
            let problem = match error {
                rustls::Error::InconsistentKeys(_) => {
                    format!("is not the key of {}", paths.certificate.display())
                }
                // Nothing but the key can be refused after the chain was parsed.
                error => format!("has a private key that cannot be used: {error}"),
            };
            PemError::new(&paths.key, problem)
        })?;
        if paths.client_ca.is_some() {
            // A resumed session skips the verification, so that a certificate would be accepted after its expiry.
            tls.session_storage = Arc::new(NoServerSessionStorage {});
            tls.send_tls13_tickets = 0;
        }
        tls.alpn_protocols = self.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(tls)
    }
}

impl Loaded {
    /// Returns the reason why clients refuse the certificate at this time, if they do.
    pub fn warning(&self, now: UnixTime) -> Option<String> {
        self.validity.check(now.as_secs()).err().map(|reason| format!("the certificate {reason}"))
    }
}
