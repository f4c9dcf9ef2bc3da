//! What was told, kept from one process to the next. An entry holds for the budget as it was: one
//! whose period or limits have changed since is a new one, and its thresholds are told anew.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use text::money;

use crate::budget::{Budget, Threshold};
use crate::notice::Notice;
use crate::period::{Period, Span, day_named, day_of};

/// All that was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told(pub(crate) Vec<Entry>);

/// What was told of one purse in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) budget: Arc<str>,
    /// The budget's period and limits, as one text.
    pub(crate) form: String,
    /// `None` for a shared purse.
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) at: i32,
    pub(crate) bits: u8,
}

/// What was kept is not what [`Told::to_json`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToldError;

impl fmt::Display for ToldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what was kept of the budgets' notices cannot be read")
    }
}

impl std::error::Error for ToldError {}

impl Told {
    /// As text to keep.
    pub fn to_json(&self) -> String {
        let entries = self.0.iter().map(|entry| {
            let told = Threshold::ALL.into_iter().filter(|one| entry.bits & one.bit() != 0);
            json!({
                "budget": &*entry.budget,
                "form": entry.form,
                "tenant": entry.tenant.as_deref(),
                "at": Span { start: entry.at, end: entry.at + 1 }.start_date(),
                "told": told.map(Threshold::name).collect::<Vec<_>>(),
            })
        });
        json!({ "version": VERSION, "told": entries.collect::<Vec<_>>() }).to_string()
    }

    /// The same, without what nobody took yet: the next process shall tell it.
    #[must_use]
    pub fn without(mut self, owed: &[Notice]) -> Self {
        for notice in owed {
            let at = match notice.period {
                Period::Rolling => day_of(notice.at_us),
                _ => notice.span.start,
            };
            let told = self.0.iter_mut().filter(|entry| {
                entry.budget == notice.budget && entry.tenant == notice.tenant && entry.at == at
            });
            told.for_each(|entry| entry.bits &= !notice.threshold.bit());
        }
        self.0.retain(|entry| entry.bits != 0);
        self
    }

    /// Reads what was kept.
    pub fn from_json(text: &str) -> Result<Self, ToldError> {
        let kept: Value = serde_json::from_str(text).map_err(|_| ToldError)?;
        if kept["version"] != VERSION {
            return Err(ToldError);
        }
        let entries = kept["told"].as_array().ok_or(ToldError)?;
        entries.iter().map(|entry| read(entry).ok_or(ToldError)).collect::<Result<_, _>>().map(Self)
    }
}

fn read(entry: &Value) -> Option<Entry> {
    let bit = |name: &Value| {
        Threshold::ALL.into_iter().find(|one| name == one.name()).map(|threshold| threshold.bit())
    };
    let tenant = match &entry["tenant"] {
        Value::Null => None,
        tenant => Some(tenant.as_str()?.into()),
    };
    Some(Entry {
        budget: entry["budget"].as_str()?.into(),
        form: entry["form"].as_str()?.to_owned(),
        tenant,
        at: day_named(entry["at"].as_str()?)?,
        bits: entry["told"].as_array()?.iter().map(bit).try_fold(0, |bits, bit| Some(bits | bit?))?,
    })
}

/// A budget's period and limits.
pub(crate) fn form(budget: &Budget) -> String {
    let limit = |pico: Option<i128>| pico.map_or("-".to_owned(), |pico| money(pico).to_string());
    format!("{} {} {}", budget.period.name(), limit(budget.soft), limit(budget.hard))
}

const VERSION: u64 = 1;
