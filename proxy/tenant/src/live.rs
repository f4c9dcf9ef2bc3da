//! The active rules. Each request takes a snapshot, and a reload replaces it as a whole, so that no request
//! sees parts of two files.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::Rules;

/// The active rules, shared by the workers and the reloader.
#[derive(Debug, Default)]
pub struct Live(ArcSwap<Rules>);

impl Live {
    /// Starts with `rules`.
    pub fn new(rules: Rules) -> Self {
        Self(ArcSwap::from_pointee(rules))
    }

    /// The current rules.
    pub fn load(&self) -> Arc<Rules> {
        self.0.load_full()
    }

    /// Activates `rules`; requests with an earlier snapshot end with that.
    pub fn store(&self, rules: Rules) {
        self.0.store(Arc::new(rules));
    }
}
