//! The rules in force. A snapshot is taken for each request and swapped whole, so that no request
//! is judged by half of one file and half of another.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::Rules;

/// The rules in force, shared by those who ask and the one who reloads.
#[derive(Debug, Default)]
pub struct Live(ArcSwap<Rules>);

impl Live {
    /// Begins with `rules`.
    pub fn new(rules: Rules) -> Self {
        Self(ArcSwap::from_pointee(rules))
    }

    /// The rules of this moment.
    pub fn load(&self) -> Arc<Rules> {
        self.0.load_full()
    }

    /// Puts `rules` into force; requests that hold earlier ones end with those.
    pub fn store(&self, rules: Rules) {
        self.0.store(Arc::new(rules));
    }
}
