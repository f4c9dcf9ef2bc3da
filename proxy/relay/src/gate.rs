//! Enforcement: the tenants that may not spend at the moment. The control plane swaps the whole set;
//! a worker looks one name up, without a lock and without waiting. A tenant that is not in it passes: a gate that is
//! never updated refuses no tenant (law 3). Some tenants may ask only for models that have a price.

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

/// The models that each tenant may request, and the treatment of requests that cannot be metered in
/// full. Called on a worker's thread: it looks something up, and
/// waits for nothing.
pub trait Models: Send + Sync + fmt::Debug {
    /// Returns true if a request of this tenant may be refused for its model.
    fn restricts(&self, tenant: &str) -> bool;
    /// The message to the client if it is refused; it is sent as it is.
    fn refused(&self, tenant: &str, requested: &RequestedModel<'_>) -> Option<Box<str>>;
    /// Returns the terms for this tenant's requests that cannot be metered in full.
    fn terms(&self, tenant: &str) -> Terms {
        let _ = tenant;
        Terms::default()
    }
    /// Returns the message to the client whose request those terms refuse.
    fn message(&self, tenant: &str, gap: Gap) -> Box<str> {
        let _ = tenant;
        gap.name().into()
    }
}

/// The terms for requests of a tenant that cannot be metered in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Requests to unknown paths.
    pub unknown_paths: UnknownPaths,
    /// Requests whose model cannot be read are refused.
    pub refuse_unreadable: bool,
    /// Requests for a stream in which usage cannot be asked for are refused.
    pub refuse_uncountable: bool,
}

/// The treatment of requests to unknown paths, the strictest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnknownPaths {
    /// They pass; an answer that is a stream or counts tokens is metered.
    #[default]
    Pass,
    /// They are metered by the shape of body and answer.
    Meter,
    /// They are refused.
    Refuse,
}

impl UnknownPaths {
    /// Every treatment, the default first, as settings list them.
    pub const ALL: [Self; 3] = [Self::Meter, Self::Refuse, Self::Pass];

    /// Its name, as settings write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Meter => "meter",
            Self::Refuse => "refuse",
        }
    }
}

/// The part of a request that the meter cannot see, for which it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Its path is unknown.
    UnknownPath,
    /// It cannot be read which model it names.
    Unreadable,
    /// Usage of its stream cannot be asked for.
    Uncountable,
}

impl Gap {
    /// The error code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownPath => "unknown_path",
            Self::Unreadable => "model_unreadable",
            Self::Uncountable => "uncountable",
        }
    }
}

/// The model and place that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedModel<'a> {
    /// The model it names. At most 128 bytes.
    pub model: &'a str,
    /// `gen_ai.provider.name` of the upstream.
    pub provider: &'a str,
    /// Name of the upstream, as configured.
    pub upstream: &'a str,
}

/// The answer to a refused tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// After how many seconds it may try again: `Retry-After`.
    pub retry_after_s: u64,
    /// The event, the side at fault, and the remedy; it is sent to the client as it is.
    pub message: Box<str>,
}

impl Gate {
    /// Creates a gate with model rules.
    pub fn with_models(models: Box<dyn Models>) -> Self {
        Self { models: Some(models), ..Self::default() }
    }

    /// The model rules, if they hold for this tenant.
    pub(crate) fn models(&self, tenant: &str) -> Option<&dyn Models> {
        self.models.as_deref().filter(|models| models.restricts(tenant))
    }

    /// Returns the terms for this tenant's requests that cannot be metered in full.
    pub(crate) fn terms(&self, tenant: &str) -> Terms {
        self.models.as_deref().map(|models| models.terms(tenant)).unwrap_or_default()
    }

    /// Returns the message to the client whose request those terms refuse.
    pub(crate) fn message(&self, tenant: &str, gap: Gap) -> Box<str> {
        self.models.as_deref().map_or_else(|| gap.name().into(), |models| models.message(tenant, gap))
    }

    /// Refuses these tenants from now on, and no others.
    pub fn refuse(&self, tenants: HashMap<Arc<str>, Refused>) {
        self.refused.store(Arc::new(tenants));
    }

    /// The answer to `tenant`, if it is refused.
    pub fn refused(&self, tenant: &str) -> Option<Refused> {
        self.refused.load().get(tenant).cloned()
    }
}
