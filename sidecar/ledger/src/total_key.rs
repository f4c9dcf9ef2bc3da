//! The key of a daily total.

use std::sync::Arc;

use meter::Provenance;

use crate::Row;

/// The model, upstream and provider of an adjustment in reports.
pub const ADJUSTMENT: &str = "__adjustment__";

/// The key of a daily total: all that its exchanges have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TotalKey {
    /// Days since 1970-01-01, by the ledger's calendar.
    pub day: i32,
    /// The tenant.
    pub tenant: Arc<str>,
    /// The API key or account.
    pub principal: Option<Arc<str>>,
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// The kind of server, as OpenTelemetry's `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// The model in the request.
    pub model: Arc<str>,
    /// The ending.
    pub ending: Arc<str>,
    /// The provenance of the input counts.
    pub input_provenance: Provenance,
    /// The provenance of the output counts.
    pub output_provenance: Provenance,
    /// The id of the rate; `None` without a price.
    pub rate: Option<[u8; 16]>,
    /// The kind of total.
    pub class: Class,
}

meter::listed_enum! {
    /// The kind of a daily total.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Class {
        /// The sum of rows that are stored, or were until retention deleted them.
        Usage = "usage",
        /// Overflow totals: the sum of rows that were never stored, because the disk was unavailable.
        Shed = "shed",
        /// The sum of corrections.
        Correction = "correction",
    }
    /// Returns the word in the store and in reports.
    pub fn name(self);
}

impl TotalKey {
    /// Returns a key without values.
    pub(crate) fn blank() -> Self {
        Self {
            day: 0,
            tenant: Arc::default(),
            principal: None,
            upstream: Arc::default(),
            provider: Arc::default(),
            model: Arc::default(),
            ending: Arc::default(),
            input_provenance: Provenance::None,
            output_provenance: Provenance::None,
            rate: None,
            class: Class::Usage,
        }
    }

    /// Returns true for an adjustment, which has no exchange. Decides by the provider, because a client chooses the
    /// name of a model.
    pub fn is_adjustment(&self) -> bool {
        *self.provider == *ADJUSTMENT
    }

    /// Returns the key of the total that a row is added to.
    pub fn of_row(row: &Row, class: Class) -> Self {
        Self {
            day: row.day(),
            tenant: Arc::clone(&row.tenant),
            principal: row.principal.clone(),
            upstream: Arc::clone(&row.upstream),
            provider: Arc::clone(&row.provider),
            model: Arc::clone(&row.model),
            ending: Arc::clone(&row.ending),
            input_provenance: row.tokens.input_provenance,
            output_provenance: row.tokens.output_provenance,
            rate: row.rate(),
            class,
        }
    }
}
