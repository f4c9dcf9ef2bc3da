//! Reloads the TLS files of upstreams: trusted roots, client certificates and their keys. New connections use the new
//! files; open connections stay.

use std::path::PathBuf;
use std::time::Instant;

use connect::Tls;
use connect::pem::{self, PemError};
use metrics::ReloadedFile;

use super::{ReloadResult, Watch};

/// Watches the files of all upstreams that have some.
pub(crate) struct UpstreamTlsWatch(Vec<Upstream>);

struct Upstream {
    name: String,
    tls: Tls,
    files: Vec<(PathBuf, Option<Content>)>,
}

/// The result of the last read of a file.
type Content = Result<Vec<u8>, PemError>;

impl UpstreamTlsWatch {
    /// Watches the files of these upstreams, each with its name; `None` if they have none.
    pub(crate) fn of<'a>(upstreams: impl Iterator<Item = (&'a str, &'a Tls)>) -> Option<Self> {
        let upstreams = upstreams.filter_map(|(name, tls)| {
            let files: Vec<_> = tls.files().map(|file| (file.to_owned(), None)).collect();
            (!files.is_empty()).then(|| Upstream { name: name.to_owned(), tls: tls.clone(), files })
        });
        let upstreams: Vec<_> = upstreams.collect();
        (!upstreams.is_empty()).then_some(Self(upstreams))
    }
}

impl Watch for UpstreamTlsWatch {
    fn check(&mut self, _: Instant, urgent: bool, results: &mut Vec<ReloadResult>) {
        for Upstream { name, tls, files } in &mut self.0 {
            let mut is_changed = urgent;
            for (file, last) in files {
                let now = Some(pem::read(file));
                is_changed |= now != *last;
                *last = now;
            }
            if is_changed {
                let outcome = tls.reload().map(|()| format!("the certificates for the upstream {name}"));
                let outcome = outcome.map_err(|error| error.to_string());
                results.push(ReloadResult { kind: ReloadedFile::Certificate, outcome });
            }
        }
    }
}

#[cfg(test)]
#[path = "upstream_tls_tests.rs"]
mod tests;
