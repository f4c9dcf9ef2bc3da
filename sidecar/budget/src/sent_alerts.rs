//! The alerts sent, which survive a restart. An entry holds for a budget with the same period
//! and limits: a budget with other ones is new, and its alerts are sent anew.

use std::sync::Arc;

use serde_json::{Value, json};
use text::money;

use crate::budget::{Budget, Threshold};
use crate::notice::Notice;
use crate::period::{Period, Span, day_named};

/// All alerts sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentAlerts(pub(crate) Vec<SentEntry>);

/// The alerts sent for one tenant or shared limit in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentEntry {
    pub(crate) budget: Arc<str>,
    /// The budget's period and limits as text.
    pub(crate) limits: String,
    /// `None` for a shared limit.
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) at: i32,
    pub(crate) bits: u8,
}

/// The text is not in the format of [`SentAlerts::to_json`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file of sent budget alerts cannot be parsed")]
pub struct SentAlertsError;

impl SentAlerts {
    /// Returns the text of the state file.
    pub fn to_json(&self) -> String {
        let entries = self.0.iter().map(|entry| {
            let sent = Threshold::ALL.into_iter().filter(|one| entry.bits & one.bit() != 0);
            json!({
                "budget": &*entry.budget,
                "form": entry.limits,
                "tenant": entry.tenant.as_deref(),
                "at": Span { start: entry.at, end: entry.at + 1 }.start_date(),
                "thresholds": sent.map(Threshold::name).collect::<Vec<_>>(),
            })
        });
        json!({ "version": VERSION, "alerts": entries.collect::<Vec<_>>() }).to_string()
    }

    /// Returns the alerts without those that are undelivered, so that the next process sends them.
    #[must_use]
    pub fn without(mut self, undelivered: &[Notice]) -> Self {
        for notice in undelivered {
            let at = match notice.period {
                Period::Rolling => notice.span.end - 1,
                _ => notice.span.start,
            };
            let sent = self.0.iter_mut().filter(|entry| {
                entry.budget == notice.budget && entry.tenant == notice.tenant && entry.at == at
            });
            sent.for_each(|entry| entry.bits &= !notice.threshold.bit());
        }
        self.0.retain(|entry| entry.bits != 0);
        self
    }

    /// Parses the text of the state file.
    pub fn from_json(text: &str) -> Result<Self, SentAlertsError> {
        let kept: Value = serde_json::from_str(text).map_err(|_| SentAlertsError)?;
        if kept["version"] != VERSION {
            return Err(SentAlertsError);
        }
        let entries = kept["alerts"].as_array().ok_or(SentAlertsError)?;
        entries.iter().map(|entry| read(entry).ok_or(SentAlertsError)).collect::<Result<_, _>>().map(Self)
    }
}

fn read(entry: &Value) -> Option<SentEntry> {
    let bit = |name: &Value| {
        Threshold::ALL.into_iter().find(|one| name == one.name()).map(|threshold| threshold.bit())
    };
    let tenant = match &entry["tenant"] {
        Value::Null => None,
        tenant => Some(tenant.as_str()?.into()),
    };
    Some(SentEntry {
        budget: entry["budget"].as_str()?.into(),
        limits: entry["form"].as_str()?.to_owned(),
        tenant,
        at: day_named(entry["at"].as_str()?)?,
        bits: entry["thresholds"].as_array()?.iter().map(bit).try_fold(0, |bits, bit| Some(bits | bit?))?,
    })
}

/// Returns a budget's period and limits as text.
pub(crate) fn limits_text(budget: &Budget) -> String {
    let limit = |pico: Option<i128>| pico.map_or("-".to_owned(), |pico| money(pico).to_string());
    format!("{} {} {}", budget.period.name(), limit(budget.soft), limit(budget.hard))
}

const VERSION: u64 = 1;
