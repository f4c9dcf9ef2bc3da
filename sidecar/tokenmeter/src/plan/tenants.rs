//! Plans the tenant rules: the files named in the settings, and their content at the start.

use std::path::PathBuf;

use rules::{TenantFiles, Tenants, load, warn_if_public};

use super::values::Reader;

/// The tenant rules of a start, and the files that may change them later.
#[derive(Clone, Debug, Default)]
pub struct Tenancy {
    /// The files.
    pub files: TenantFiles,
    /// Their content at the start.
    pub now: Tenants,
}

impl Reader<'_> {
    /// Reads the tenants file and the files that it names.
    pub(super) fn tenants(&mut self) -> Tenancy {
        let (rules, hash_key) = (self.value("tenants"), self.value("hash_key_file"));
        let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        let files = TenantFiles { rules: path(&rules.text), hash_key: path(&hash_key.text) };
        if let Some(warning) =
            files.hash_key.as_deref().and_then(|path| warn_if_public(path, &hash_key.origin))
        {
            self.warnings.push(warning);
        }
        match load(&files, (&rules.origin, &hash_key.origin)) {
            Ok(now) => {
                self.warnings.extend(now.warnings.iter().cloned());
                Tenancy { files, now }
            }
            Err(errors) => {
                self.errors.extend(errors.0);
                Tenancy { files, now: Tenants::default() }
            }
        }
    }
}
