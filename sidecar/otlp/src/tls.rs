//! TLS to collectors: rustls with ring, the system's root certificates or those of a file, and a client certificate if
//! configured. Files are read once, at the start.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::plan::{Protocol, Target};
use crate::settings::variables::CERTIFICATE;

/// Returns the TLS configuration of a target; `None` for a target without TLS.
pub(crate) fn config(target: &Target) -> io::Result<Option<Arc<ClientConfig>>> {
    if target.uri.scheme_str() != Some("https") {
        return Ok(None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = match &target.certificate {
        Some(file) => roots_of(file)?,
        None => system_roots()?,
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let mut config = match &target.client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let key =
                PrivateKeyDer::from_pem_file(&client.key).map_err(|error| invalid(&client.key, &error))?;
            let chain = certificates(&client.certificate)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| invalid(&client.certificate, &error))?
        }
    };
    config.alpn_protocols = vec![match target.protocol {
        Protocol::Http => b"http/1.1".to_vec(),
        Protocol::Grpc => b"h2".to_vec(),
    }];
    Ok(Some(Arc::new(config)))
}

fn roots_of(file: &Path) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| invalid(file, &error))?;
    }
    Ok(roots)
}

/// Returns the valid root certificates of the system; on some systems a few are invalid.
fn system_roots() -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(io::Error::other(format!(
            "the system has no root certificates: install ca-certificates, or set {} to a file",
            CERTIFICATE.general
        )));
    }
    Ok(roots)
}

fn certificates(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| invalid(file, &error))?;
    if certificates.is_empty() {
        return Err(invalid(file, &"it contains no certificate"));
    }
    Ok(certificates)
}

fn invalid(file: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{} is not a valid PEM file: {error}", file.display()))
}
