//! The tenants file, the hash key file and the keys it names, watched together: whatever changes,
//! the rules in force are made anew of all of them, and swapped whole.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use tenant::{KeySet, Live, Rules, Spec};

use super::keys::{KeysWatch, PACE, Pace};
use super::{Last, News, Watch, Which};
use crate::origin::Origin;
use crate::plan::tenants::{HASH_KEY_BYTES, KeySource, TENANTS_BYTES, Tenancy, TenantFiles, load_rules};

/// Keeps the rules in force as the files have them.
pub struct TenantsWatch {
    files: TenantFiles,
    live: Arc<Live>,
    spec: Spec,
    keys: Vec<KeysWatch>,
    rules_file: Last,
    hash_file: Last,
    pace: Pace,
}

impl TenantsWatch {
    /// Puts what was planned into force in `live`, and watches its files from then on. The first look
    /// reads them once more: they may have changed since.
    pub fn new(tenancy: Tenancy, live: Arc<Live>) -> Self {
        Self::at(PACE, tenancy, live)
    }

    pub(super) fn at(pace: Pace, Tenancy { files, now }: Tenancy, live: Arc<Live>) -> Self {
        let keys = now.sources.into_iter().map(|source| {
            let keys = now.spec.keys(&source.name).cloned().unwrap_or_default();
            KeysWatch::new(source, keys, pace)
        });
        let mut watch = Self {
            keys: keys.collect(),
            files,
            live,
            spec: now.spec,
            rules_file: Last::Never,
            hash_file: Last::Never,
            pace,
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

    /// Whether a file is another than it was; the first time, whatever it is.
    fn changed(&mut self) -> bool {
        let rules = self.files.rules.as_deref();
        let rules = rules.is_some_and(|path| self.rules_file.changed(path, TENANTS_BYTES).is_some());
        let hash = self.files.hash_key.as_deref();
        let hash = hash.is_some_and(|path| self.hash_file.changed(path, HASH_KEY_BYTES).is_some());
        rules || hash
    }

    /// Takes the sources of new rules; those there were keep what they know.
    fn take_sources(&mut self, sources: Vec<KeySource>) {
        let mut before = mem::take(&mut self.keys);
        for source in sources {
            let known = before.iter().position(|watch| watch.source.place == source.place);
            self.keys.push(match known {
                Some(at) => before.swap_remove(at).renamed(source),
                None => KeysWatch::new(source, KeySet::default(), self.pace),
            });
        }
    }
}

impl Watch for TenantsWatch {
    fn look(&mut self, now: Instant, urgent: bool, news: &mut Vec<News>) {
        let mut other = false;
        let first = self.rules_file == Last::Never;
        if self.changed() || (urgent && self.files.rules.is_some()) {
            let origin = |flag: &str| Origin::Flag(flag.to_owned());
            let said = match load_rules(&self.files, (&origin("--tenants"), &origin("--hash-key-file"))) {
                Ok(tenants) => {
                    // Those of the start were told then.
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
            news.push(News { which: Which::Tenants, said });
        }
        // New rules come into force with their keys, or nobody would be known for a while.
        for watch in &mut self.keys {
            other |= watch.look(now, urgent, news);
        }
        if other {
            self.put();
        }
    }
}
