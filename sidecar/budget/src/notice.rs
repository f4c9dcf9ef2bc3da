//! An alert as a sentence and as the webhook's JSON. The schema has a version; members
//! may be added, never renamed or removed.

use std::sync::Arc;

use serde_json::{Value, json};
use text::money;

use crate::budget::Threshold;
use crate::period::{Period, Span, time};

/// A crossed threshold. Money is in pico-units of the currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The budget's name.
    pub budget: Arc<str>,
    /// The tenant; `None` for a shared limit.
    pub tenant: Option<Arc<str>>,
    /// The budget's period.
    pub period: Period,
    /// The period in which the threshold was crossed.
    pub span: Span,
    /// The start and the end of that period, microseconds since 1970-01-01.
    pub span_us: (i64, i64),
    /// The threshold.
    pub threshold: Threshold,
    /// The limit that the threshold refers to.
    pub limit: i128,
    /// The spend in that period.
    pub used: i128,
    /// The forecast of the period's spend, if there is one.
    pub forecast: Option<i128>,
    /// The soft limit.
    pub soft: Option<i128>,
    /// The hard limit.
    pub hard: Option<i128>,
    /// True if requests are rejected from now on: only when an enforced hard limit is reached in the
    /// current period.
    pub refusing: bool,
    /// The currency's code.
    pub currency: Arc<str>,
    /// The time of the evaluation, microseconds since 1970-01-01.
    pub at_us: i64,
}

impl Notice {
    /// Returns its id, equal for the same budget, tenant, period and threshold, whichever process sends it and however
    /// often: a deduplication key for receivers.
    pub fn id(&self) -> String {
        let tenant = self.tenant.as_deref().unwrap_or("*");
        format!("{}/{tenant}/{}/{}", self.budget, self.span.start_date(), self.threshold.name())
    }

    /// Returns the tenant's label value.
    pub fn label(&self) -> Arc<str> {
        self.tenant.clone().unwrap_or_else(|| shared_label(&self.budget))
    }

    /// Returns the notice as one sentence.
    pub fn sentence(&self) -> String {
        let who = match &self.tenant {
            Some(tenant) => format!("Tenant `{tenant}`"),
            None => format!("All of budget `{}`", self.budget),
        };
        let (used, limit, currency) = (money(self.used), money(self.limit), &self.currency);
        let limit_kind = if self.hard == Some(self.limit) { "limit" } else { "soft limit" };
        let period = match self.period {
            Period::Rolling => "of the last 30 days".to_owned(),
            _ => format!("of the {} from {}", self.period.name(), self.span.start_date()),
        };
        let budget =
            if self.tenant.is_some() { format!(" (budget `{}`)", self.budget) } else { String::new() };
        let share = match self.threshold {
            Threshold::Forecast => {
                let forecast = money(self.forecast.unwrap_or(self.used));
                return format!(
                    "{who} will have spent {forecast} {currency} at this pace, above the {limit_kind} of {limit} \
                     {currency} {period}{budget}; so far {used} {currency}."
                );
            }
            Threshold::All | Threshold::Soft => String::new(),
            part => format!("{} % of ", part.name()),
        };
        let refusing = match (self.threshold, self.refusing) {
            (_, true) => " Requests are refused from now on.",
            (Threshold::All, false) => " No request is refused because of it.",
            _ => "",
        };
        format!(
            "{who} has reached {share}the {limit_kind} of {limit} {currency} {period}{budget}: {used} {currency}.{refusing}"
        )
    }

    /// Returns the webhook's body.
    pub fn json(&self) -> Value {
        let decimal = |pico: i128| money(pico).to_string();
        json!({
            "version": 1,
            "id": self.id(),
            "text": slack(&self.sentence()),
            "budget": &*self.budget,
            "tenant": self.tenant.as_deref(),
            "period": self.period.name(),
            "period_start": time(self.span_us.0),
            "period_end": time(self.span_us.1),
            "threshold": self.threshold.name(),
            "used": decimal(self.used),
            "limit": decimal(self.limit),
            "soft_limit": self.soft.map(decimal),
            "hard_limit": self.hard.map(decimal),
            "forecast": self.forecast.map(decimal),
            "currency": &*self.currency,
            "refusing": self.refusing,
            "at": time(self.at_us),
        })
    }
}

/// Returns the label value of a shared limit.
pub(crate) fn shared_label(budget: &str) -> Arc<str> {
    format!("_shared:{budget}").into()
}

/// Escapes Slack's markup: a tenant named `<!channel>` must notify no channel.
fn slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
