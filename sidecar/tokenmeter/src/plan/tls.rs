//! Plans TLS and proxies towards the upstreams, and reads the files of TLS.

use connect::{Address, ClientFiles, HttpProxy, Target, TlsError, TlsFiles, Verification};
use origin::{Diagnostic, Origin};

use super::values::Reader;
use crate::plan::machine::Machine;
use crate::plan::url::Url;
use crate::settings::{Entry, RawSettings, UPSTREAM_TLS, Value};

/// The TLS settings of one upstream as written.
#[derive(Clone, Copy, Default)]
pub(super) struct TlsSettings<'a> {
    ca: Option<&'a Value>,
    cert: Option<&'a Value>,
    key: Option<&'a Value>,
    server_name: Option<&'a Value>,
    insecure_skip_verify: Option<&'a Value>,
}

impl<'a> TlsSettings<'a> {
    /// The settings of the single upstream.
    pub(super) fn of_single(written: &'a RawSettings) -> Self {
        Self::of(UPSTREAM_TLS.map(|(setting, _)| written.values.get(setting)))
    }

    /// The settings of an entry of the list.
    pub(super) fn of_entry(entry: &'a Entry) -> Self {
        Self::of(UPSTREAM_TLS.map(|(_, field)| entry.fields.get(field)))
    }

    fn of([ca, cert, key, server_name, insecure_skip_verify]: [Option<&'a Value>; 5]) -> Self {
        Self { ca, cert, key, server_name, insecure_skip_verify }
    }

    fn all(self) -> impl Iterator<Item = &'a Value> {
        [self.ca, self.cert, self.key, self.server_name, self.insecure_skip_verify].into_iter().flatten()
    }
}

impl Reader<'_> {
    /// Returns the server of a URL as it is reached; `None` if a setting is invalid.
    pub(super) fn upstream_target(
        &mut self,
        (url, url_origin): (&Url, &Origin),
        written: TlsSettings<'_>,
        proxy: Option<HttpProxy>,
    ) -> Option<Target> {
        if !url.is_secure {
            for value in written.all() {
                let problem = format!("has no effect on {url}, which has no TLS");
                self.errors.push(Diagnostic::at(
                    &value.origin,
                    problem,
                    "write https:// there, or remove this",
                ));
            }
        }
        let files = TlsFiles {
            ca: written.ca.map(|value| (&value.text).into()),
            client: self.client_files(written),
            server_name: written.server_name.map(|value| value.text.clone()),
            verification: self.verification(url, written),
        };
        match url.target(&files, proxy) {
            Ok(target) => Some(target),
            Err(error) => {
                let origin = |value: Option<&Value>| value.map_or(url_origin, |value| &value.origin).clone();
                let (origin, remedy) = match &error {
                    TlsError::Ca(_) => (origin(written.ca), PEM_REMEDY),
                    TlsError::Cert(_) => (origin(written.cert), PEM_REMEDY),
                    TlsError::Key(_) => (origin(written.key), PEM_REMEDY),
                    TlsError::ServerName(_) => {
                        (origin(written.server_name), "write the name that the certificate has")
                    }
                    TlsError::NoSystemRoots => (url_origin.clone(), ROOTS_REMEDY),
                };
                self.errors.push(Diagnostic::at(&origin, error.to_string(), remedy));
                None
            }
        }
    }

    /// Returns the proxy to a URL. `own`: the setting of its entry, else the general one applies, to `https` only.
    pub(super) fn proxy(
        &mut self,
        machine: &dyn Machine,
        url: &Url,
        own: Option<&Value>,
    ) -> Option<HttpProxy> {
        let written = self.written;
        let value = own.or_else(|| written.values.get("upstream_proxy"))?;
        if !url.is_secure {
            if own.is_some() || written.upstreams.is_none() {
                let problem = format!("has no effect on {url}: a proxy is used for https only");
                self.errors.push(Diagnostic::at(
                    &value.origin,
                    problem,
                    "write https:// there, or remove this",
                ));
            }
            return None;
        }
        let found = match (value.text.as_str(), &url.address) {
            ("env", Address::Host { host, .. }) => {
                HttpProxy::of_environment(host, |name| machine.variable(name))
            }
            (text, _) => HttpProxy::parse(text).map(Some),
        };
        found.unwrap_or_else(|error| {
            let remedy = "write http://[USER:PASSWORD@]HOST:PORT, or env to use HTTPS_PROXY";
            self.errors.push(Diagnostic::at(&value.origin, format!("not a proxy: {error}"), remedy));
            None
        })
    }

    fn client_files(&mut self, written: TlsSettings<'_>) -> Option<ClientFiles> {
        let missing = match (written.cert, written.key) {
            (None, None) => return None,
            (Some(cert), Some(key)) => {
                return Some(ClientFiles { cert: (&cert.text).into(), key: (&key.text).into() });
            }
            (Some(cert), None) => (cert, "a client certificate needs its key", "set key as well"),
            (None, Some(key)) => (key, "a key needs its client certificate", "set cert as well"),
        };
        let (value, problem, remedy) = missing;
        self.errors.push(Diagnostic::at(&value.origin, problem, remedy));
        None
    }

    fn verification(&mut self, url: &Url, written: TlsSettings<'_>) -> Verification {
        let Some(value) = written.insecure_skip_verify else { return Verification::On };
        if !self.truth(value) {
            return Verification::On;
        }
        if let Some(ca) = written.ca {
            let problem = format!("has no effect: {} turns verification off", value.origin);
            self.errors.push(Diagnostic::at(&ca.origin, problem, "remove one of the two"));
        }
        let problem = format!(
            "the certificate of {url} is not verified: anyone on the network path can read and change every \
             request"
        );
        self.warnings.push(Diagnostic::at(&value.origin, problem, "set ca to its root, and remove this"));
        Verification::Off
    }

    /// Rejects the TLS settings of the single upstream where the list is used.
    pub(super) fn check_single_tls(&mut self, list: &Origin) {
        let written: Vec<Origin> =
            TlsSettings::of_single(self.written).all().map(|value| value.origin.clone()).collect();
        for origin in written {
            let problem = format!("has no effect on the upstreams listed at {list}");
            self.errors.push(Diagnostic::at(&origin, problem, "write it in the `tls` of an entry there"));
        }
    }
}

const PEM_REMEDY: &str = "name a PEM file that is complete and that this process can read";

/// The remedy for a system without root certificates.
pub(super) const ROOTS_REMEDY: &str = "install ca-certificates, or set ca to a file";

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
