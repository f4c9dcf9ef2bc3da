//! Plans listeners with TLS: their addresses, and the certificates that the start reads.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use connect::certificate::{Files, Paths, Validity};
use origin::Diagnostic;
use rustls::ServerConfig;
use rustls::pki_types::UnixTime;
use tenant::Rule;

use super::tenants::Tenancy;
use super::upstreams::{ListenerDraft, UpstreamDraft};
use super::values::Reader;
use crate::settings::Value;

/// The certificate of a listener. Clones share the current configuration.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The listener's address, as configured.
    pub address: SocketAddr,
    /// The files.
    pub files: Files,
    /// The configuration of new connections.
    pub tls: Arc<ArcSwap<ServerConfig>>,
    /// The validity at the start.
    pub validity: Validity,
}

/// The settings of a listener with TLS.
pub(super) struct TlsKeys {
    pub(super) address: &'static str,
    pub(super) certificate: &'static str,
    pub(super) key: &'static str,
    pub(super) client_ca: &'static str,
    /// The protocols that it speaks, by their names for ALPN.
    pub(super) protocols: &'static [&'static str],
}

/// The settings of an upstream's listener.
pub(super) const LISTEN_TLS: TlsKeys = TlsKeys {
    address: "listen_tls",
    certificate: "tls_cert",
    key: "tls_key",
    client_ca: "tls_client_ca",
    protocols: &["h2", "http/1.1"],
};

/// The settings of the admin listener.
pub(super) const ADMIN_TLS: TlsKeys = TlsKeys {
    address: "admin_tls",
    certificate: "admin_tls_cert",
    key: "admin_tls_key",
    client_ca: "admin_tls_client_ca",
    protocols: &["http/1.1"],
};

impl Reader<'_> {
    /// Plans a listener with TLS if its address is written; `written` finds the value of a key.
    pub(super) fn tls_listener(
        &mut self,
        keys: &TlsKeys,
        written: &dyn Fn(&'static str) -> Option<Value>,
    ) -> Option<(ListenerDraft, Option<Certificate>)> {
        let listen = written(keys.address).filter(|value| !value.text.is_empty())?;
        let address = self.tcp_address(&listen, keys.address);
        let mut file = |key: &'static str, what: &str| {
            let value = written(key).filter(|value| !value.text.is_empty());
            if value.is_none() {
                let problem = format!("`{}` is set without `{key}`, the file of {what}", keys.address);
                self.errors.push(Diagnostic::at(
                    &listen.origin,
                    problem,
                    format!("set `{key}` to a PEM file"),
                ));
            }
            value
        };
        let certificate = file(keys.certificate, "its certificate");
        let key = file(keys.key, "its private key");
        let (address, certificate, key) = (address?, certificate?, key?);
        let client_ca = written(keys.client_ca).filter(|value| !value.text.is_empty());
        let paths = Paths {
            certificate: certificate.text.as_str().into(),
            key: key.text.as_str().into(),
            client_ca: client_ca.as_ref().map(|value| value.text.as_str().into()),
        };
        let mut files = Files::new(paths, keys.protocols);
        let loaded = match files.load() {
            Ok(loaded) => loaded,
            Err(error) => {
                let remedy = "name a PEM file of a certificate chain, one of its private key, and one of the authorities";
                let written = [Some(&certificate), Some(&key), client_ca.as_ref()];
                let wrong = written.into_iter().flatten().find(|value| Path::new(&value.text) == error.file);
                let origin = &wrong.unwrap_or(&certificate).origin;
                self.errors.push(Diagnostic::at(origin, error.to_string(), remedy));
                return Some((address, None));
            }
        };
        if let Some(problem) = loaded.warning(UnixTime::now()) {
            let remedy = "clients refuse it; replace the files, which are read again while tokenmeter runs";
            self.warnings.push(Diagnostic::at(&certificate.origin, problem, remedy));
        }
        let relay::ListenAddress::Tcp(socket) = address.address else { return None };
        let tls = Arc::new(ArcSwap::new(loaded.tls));
        let planned = Certificate { address: socket, files, tls, validity: loaded.validity };
        Some((address, Some(planned)))
    }

    /// Warns of tenant rules by certificate if no listener asks its clients for one.
    pub(super) fn check_certificate_rules(&mut self, upstreams: &[UpstreamDraft], tenancy: &Tenancy) {
        let is_certificate = |rule: &Rule| matches!(rule, Rule::Certificate { .. });
        let mut certificates = upstreams.iter().filter_map(|upstream| upstream.certificate.as_ref());
        let is_asked = certificates.any(|certificate| certificate.files.verifies_clients());
        if is_asked || !tenancy.now.spec.rules.iter().any(is_certificate) {
            return;
        }
        let problem = "a `certificate` rule matches no request: no listener verifies certificates of clients";
        let remedy = format!("set `{}`, or remove the rule", LISTEN_TLS.client_ca);
        self.warnings.push(Diagnostic::at(&self.value("tenants").origin, problem, remedy));
    }

    /// Reports files that no listener uses.
    pub(super) fn check_tls_files(&mut self, keys: &TlsKeys, is_used: bool) {
        for key in [keys.certificate, keys.key, keys.client_ca] {
            let value = self.written.values.get(key).filter(|value| !value.text.is_empty());
            if let (false, Some(value)) = (is_used, value) {
                let problem = format!("`{key}` is set, and no listener has TLS");
                let remedy = format!("set `{}` to an address, or remove it", keys.address);
                self.errors.push(Diagnostic::at(&value.origin, problem, remedy));
            }
        }
    }
}

#[cfg(test)]
#[path = "certificates_tests.rs"]
mod tests;
