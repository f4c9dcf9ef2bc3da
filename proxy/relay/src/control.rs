//! The parts of the control plane that workers consult.

use std::sync::Arc;

use crate::Gate;

/// The decisions that the control plane changes while the workers run.
#[derive(Clone, Debug)]
pub struct Control {
    /// The current tenant rules.
    pub tenants: Arc<tenant::Live>,
    /// The rejected tenants; `None` if budgets are not enforced.
    pub gate: Option<Arc<Gate>>,
}
