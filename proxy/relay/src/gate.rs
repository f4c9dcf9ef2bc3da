//! Enforcement: the tenants that may not spend at the moment. The control plane swaps the whole set;
//! a worker looks one name up, without a lock and without waiting. Who is not in it passes: a gate of
//! which nobody takes care refuses nobody (law 3). Some tenants may besides ask only for models that
//! somebody can name a price of.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

/// Tenants that are refused before anything of their requests goes upstream.
#[derive(Debug, Default)]
pub struct Gate {
    refused: ArcSwap<HashMap<Arc<str>, Refused>>,
    models: Option<Box<dyn Models>>,
}

/// Which models may be asked for, and by whom. Asked on a worker's thread: it looks something up, and
/// waits for nothing.
pub trait Models: Send + Sync + fmt::Debug {
    /// Whether a request of this tenant may be refused for its model.
    fn minds(&self, tenant: &str) -> bool;
    /// What it is told if it is; it goes to the client as it is.
    fn refused(&self, tenant: &str, wanted: &Wanted<'_>) -> Option<Box<str>>;
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The model it names. At most 128 bytes.
    pub model: &'a str,
    /// `gen_ai.provider.name` of the upstream.
    pub provider: &'a str,
    /// Name of the upstream, as configured.
    pub upstream: &'a str,
}

/// What a refused tenant is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// After how many seconds it may try again: `Retry-After`.
    pub retry_after_s: u64,
    /// What happened, on whose side, and what to do; it goes to the client as it is.
    pub message: Box<str>,
}

impl Gate {
    /// One that minds which models are asked for.
    pub fn minding(models: Box<dyn Models>) -> Self {
        Self { models: Some(models), ..Self::default() }
    }

    /// Whose models are minded, if this tenant's are.
    pub(crate) fn models(&self, tenant: &str) -> Option<&dyn Models> {
        self.models.as_deref().filter(|models| models.minds(tenant))
    }

    /// Refuses these tenants from now on, and no others.
    pub fn refuse(&self, tenants: HashMap<Arc<str>, Refused>) {
        self.refused.store(Arc::new(tenants));
    }

    /// What `tenant` is told, if it is refused.
    pub fn refused(&self, tenant: &str) -> Option<Refused> {
        self.refused.load().get(tenant).cloned()
    }
}
