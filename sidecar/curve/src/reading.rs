//! The speeds in the metrics, of this process or on a page. The law: names come from the table of all metrics, and a
//! page without them is rejected, not read as empty.

use std::collections::{BTreeMap, BTreeSet};

use meter::edges::{CONCURRENCY_NAMES, POSITION_NAMES};
use metrics::{Metric, Value, Verdict};
use scrape::exposition::{Page, Sample};

use crate::distribution::Distribution;

/// The parts of the metrics that the curves need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The start time of the proxy, seconds since 1970; 0 if unknown.
    pub(crate) started: f64,
    pub(crate) series: BTreeMap<Series, Counts>,
    /// The configured objectives, by name.
    pub(crate) objectives: BTreeMap<String, Objective>,
    /// The verdicts, by model and objective.
    pub(crate) judged: BTreeMap<(String, String), Judged>,
}

/// The metrics that the curves need.
const METRICS: [Metric; 10] = [
    Metric::BuildInfo,
    Metric::ProcessStart,
    Metric::FirstToken,
    Metric::OutputRate,
    Metric::InputRate,
    Metric::PositionTokens,
    Metric::PositionSeconds,
    Metric::ObjectiveOutputRate,
    Metric::ObjectiveTarget,
    Metric::ObjectiveExchanges,
];

/// One model at one upstream: concurrency is counted by upstream, so two upstreams cannot share a curve.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Series {
    pub(crate) model: String,
    /// Empty if the page does not name upstreams.
    pub(crate) upstream: String,
}

/// A configured objective.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Objective {
    /// The minimum speed, tokens per second.
    pub(crate) output_rate: f64,
    /// The target share of exchanges that meet it.
    pub(crate) target_ratio: f64,
}

/// The verdicts on an objective.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Judged {
    /// Judged exchanges.
    pub(crate) exchanges: f64,
    /// Those that met the whole objective.
    pub(crate) met: f64,
}

/// The counts of one model at one upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// In the order of [`CONCURRENCY_NAMES`].
    pub(crate) by_concurrency: [ConcurrencyCounts; CONCURRENCY_NAMES.len()],
    /// Tokens and seconds, in the order of [`POSITION_NAMES`].
    pub(crate) positions: [(f64, f64); POSITION_NAMES.len()],
}

/// The histograms of one concurrency range.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ConcurrencyCounts {
    pub(crate) first_token: Distribution,
    pub(crate) output_rate: Distribution,
    pub(crate) input_rate: Distribution,
}

/// A page without curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadingError {
    /// Not a tokenmeter's metrics page.
    #[error(
        "this is not the metrics page of a tokenmeter; use its admin address (--admin, usually port 9464), not the \
         address for clients"
    )]
    NotTokenmeter,
    /// It has more samples than the parser reads.
    #[error("the page has too many series; lower max_models on that tokenmeter")]
    TooLong,
    /// The proxy restarted between the two readings.
    #[error("that tokenmeter restarted between the two readings; try again")]
    Restarted,
}

impl Reading {
    /// Parses a page of OpenMetrics or Prometheus text.
    pub fn of(text: &str) -> Result<Self, ReadingError> {
        let page = Page::read(text);
        if !page.samples.iter().any(|sample| sample.name == Metric::BuildInfo.entry().name) {
            return Err(ReadingError::NotTokenmeter);
        }
        if page.skipped > 0 {
            return Err(ReadingError::TooLong);
        }
        let mut reading = Self::default();
        let mut histograms = Histograms::default();
        for sample in &page.samples {
            if let Some(metric) = METRICS.into_iter().find(|metric| sample.name == metric.entry().name) {
                reading.take(metric, |label| value(sample, label), sample.value);
            }
            histograms.take(sample);
        }
        for ((which, series, at), parts) in histograms.0 {
            reading.put(
                BY_CONCURRENCY[which],
                series,
                at,
                Distribution::cumulative(parts.cumulative, parts.sum),
            );
        }
        Ok(reading)
    }

    /// Returns the difference to an earlier reading.
    pub fn less(&self, earlier: &Self) -> Result<Self, ReadingError> {
        if self.started != earlier.started {
            return Err(ReadingError::Restarted);
        }
        let mut since = self.clone();
        for (series, now) in &mut since.series {
            if let Some(then) = earlier.series.get(series) {
                *now = now.less(then).ok_or(ReadingError::Restarted)?;
            }
        }
        for (which, now) in &mut since.judged {
            let then = earlier.judged.get(which).copied().unwrap_or_default();
            *now = Judged { exchanges: now.exchanges - then.exchanges, met: now.met - then.met };
        }
        since.judged.retain(|_, judged| judged.exchanges > 0.0);
        Ok(since)
    }

    /// Returns the models with a measurement, each once.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        let models: BTreeSet<_> = self.timed().map(|(series, _)| &*series.model).collect();
        models.into_iter()
    }

    /// Returns the series with a measurement, sorted.
    pub(crate) fn timed(&self) -> impl Iterator<Item = (&Series, &Counts)> {
        self.series.iter().filter(|(_, counts)| !counts.is_empty())
    }

    /// Takes a number.
    fn take(&mut self, metric: Metric, label: impl Fn(&str) -> Option<String>, value: f64) {
        match metric {
            Metric::ProcessStart => self.started = value,
            Metric::ObjectiveOutputRate | Metric::ObjectiveTarget => {
                let Some(name) = label("objective") else { return };
                let objective = self.objectives.entry(name).or_default();
                match metric {
                    Metric::ObjectiveTarget => objective.target_ratio = value,
                    _ => objective.output_rate = value,
                }
            }
            Metric::ObjectiveExchanges => {
                let Some(which) = label("model").zip(label("objective")) else { return };
                let judged = self.judged.entry(which).or_default();
                judged.exchanges += value;
                judged.met +=
                    if label("verdict").as_deref() == Some(Verdict::Met.name()) { value } else { 0.0 };
            }
            Metric::PositionTokens | Metric::PositionSeconds => {
                let (Some(series), Some(range)) = (Series::of(&label), label("position")) else { return };
                let Some(at) = POSITION_NAMES.iter().position(|name| *name == range) else { return };
                let position = &mut self.series.entry(series).or_default().positions[at];
                match metric {
                    Metric::PositionTokens => position.0 = value,
                    _ => position.1 = value,
                }
            }
            _ => {}
        }
    }

    /// Puts the histogram of a range of concurrency.
    fn put(&mut self, metric: Metric, series: Series, at: usize, distribution: Distribution) {
        let counts = &mut self.series.entry(series).or_default().by_concurrency[at];
        match metric {
            Metric::FirstToken => counts.first_token = distribution,
            Metric::OutputRate => counts.output_rate = distribution,
            Metric::InputRate => counts.input_rate = distribution,
            _ => {}
        }
    }
}

/// Reads the metrics of this process.
impl From<&metrics::Reading> for Reading {
    fn from(metrics: &metrics::Reading) -> Self {
        let mut reading = Self::default();
        for family in metrics.families.iter().filter(|family| METRICS.contains(&family.metric)) {
            let names = family.metric.entry().labels;
            for sample in &family.samples {
                let label = |wanted: &str| {
                    let (_, value) = names.iter().zip(&sample.labels).find(|(name, _)| **name == wanted)?;
                    Some(value.to_string())
                };
                match &sample.value {
                    Value::Count(n) => reading.take(family.metric, label, *n as f64),
                    Value::Number(number) => reading.take(family.metric, label, *number),
                    Value::Histogram(of) => {
                        if let Some((series, at)) = Series::of(label).zip(range(label)) {
                            let distribution = Distribution::of(&of.buckets, of.sum);
                            reading.put(family.metric, series, at, distribution);
                        }
                    }
                }
            }
        }
        reading
    }
}

impl Series {
    fn of(label: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Some(Self { model: label("model")?, upstream: label("upstream").unwrap_or_default() })
    }
}

/// Returns the index of a sample's range of concurrency.
fn range(label: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let range = label("concurrency")?;
    CONCURRENCY_NAMES.iter().position(|name| *name == range)
}

impl Counts {
    fn is_empty(&self) -> bool {
        let idle =
            |counts: &ConcurrencyCounts| counts.first_token.count() + counts.output_rate.count() == 0.0;
        self.by_concurrency.iter().all(idle) && self.positions.iter().all(|(tokens, _)| *tokens == 0.0)
    }

    fn less(&self, then: &Self) -> Option<Self> {
        let mut since = self.clone();
        for (now, then) in since.by_concurrency.iter_mut().zip(&then.by_concurrency) {
            now.first_token = now.first_token.less(&then.first_token)?;
            now.output_rate = now.output_rate.less(&then.output_rate)?;
            now.input_rate = now.input_rate.less(&then.input_rate)?;
        }
        for (now, then) in since.positions.iter_mut().zip(then.positions) {
            *now = (now.0 - then.0, now.1 - then.1);
        }
        since.positions.iter().all(|(tokens, _)| *tokens >= 0.0).then_some(since)
    }
}

/// The histograms by concurrency while the page is read.
#[derive(Default)]
struct Histograms(BTreeMap<(usize, Series, usize), HistogramParts>);

#[derive(Default)]
struct HistogramParts {
    cumulative: Vec<(f64, f64)>,
    sum: f64,
}

impl Histograms {
    fn take(&mut self, sample: &Sample<'_>) {
        let suffix = |metric: Metric| sample.name.strip_prefix(metric.entry().name);
        let found =
            BY_CONCURRENCY.into_iter().enumerate().find_map(|(which, metric)| Some((which, suffix(metric)?)));
        let Some((which, suffix @ ("_bucket" | "_sum"))) = found else { return };
        let label = |name: &str| value(sample, name);
        let Some((series, at)) = Series::of(label).zip(range(label)) else { return };
        let parts = self.0.entry((which, series, at)).or_default();
        match (suffix, label("le").and_then(|edge| edge.parse().ok())) {
            ("_bucket", Some(edge)) => parts.cumulative.push((edge, sample.value)),
            ("_sum", _) => parts.sum = sample.value,
            _ => {}
        }
    }
}

const BY_CONCURRENCY: [Metric; 3] = [Metric::FirstToken, Metric::OutputRate, Metric::InputRate];

fn value(sample: &Sample<'_>, label: &str) -> Option<String> {
    sample.labels().find(|(name, _)| *name == label).map(|(_, value)| value.into_owned())
}
