//! Reloads the certificates of listeners. New connections get the new one; open ones keep theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use metrics::{Metric, ReloadedFile, SampleWriter, Samples};
use rustls::pki_types::UnixTime;

use super::{ReloadResult, Watch};
use crate::plan::certificates::Certificate;

/// Watches the files of all certificates.
pub(crate) struct CertificatesWatch {
    certificates: Vec<Certificate>,
    expiries: Arc<Expiries>,
    has_begun: bool,
}

/// Each listener, and the second since 1970 at which its certificate expires.
struct Expiries(Vec<(String, AtomicU64)>);

impl CertificatesWatch {
    /// Watches the certificates of a start.
    pub(crate) fn new(certificates: Vec<Certificate>) -> Self {
        let expiries = certificates.iter().map(|certificate| {
            (certificate.address.to_string(), AtomicU64::new(certificate.validity.until_unix_s))
        });
        Self { expiries: Arc::new(Expiries(expiries.collect())), certificates, has_begun: false }
    }

    /// Returns the samples of the certificates.
    pub(crate) fn samples(&self) -> Arc<dyn Samples> {
        Arc::clone(&self.expiries) as _
    }
}

impl Watch for CertificatesWatch {
    fn check(&mut self, _: Instant, urgent: bool, results: &mut Vec<ReloadResult>) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        for (certificate, (address, expiry)) in self.certificates.iter_mut().zip(&self.expiries.0) {
            if urgent {
                certificate.files.forget();
            }
            let shown = || format!("the certificate of {address}");
            let outcome = match certificate.files.changed(UnixTime::now()) {
                // The start has read it.
                None if is_first => Ok(shown()),
                None => continue,
                Some(Ok(loaded)) => {
                    certificate.tls.store(loaded.tls);
                    expiry.store(loaded.validity.until_unix_s, Ordering::Relaxed);
                    Ok(shown())
                }
                Some(Err(error)) => Err(error.to_string()),
            };
            results.push(ReloadResult { kind: ReloadedFile::Certificate, outcome });
        }
    }
}

impl Samples for Expiries {
    fn write(&self, to: &mut SampleWriter) {
        for (listener, expiry) in &self.0 {
            to.count(Metric::CertificateExpiry, &[listener], expiry.load(Ordering::Relaxed));
        }
    }
}
