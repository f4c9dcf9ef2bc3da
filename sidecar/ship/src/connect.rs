//! Connects to the store. TLS uses the system's roots or those of a file, which is read for each connection,
//! so that a new certificate needs no restart.

use postgres::config::SslMode;
use postgres::{Client, NoTls};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::Address;
use crate::error::ShipError;

/// Opens a connection to the store.
pub(crate) fn connect(address: &Address) -> Result<Client, ShipError> {
    let client = match address.config.get_ssl_mode() {
        SslMode::Disable => address.config.connect(NoTls),
        _ => address.config.connect(MakeRustlsConnect::new(tls(address)?)),
    };
    client.map_err(|error| ShipError::not_connected(&error, address))
}

fn tls(address: &Address) -> Result<ClientConfig, ShipError> {
    let mut roots = RootCertStore::empty();
    match &address.roots {
        Some(file) => {
            let bad = |error: &dyn std::fmt::Display| {
                ShipError::refused(format!(
                    "sslrootcert {} cannot be used: {error}; it must be PEM",
                    file.display()
                ))
            };
            let certificates = CertificateDer::pem_file_iter(file)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| bad(&error))?;
            for certificate in certificates {
                roots.add(certificate).map_err(|error| bad(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(ShipError::refused(
            "no root certificate to verify the central store with: install ca-certificates, or give \
             a file as sslrootcert=FILE in the URL",
        ));
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ShipError::other(format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
