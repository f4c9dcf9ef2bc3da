//! Enforcement of budgets: the tenants that are rejected at the moment. The control plane swaps the whole set; a worker
//! looks up one name, without a lock and without waiting. A tenant outside the set passes, so a gate that is never
//! updated rejects no tenant (law 3). Some tenants may use only models that have a price.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

/// The tenants that are rejected before anything of their requests goes upstream.
#[derive(Debug, Default)]
pub struct Gate {
    refused: ArcSwap<HashMap<Arc<str>, Refused>>,
    models: Option<Box<dyn Models>>,
}

/// The models that each tenant may use, and the treatment of requests that cannot be fully metered. Called on a
/// worker's thread, so an implementation must not wait.
pub trait Models: Send + Sync + fmt::Debug {
    /// Returns true if a request of this tenant can be rejected for its model.
    fn restricts(&self, tenant: &str) -> bool;
    /// Returns the error message if the model is not allowed; the client receives it unchanged.
    fn refused(&self, tenant: &str, requested: &RequestedModel<'_>) -> Option<Box<str>>;
    /// Returns the terms for this tenant's requests that cannot be fully metered.
    fn terms(&self, tenant: &str) -> Terms;
    /// Returns the error message for a request that these terms reject.
    fn message(&self, tenant: &str, gap: Gap) -> Box<str>;
}

/// The terms for requests of a tenant that cannot be fully metered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The treatment of requests to unknown paths.
    pub unknown_paths: UnknownPaths,
    /// True if requests by a method that no known endpoint takes are rejected.
    pub refuse_unknown_methods: bool,
    /// True if requests whose model cannot be read are rejected.
    pub refuse_unreadable: bool,
    /// True if requests for a stream in which usage cannot be requested are rejected.
    pub refuse_uncountable: bool,
}

/// The treatment of requests to unknown paths, the strictest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnknownPaths {
    /// Forwarded; an answer that is a stream or reports token counts is metered.
    #[default]
    Pass,
    /// Metered by the shape of request and response.
    Meter,
    /// Rejected.
    Refuse,
}

scan::listed_enum! {
    // In the order of the settings, whose default is the first.
    impl UnknownPaths {
        Meter = "meter",
        Refuse = "refuse",
        Pass = "pass",
    }
    /// The name in the settings.
    pub fn name(self);
}

scan::listed_enum! {
    /// The reason why a request that cannot be metered is rejected.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Gap {
        /// Its path is unknown.
        UnknownPath = "unknown_path",
        /// No known endpoint takes its method.
        UnknownMethod = "unknown_method",
        /// Its model cannot be read.
        Unreadable = "model_unreadable",
        /// Usage cannot be requested in its stream.
        Uncountable = "uncountable",
    }
    /// The error code.
    pub fn name(self);
}

/// The model and the upstream of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedModel<'a> {
    /// The model it names. At most 128 bytes.
    pub model: &'a str,
    /// `gen_ai.provider.name` of the upstream.
    pub provider: &'a str,
    /// Name of the upstream, as configured.
    pub upstream: &'a str,
}

/// The answer to a rejected tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The value of `Retry-After`, seconds.
    pub retry_after_s: u64,
    /// The error message: the event, the responsible side, and the remedy. The client receives it unchanged.
    pub message: Box<str>,
}

impl Gate {
    /// Creates a gate with model rules.
    pub fn with_models(models: Box<dyn Models>) -> Self {
        Self { models: Some(models), ..Self::default() }
    }

    /// The model rules, if they apply to this tenant.
    pub(crate) fn models(&self, tenant: &str) -> Option<&dyn Models> {
        self.models.as_deref().filter(|models| models.restricts(tenant))
    }

    /// Returns the terms for this tenant's requests that cannot be fully metered.
    pub(crate) fn terms(&self, tenant: &str) -> Terms {
        self.models.as_deref().map(|models| models.terms(tenant)).unwrap_or_default()
    }

    /// Returns the error message for a request that these terms reject.
    pub(crate) fn message(&self, tenant: &str, gap: Gap) -> Box<str> {
        self.models.as_deref().map_or_else(|| gap.name().into(), |models| models.message(tenant, gap))
    }

    /// Replaces the set of rejected tenants.
    pub fn refuse(&self, tenants: HashMap<Arc<str>, Refused>) {
        self.refused.store(Arc::new(tenants));
    }

    /// The answer to `tenant`, if it is rejected.
    pub fn refused(&self, tenant: &str) -> Option<Refused> {
        self.refused.load().get(tenant).cloned()
    }
}
