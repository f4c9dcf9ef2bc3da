//! The files of the webhook: the injection config, and the certificate with its key.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Options;
use super::limits::FILE_MAX_BYTES;
use crate::config::Config;

/// The paths, and the content that was read last.
///
/// Contents are compared, not times: Kubernetes replaces a folder's symlink, and other tools rename.
#[derive(Debug)]
pub(super) struct Files {
    paths: [PathBuf; 3],
    seen: Option<Contents>,
}

type Contents = [Vec<u8>; 3];

/// The files in use.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    /// The injection config.
    pub(super) config: Arc<Config>,
    /// TLS with the certificate.
    pub(super) tls: Arc<ServerConfig>,
}

impl Files {
    pub(super) fn new(options: &Options) -> Self {
        let paths = [options.config.clone(), options.certificate.clone(), options.key.clone()];
        Self { paths, seen: None }
    }

    /// Reads the files for the first time.
    pub(super) fn load(&mut self) -> Result<Loaded, String> {
        let contents = self.read()?;
        let loaded = self.parse(&contents);
        self.seen = Some(contents);
        loaded
    }

    /// Returns the files if they changed since the last call. An error is returned once for each change.
    pub(super) fn changed(&mut self) -> Option<Result<Loaded, String>> {
        let contents = match self.read() {
            Ok(contents) => contents,
            // While files are replaced, one of them may be absent.
            Err(error) => return self.seen.take().map(|_| Err(error)),
        };
        if self.seen.as_ref() == Some(&contents) {
            return None;
        }
        let loaded = self.parse(&contents);
        self.seen = Some(contents);
        Some(loaded)
    }

    fn read(&self) -> Result<Contents, String> {
        let [config, certificate, key] = &self.paths;
        Ok([read(config)?, read(certificate)?, read(key)?])
    }

    fn parse(&self, [config, certificate, key]: &Contents) -> Result<Loaded, String> {
        let [config_path, certificate_path, key_path] = self.paths.each_ref().map(|path| path.display());
        let text = std::str::from_utf8(config).map_err(|error| format!("{config_path}: {error}"))?;
        let config = Config::parse(text).map_err(|error| format!("{config_path}: {error}"))?;
        let chain = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("{certificate_path}: {error}"))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("{key_path}: {error}"))?;
        let mut tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| format!("{certificate_path} and {key_path}: {error}"))?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Loaded { config: Arc::new(config), tls: Arc::new(tls) })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let error = |error| format!("{}: {error}", path.display());
    let mut content = Vec::new();
    let file = File::open(path).map_err(error)?;
    file.take(FILE_MAX_BYTES + 1).read_to_end(&mut content).map_err(error)?;
    if content.len() as u64 > FILE_MAX_BYTES {
        return Err(format!("{}: more than {FILE_MAX_BYTES} bytes", path.display()));
    }
    Ok(content)
}
