//! The alerts sent for one tenant, or for all who share one limit, under one budget. Each threshold is sent once
//! per period, also if the clock goes back, or if a correction takes the sum below it and it is crossed again.
//!
//! The rolling period has no end. There a threshold is sent again once the thirty days
//! before some day, without that day, held less. A rolling forecast is sent once in
//! thirty days.

use calendar::{Calendar, DAY_US};

use crate::budget::{Budget, Threshold};
use crate::forecast::forecast;
use crate::period::{Period, ROLLING_DAYS, Span};
use crate::spend::Spend;

/// The alerts sent, and since when the forecast is above the limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlertState {
    sent: Vec<SentAlert>,
    above_limit: Option<AboveLimit>,
}

/// The thresholds sent, keyed by the period's first day, or for a rolling period by the day of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentAlert {
    pub(crate) at: i32,
    pub(crate) bits: u8,
}

/// A forecast above the limit: for the period from this day, since this time.
#[derive(Clone, Copy, Debug)]
struct AboveLimit {
    start: i32,
    since_us: i64,
}

/// A crossed threshold whose alert is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossed {
    pub(crate) threshold: Threshold,
    pub(crate) limit: i128,
    pub(crate) used: i128,
    pub(crate) forecast: Option<i128>,
    pub(crate) span: Span,
}

/// The inputs of one evaluation.
pub(crate) struct Evaluation<'a> {
    pub(crate) budget: &'a Budget,
    pub(crate) spend: &'a Spend,
    pub(crate) calendar: &'a Calendar,
    pub(crate) now_us: i64,
    /// The day of `now_us`.
    pub(crate) today: i32,
    /// The current period.
    pub(crate) span: Span,
    /// The period before.
    pub(crate) before: Option<Span>,
}

impl Evaluation<'_> {
    pub(crate) fn used(&self) -> i128 {
        self.spend.between(self.span.start, self.span.end)
    }

    pub(crate) fn forecast(&self) -> Option<i128> {
        forecast(self.spend, self.budget.period, self.span, self.calendar, self.now_us.div_euclid(1_000_000))
    }

    fn rolling(&self) -> bool {
        self.budget.period == Period::Rolling
    }
}

impl AlertState {
    /// Reports the alerts that are due and not sent yet. Late charges to the period before count, too.
    pub(crate) fn evaluate(&mut self, evaluation: &Evaluation<'_>, mut report: impl FnMut(Crossed)) {
        for span in evaluation.before.into_iter().chain([evaluation.span]) {
            self.evaluate_span(evaluation, span, &mut report);
        }
        if self.forecast_due(evaluation) {
            let Some(limit) = evaluation.budget.limit() else { return };
            let forecast = evaluation.forecast();
            report(Crossed {
                threshold: Threshold::Forecast,
                limit,
                used: evaluation.used(),
                forecast,
                span: evaluation.span,
            });
            self.record_sent(
                Threshold::Forecast,
                self.key(evaluation, evaluation.span),
                evaluation.rolling(),
            );
        }
    }

    fn evaluate_span(&mut self, evaluation: &Evaluation<'_>, span: Span, report: &mut impl FnMut(Crossed)) {
        let used = evaluation.spend.between(span.start, span.end);
        for (threshold, limit) in evaluation.budget.thresholds() {
            if threshold.is_crossed(used, limit) && !self.is_sent(evaluation, span, threshold, limit) {
                let forecast = if span == evaluation.span { evaluation.forecast() } else { None };
                report(Crossed { threshold, limit, used, forecast, span });
                self.record_sent(threshold, self.key(evaluation, span), evaluation.rolling());
            }
        }
    }

    /// Marks every crossed threshold as sent, because an earlier process or another one sent it.
    pub(crate) fn mark_all_sent(&mut self, evaluation: &Evaluation<'_>) {
        for span in evaluation.before.into_iter().chain([evaluation.span]) {
            self.evaluate_span(evaluation, span, &mut |_| {});
        }
        if evaluation
            .budget
            .limit()
            .zip(evaluation.forecast())
            .is_some_and(|(limit, forecast)| forecast > limit)
        {
            self.record_sent(
                Threshold::Forecast,
                self.key(evaluation, evaluation.span),
                evaluation.rolling(),
            );
        }
    }

    /// Returns the alerts sent, for the next process.
    pub(crate) fn sent(&self) -> &[SentAlert] {
        &self.sent
    }

    /// Restores the alerts that an earlier process sent.
    pub(crate) fn restore_sent(&mut self, alert: SentAlert) {
        for threshold in Threshold::ALL.into_iter().filter(|one| alert.bits & one.bit() != 0) {
            self.record_sent(threshold, alert.at, false);
        }
    }

    /// Returns true if the forecast has been above the limit for [`FORECAST_HOLD_US`] and no alert was sent. Near
    /// the limit it counts as above until it is below [`RELEASE_PERCENT`].
    fn forecast_due(&mut self, evaluation: &Evaluation<'_>) -> bool {
        let (Some(limit), Some(forecast)) = (evaluation.budget.limit(), evaluation.forecast()) else {
            self.above_limit = None;
            return false;
        };
        let start = self.key(evaluation, evaluation.span);
        let before =
            self.above_limit.filter(|above| above.start == start && above.since_us <= evaluation.now_us);
        let above = forecast > limit
            || (before.is_some() && forecast.saturating_mul(100) >= limit.saturating_mul(RELEASE_PERCENT));
        if !above || evaluation.used() >= limit {
            self.above_limit = None;
            return false;
        }
        let above_limit = before.unwrap_or(AboveLimit { start, since_us: evaluation.now_us });
        self.above_limit = Some(above_limit);
        forecast > limit
            && evaluation.now_us - above_limit.since_us >= FORECAST_HOLD_US
            && !self.is_sent(evaluation, evaluation.span, Threshold::Forecast, limit)
    }

    fn key(&self, evaluation: &Evaluation<'_>, span: Span) -> i32 {
        if evaluation.rolling() { evaluation.today } else { span.start }
    }

    fn is_sent(&self, evaluation: &Evaluation<'_>, span: Span, threshold: Threshold, limit: i128) -> bool {
        let mut days =
            self.sent.iter().filter(|alert| alert.bits & threshold.bit() != 0).map(|alert| alert.at);
        if !evaluation.rolling() {
            return days.any(|at| at == span.start);
        }
        let Some(at) = days.max() else { return false };
        let today = evaluation.today;
        if threshold == Threshold::Forecast || at > today {
            return (today - at).abs() < ROLLING_DAYS;
        }
        let since = at.max(today - ROLLING_DAYS + 1);
        let held = |day| evaluation.spend.between(day - ROLLING_DAYS + 1, day);
        (since + 1..=today).all(|day| threshold.is_crossed(held(day), limit))
    }

    fn record_sent(&mut self, threshold: Threshold, at: i32, only_latest: bool) {
        if only_latest {
            // Of the rolling period only the last time matters.
            self.sent.iter_mut().for_each(|alert| alert.bits &= !threshold.bit());
            self.sent.retain(|alert| alert.bits != 0);
        }
        match self.sent.iter_mut().find(|alert| alert.at == at) {
            Some(alert) => alert.bits |= threshold.bit(),
            None => self.sent.push(SentAlert { at, bits: threshold.bit() }),
        }
        if self.sent.len() > SENT_MAX_PERIODS {
            let oldest = self.sent.iter().map(|alert| alert.at).min();
            self.sent.retain(|alert| Some(alert.at) != oldest);
        }
    }
}

/// The time for which a forecast must stay above the limit before its alert is sent: ten minutes.
pub(crate) const FORECAST_HOLD_US: i64 = DAY_US / 144;

/// A forecast below this percentage of the limit no longer counts as above it.
pub(crate) const RELEASE_PERCENT: i128 = 95;

/// Periods whose alerts are remembered: as many as [`crate::spend`] keeps days.
const SENT_MAX_PERIODS: usize = 128;
