//! Watches the tenants file, the hash key file and the sources of keys together: after any change, the rules are
//! rebuilt from all of them and replaced atomically.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use metrics::ReloadedFile;
use origin::Origin;
use rules::{HASH_KEY_BYTES, KeySource, TENANTS_BYTES, TenantFiles, load_rules};
use tenant::{KeySet, Live, Rules, Spec};

use super::keys::{FETCH_INTERVALS, FetchIntervals, KeysWatch};
use super::{LastRead, ReloadResult, Watch};
use crate::plan::tenants::Tenancy;

/// Keeps the current rules equal to the files.
pub struct TenantsWatch {
    files: TenantFiles,
    live: Arc<Live>,
    spec: Spec,
    keys: Vec<KeysWatch>,
    rules_file: LastRead,
    hash_file: LastRead,
    intervals: FetchIntervals,
}

impl TenantsWatch {
    /// Stores the planned rules in `live` and watches their files. The first check reads the files again: they may
    /// have changed since the plan.
    pub fn new(tenancy: Tenancy, live: Arc<Live>) -> Self {
        Self::at(FETCH_INTERVALS, tenancy, live)
    }

    pub(super) fn at(intervals: FetchIntervals, Tenancy { files, now }: Tenancy, live: Arc<Live>) -> Self {
        let keys = now.sources.into_iter().map(|source| {
            let keys = now.spec.keys(&source.name).cloned().unwrap_or_default();
            KeysWatch::new(source, keys, intervals)
        });
        let mut watch = Self {
            keys: keys.collect(),
            files,
            live,
            spec: now.spec,
            rules_file: LastRead::Never,
            hash_file: LastRead::Never,
            intervals,
        };
        watch.put();
        watch
    }

    fn put(&mut self) {
        for watch in &self.keys {
            self.spec.set_keys(&watch.source.name, &watch.keys);
        }
        self.live.store(Rules::new(self.spec.clone()));
    }

    /// Returns true if a file changed, and at the first call.
    fn changed(&mut self) -> bool {
        let rules = self.files.rules.as_deref();
        let rules = rules.is_some_and(|path| self.rules_file.changed(path, TENANTS_BYTES).is_some());
        let hash = self.files.hash_key.as_deref();
        let hash = hash.is_some_and(|path| self.hash_file.changed(path, HASH_KEY_BYTES).is_some());
        rules || hash
    }

    /// Replaces the sources; a source that stays keeps its keys.
    fn take_sources(&mut self, sources: Vec<KeySource>) {
        let mut before = mem::take(&mut self.keys);
        for source in sources {
            let known = before.iter().position(|watch| watch.source.place == source.place);
            self.keys.push(match known {
                Some(at) => before.swap_remove(at).renamed(source),
                None => KeysWatch::new(source, KeySet::default(), self.intervals),
            });
        }
    }
}

impl Watch for TenantsWatch {
    fn check(&mut self, now: Instant, urgent: bool, results: &mut Vec<ReloadResult>) {
        let mut other = false;
        let first = self.rules_file == LastRead::Never;
        if self.changed() || (urgent && self.files.rules.is_some()) {
            let origin = |flag: &str| Origin::Flag(flag.to_owned());
            let outcome = match load_rules(&self.files, (&origin("--tenants"), &origin("--hash-key-file"))) {
                Ok(tenants) => {
                    // The start has logged its own warnings.
                    for warning in tenants.warnings.iter().filter(|_| !first) {
                        tracing::warn!("{warning}");
                    }
                    self.spec = tenants.spec;
                    self.take_sources(tenants.sources);
                    other = true;
                    Ok(format!("{} rules", self.spec.rules.len()))
                }
                Err(errors) => Err(errors.to_string()),
            };
            results.push(ReloadResult { kind: ReloadedFile::Tenants, outcome });
        }
        // New rules apply together with their keys, or tokens would be rejected in between.
        for watch in &mut self.keys {
            other |= watch.check(now, urgent, results);
        }
        if other {
            self.put();
        }
    }
}
