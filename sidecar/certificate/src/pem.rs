//! PEM files. The library's errors quote the file, which may be a key: they are replaced.

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Returns the certificates of a file.
pub(crate) fn certificates(file: &[u8]) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(file).collect::<Result<_, _>>().map_err(incomplete)?;
    if all.is_empty() { Err("no `BEGIN CERTIFICATE` in it") } else { Ok(all) }
}

/// Returns the first private key of a file.
pub(crate) fn private_key(file: &[u8]) -> Result<PrivateKeyDer<'static>, &'static str> {
    PrivateKeyDer::from_pem_slice(file).map_err(|error| match error {
        Error::NoItemsFound => "no private key in it; a key with a passphrase cannot be used",
        error => incomplete(error),
    })
}

fn incomplete(_: Error) -> &'static str {
    "not a whole PEM file: a line is damaged, or the end is missing"
}
