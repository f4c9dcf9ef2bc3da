//! PEM files of certificates and keys, read whole or not at all.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::{Error as Syntax, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// The error of a PEM file. It never quotes the file, which may hold a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemError {
    /// The file.
    pub file: PathBuf,
    /// The problem, as the rest of a sentence that begins with the file.
    pub problem: String,
}

impl fmt::Display for PemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.file.display(), self.problem)
    }
}

impl Error for PemError {}

/// Returns the certificates of a file, at least one.
pub(crate) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let failed = |problem: String| PemError { file: file.to_owned(), problem };
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| failed(syntax(&error, "certificate")))?;
    if certificates.is_empty() {
        return Err(failed("has no certificate".to_owned()));
    }
    match certificates.iter().position(|certificate| Certificate::from_der(certificate).is_err()) {
        Some(index) => Err(failed(format!("has an invalid certificate (number {})", index + 1))),
        None => Ok(certificates),
    }
}

/// Returns the first private key of a file.
pub(crate) fn key(file: &Path) -> Result<PrivateKeyDer<'static>, PemError> {
    PrivateKeyDer::from_pem_file(file)
        .map_err(|error| PemError { file: file.to_owned(), problem: syntax(&error, "private key") })
}

fn syntax(error: &Syntax, noun: &str) -> String {
    match error {
        Syntax::MissingSectionEnd { .. } => "is incomplete: a BEGIN line has no END line".to_owned(),
        Syntax::IllegalSectionStart { .. } => "has an invalid BEGIN line".to_owned(),
        Syntax::Base64Decode(_) => format!("has a {noun} that is not base64"),
        Syntax::NoItemsFound => format!("has no {noun}"),
        Syntax::Io(error) => format!("cannot be read: {error}"),
        _ => "is not a PEM file".to_owned(),
    }
}
