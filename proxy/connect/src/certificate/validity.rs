//! The time in which a chain of certificates is valid.

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::{DateTime, Decode};

/// A period, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub from_unix_s: u64,
    /// The last second.
    pub until_unix_s: u64,
}

impl Validity {
    /// The period in which all certificates of a chain are valid.
    pub(super) fn of(chain: &[CertificateDer<'_>]) -> Result<Self, String> {
        let mut all = Self { from_unix_s: 0, until_unix_s: u64::MAX };
        for (index, certificate) in chain.iter().enumerate() {
            // The error has a position and a tag, nothing of the content.
            let parsed = Certificate::from_der(certificate)
                .map_err(|error| format!("has an invalid certificate (number {}): {error}", index + 1))?;
            let validity = &parsed.tbs_certificate.validity;
            all.from_unix_s = all.from_unix_s.max(validity.not_before.to_unix_duration().as_secs());
            all.until_unix_s = all.until_unix_s.min(validity.not_after.to_unix_duration().as_secs());
        }
        Ok(all)
    }

    /// Returns the reason why it is not valid at this time: the rest of a sentence that begins with the certificate.
    pub(super) fn check(&self, now_unix_s: u64) -> Result<(), String> {
        if now_unix_s < self.from_unix_s {
            return Err(format!("is not valid before {}", date(self.from_unix_s)));
        }
        if now_unix_s > self.until_unix_s {
            return Err(format!("expired at {}", date(self.until_unix_s)));
        }
        Ok(())
    }
}

fn date(unix_s: u64) -> String {
    let date = DateTime::from_unix_duration(std::time::Duration::from_secs(unix_s));
    date.map_or_else(|_| unix_s.to_string(), |date| date.to_string())
}
