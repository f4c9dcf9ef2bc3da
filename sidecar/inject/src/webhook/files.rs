//! The files of the webhook: the injection config, and the certificate with its key.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use connect::certificate::{Files as CertificateFiles, Paths};
use rustls::ServerConfig;
use rustls::pki_types::UnixTime;

use super::Options;
use super::limits::FILE_MAX_BYTES;
use crate::config::Config;

/// The files, and the content in use.
#[derive(Debug)]
pub(super) struct Files {
    config: PathBuf,
    /// The config that was read last; `None` if the file could not be read.
    seen: Option<Vec<u8>>,
    certificate: CertificateFiles,
    loaded: Loaded,
}

/// The files in use.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    /// The injection config.
    pub(super) config: Arc<Config>,
    /// TLS with the certificate.
    pub(super) tls: Arc<ServerConfig>,
    /// True if a review needs a client certificate.
    pub(super) verifies_clients: bool,
}

impl Files {
    /// Reads the files for the first time.
    pub(super) fn load(options: &Options) -> Result<Self, String> {
        let seen = read(&options.config)?;
        let config = parse(&options.config, &seen)?;
        let paths = Paths {
            certificate: options.certificate.clone(),
            key: options.key.clone(),
            client_ca: options.client_ca.clone(),
        };
        // The kubelet's probes present no certificate.
        let mut certificate = CertificateFiles::new(paths, &["http/1.1"]).accepting_unverified();
        let verifies_clients = certificate.verifies_clients();
        let tls = certificate.load().map_err(|error| error.to_string())?;
        if let Some(warning) = tls.warning(UnixTime::now()) {
            tracing::warn!("{warning}");
        }
        let loaded = Loaded { config, tls: tls.tls, verifies_clients };
        Ok(Self { config: options.config.clone(), seen: Some(seen), certificate, loaded })
    }

    /// Returns the files in use.
    pub(super) fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Reads the files again, and uses what changed since the last call. An error is returned once for each change; the
    /// content before it stays in use.
    pub(super) fn reload(&mut self) -> Option<Result<(), String>> {
        let config = self.config_changed().map(|config| config.map(|config| self.loaded.config = config));
        let certificate = self.certificate.changed(UnixTime::now());
        let certificate = certificate
            .map(|changed| changed.map(|new| self.loaded.tls = new.tls).map_err(|error| error.to_string()));
        match (config, certificate) {
            (Some(config), Some(certificate)) => Some(config.and(certificate)),
            (config, certificate) => config.or(certificate),
        }
    }

    fn config_changed(&mut self) -> Option<Result<Arc<Config>, String>> {
        let content = match read(&self.config) {
            Ok(content) => content,
            // While files are replaced, one of them may be absent.
            Err(error) => return self.seen.take().map(|_| Err(error)),
        };
        if self.seen.as_ref() == Some(&content) {
            return None;
        }
        let parsed = parse(&self.config, &content);
        self.seen = Some(content);
        Some(parsed)
    }
}

fn parse(path: &Path, content: &[u8]) -> Result<Arc<Config>, String> {
    let text = std::str::from_utf8(content).map_err(|error| format!("{}: {error}", path.display()))?;
    Config::parse(text).map(Arc::new).map_err(|error| format!("{}: {error}", path.display()))
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
