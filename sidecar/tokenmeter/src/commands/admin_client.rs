//! The client of the admin address of a running tokenmeter, for `top` and `curve`.

use std::path::Path;

use connect::{TlsError, TlsFiles};
use scrape::Fetcher;

use crate::plan::url::Url;

/// Returns a client of the pages at `url`. `ca` has the trusted roots of an `https` URL (PEM), in place of the system's.
pub(super) fn admin_client(url: &Url, ca: Option<&Path>) -> Result<Fetcher, AdminClientError> {
    if ca.is_some() && !url.is_secure {
        return Err(AdminClientError::NoTls(url.clone()));
    }
    let files = TlsFiles { ca: ca.map(Path::to_owned), ..TlsFiles::default() };
    let target = url.target(&files, None).map_err(AdminClientError::Tls)?;
    Ok(Fetcher { target, prefix: url.prefix.as_str().into() })
}

/// The error of a client's trusted roots.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminClientError {
    /// Roots are named for a URL without TLS.
    #[error("--ca has no effect on {0}, which has no TLS; write https:// there, or remove --ca")]
    NoTls(Url),
    /// The roots cannot be read.
    #[error("{0}; {remedy}", remedy = roots_remedy(.0))]
    Tls(TlsError),
}

fn roots_remedy(error: &TlsError) -> &'static str {
    match error {
        TlsError::NoSystemRoots => "install ca-certificates, or name a PEM file with --ca",
        _ => "name a complete PEM file with --ca",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::admin_client;
    use crate::plan::url::Url;

    #[test]
    fn invalid_roots_have_a_remedy() {
        let absent = Path::new("/absent/ca.pem");
        for (url, part) in [
            (
                "http://gpu:9464",
                "--ca has no effect on http://gpu:9464, which has no TLS; write https:// there",
            ),
            ("https://gpu:9465", "; name a complete PEM file with --ca"),
        ] {
            let error = admin_client(&Url::parse(url).unwrap(), Some(absent)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let plain = admin_client(&Url::parse("http://gpu:9464").unwrap(), None).unwrap();
        assert!(!plain.target.is_secure());
    }
}
