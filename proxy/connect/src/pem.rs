//! PEM files of certificates and keys, read whole or not at all.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::{Error as Syntax, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// The error of a PEM file. It never quotes the file, which may hold a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} {problem}")]
pub struct PemError {
    /// The file.
    pub file: PathBuf,
    /// The problem, as the rest of a sentence that begins with the file.
    pub problem: String,
}

impl PemError {
    /// An error of this file: the problem is the rest of a sentence that begins with it.
    pub fn new(file: &Path, problem: impl Into<String>) -> Self {
        Self { file: file.to_owned(), problem: problem.into() }
    }
}

/// Reads a file.
///
/// # Errors
/// If it cannot be read, is a pipe, or has more than [`FILE_MAX_BYTES`].
pub fn read(file: &Path) -> Result<Vec<u8>, PemError> {
    if fs::metadata(file).is_ok_and(|found| found.file_type().is_fifo()) {
        // Opening it would wait for a writer.
        return Err(PemError::new(file, "is a pipe, which cannot be read again; use a file"));
    }
    let mut content = Vec::new();
    let opened =
        File::open(file).and_then(|opened| opened.take(FILE_MAX_BYTES + 1).read_to_end(&mut content));
    opened.map_err(|error| PemError::new(file, format!("cannot be read: {error}")))?;
    match content.len() as u64 > FILE_MAX_BYTES {
        true => Err(PemError::new(file, format!("has more than {FILE_MAX_BYTES} bytes"))),
        false => Ok(content),
    }
}

/// Returns the certificates in the content of a file, at least one.
///
/// # Errors
/// If there is none, or one is invalid.
pub fn certificates(file: &Path, content: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let failed = |problem: String| PemError::new(file, problem);
    let read = CertificateDer::pem_slice_iter(content).collect::<Result<Vec<_>, _>>();
    let certificates = read.map_err(|error| failed(syntax(&error, "certificate")))?;
    if certificates.is_empty() {
        return Err(failed("has no certificate".to_owned()));
    }
    match certificates.iter().position(|certificate| Certificate::from_der(certificate).is_err()) {
        Some(index) => Err(failed(format!("has an invalid certificate (number {})", index + 1))),
        None => Ok(certificates),
    }
}

/// Returns the first private key in the content of a file.
///
/// # Errors
/// If there is none, or it has a passphrase.
pub fn key(file: &Path, content: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    PrivateKeyDer::from_pem_slice(content).map_err(|error| {
        PemError::new(
            file,
            match error {
                Syntax::NoItemsFound => "has no private key; one with a passphrase cannot be used".to_owned(),
                error => syntax(&error, "private key"),
            },
        )
    })
}

fn syntax(error: &Syntax, noun: &str) -> String {
    match error {
        Syntax::MissingSectionEnd { .. } => "is incomplete: a BEGIN line has no END line".to_owned(),
        Syntax::IllegalSectionStart { .. } => "has an invalid BEGIN line".to_owned(),
        Syntax::Base64Decode(_) => format!("has a {noun} that is not base64"),
        _ => "is not a PEM file".to_owned(),
    }
}

/// Maximum bytes of a file: a bundle of all public authorities has 230 KB.
pub const FILE_MAX_BYTES: u64 = 1024 * 1024;
