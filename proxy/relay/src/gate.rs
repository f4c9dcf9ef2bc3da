//! Enforcement: the tenants that may not spend at the moment. The control plane swaps the whole set;
//! a worker looks one name up, without a lock and without waiting. Who is not in it passes: a gate of
//! which nobody takes care refuses nobody (law 3).

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

/// Tenants that are refused before anything of their requests goes upstream.
#[derive(Debug, Default)]
pub struct Gate(ArcSwap<HashMap<Arc<str>, Refused>>);

/// What a refused tenant is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// After how many seconds it may try again: `Retry-After`.
    pub retry_after_s: u64,
    /// What happened, on whose side, and what to do; it goes to the client as it is.
    pub message: Box<str>,
}

impl Gate {
    /// Refuses these tenants from now on, and no others.
    pub fn refuse(&self, tenants: HashMap<Arc<str>, Refused>) {
        self.0.store(Arc::new(tenants));
    }

    /// What `tenant` is told, if it is refused.
    pub fn refused(&self, tenant: &str) -> Option<Refused> {
        self.0.load().get(tenant).cloned()
    }
}
