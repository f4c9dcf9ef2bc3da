//! One row of the dataset before it is written: the facts common to both versions.

use std::sync::Arc;

use ledger::source::{Month, Range};
use meter::Provenance;
use price::Currency;
use text::Decimal;

use crate::attributes::Entry;
use crate::column::share_of;
use crate::sums::{self, PROVENANCES};

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Charge {
    /// The month of the bill.
    pub(super) billed: Month,
    /// The range of time of that month.
    pub(super) billing: Range,
    /// The period of use: start, and end (exclusive), microseconds since 1970.
    pub(super) period_us: (i64, i64),
    /// The tenant; `None` for GPU use without an exchange.
    pub(super) tenant: Option<Arc<str>>,
    pub(super) principal: Option<Arc<str>>,
    pub(super) consumer: Option<Arc<str>>,
    /// The resource that served it, and its type.
    pub(super) resource: Option<(Arc<str>, &'static str)>,
    pub(super) model: Option<Arc<str>>,
    pub(super) provider: Option<Arc<str>>,
    /// The kind of server, if it is recognised.
    pub(super) publisher: Option<Arc<str>>,
    /// The tenant's attributes.
    pub(super) attributes: Option<Arc<Entry>>,
    /// The split of which this charge is a part, if it is GPU cost without an exchange.
    pub(super) split: Option<Split>,
    pub(super) currency: Currency,
    pub(super) kind: Kind,
    pub(super) description: String,
    /// The measured quantity.
    pub(super) quantity: Option<Quantity>,
    /// The SKU, if it is one.
    pub(super) sku: Option<Sku>,
    pub(super) cost_pico: i128,
    /// Number of exchanges, on their first row only, so that they can be summed.
    pub(super) requests: Option<i128>,
    /// Reasoning tokens in the quantity.
    pub(super) reasoning: Option<i128>,
    /// The provenance of the quantity.
    pub(super) known: Known,
    /// Joules, on the first row only.
    pub(super) energy: Option<Decimal>,
    /// The digest of the closed month.
    pub(super) digest: Option<Arc<str>>,
    /// The number of the tenant's statement of the closed month, if the charge is part of it.
    pub(super) statement: Option<String>,
}

/// A part of GPU cost without an exchange.
#[derive(Clone, Debug)]
pub(super) struct Split {
    /// The id of the method.
    pub(super) method: &'static str,
    /// The ratio of this part to the whole.
    pub(super) ratio: Decimal,
}

impl Split {
    /// Returns the JSON of `AllocatedMethodDetails`.
    pub(super) fn details(&self) -> String {
        // A JSON number of all digits, which `serde_json` would make a float.
        format!(r#"{{"Elements":[{{"AllocatedRatio":{}}}]}}"#, self.ratio)
    }
}

/// The provenance of a quantity.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// Not applicable.
    Unsaid,
    /// Measured by a meter.
    Measured,
    /// The number of tokens of each provenance.
    Counts([i128; PROVENANCES]),
}

impl Known {
    /// Returns the provenance, or the share of each if there are several.
    pub(super) fn words(&self) -> String {
        let counts = match self {
            Self::Unsaid => return String::new(),
            Self::Measured => return "measured".to_owned(),
            Self::Counts(counts) => counts,
        };
        match sums::shares(counts).as_slice() {
            [] => Provenance::None.name().to_owned(),
            [(only, _)] => only.name().to_owned(),
            several => {
                let each = several
                    .iter()
                    .map(|(known, share)| (known.name().to_owned(), share_of(*share).to_string().into()));
                serde_json::Value::Object(each.collect()).to_string()
            }
        }
    }
}

/// The kind of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Usage of a period that was open when it arrived.
    Usage,
    /// Usage of, or a correction to, a closed period.
    Correction,
    /// A correction to an open period: the price changed, or an amount without an exchange.
    Adjustment,
    /// An amount without an exchange in a closed period.
    LateAdjustment,
}

/// A quantity with its unit.
#[derive(Clone, Debug)]
pub(super) struct Quantity {
    pub(super) consumed: Decimal,
    pub(super) consumed_unit: &'static str,
    pub(super) priced: Decimal,
    pub(super) priced_unit: &'static str,
    pub(super) unit_price: Option<Decimal>,
}

/// A SKU and its price.
#[derive(Clone, Debug)]
pub(super) struct Sku {
    pub(super) id: String,
    pub(super) meter: &'static str,
    pub(super) price_id: String,
    /// Returns the JSON of `SkuPriceDetails`.
    pub(super) details: String,
}
