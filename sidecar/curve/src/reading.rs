//! The speeds on a metrics page. The law: names come from the table of all metrics, and a page
//! without them is rejected, not read as empty.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use meter::edges::{CONCURRENCY_NAMES, POSITION_NAMES};
use metrics::{Metric, Verdict};
use scrape::exposition::{Page, Sample};

use crate::distribution::Distribution;

/// The parts of a page that the curves need.
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

/// The metrics that a page needs for the curves.
pub const METRICS: [Metric; 10] = [
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingError {
    /// Not a tokenmeter's metrics page.
    NotTokenmeter,
    /// It has more samples than the parser reads.
    TooLong,
    /// The proxy restarted between the two readings.
    Restarted,
}

impl fmt::Display for ReadingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTokenmeter => {
                "this is not the metrics page of a tokenmeter; use its admin address (--admin, usually port 9464), \
                 not the address for clients"
            }
            Self::TooLong => "the page has too many series; lower max_models on that tokenmeter",
            Self::Restarted => "that tokenmeter restarted between the two readings; try again",
        })
    }
}

impl std::error::Error for ReadingError {}

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
            reading.take(sample);
            histograms.take(sample);
        }
        histograms.close(&mut reading.series);
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

    fn take(&mut self, sample: &Sample<'_>) {
        let label = |wanted| value(sample, wanted);
        let is = |metric: Metric| sample.name == metric.entry().name;
        if is(Metric::ProcessStart) {
            self.started = sample.value;
        } else if is(Metric::ObjectiveOutputRate) || is(Metric::ObjectiveTarget) {
            let Some(name) = label("objective") else { return };
            let objective = self.objectives.entry(name).or_default();
            match is(Metric::ObjectiveTarget) {
                true => objective.target_ratio = sample.value,
                false => objective.output_rate = sample.value,
            }
        } else if is(Metric::ObjectiveExchanges) {
            let Some(which) = label("model").zip(label("objective")) else { return };
            let judged = self.judged.entry(which).or_default();
            judged.exchanges += sample.value;
            judged.met += if sample.has("verdict", Verdict::Met.name()) { sample.value } else { 0.0 };
        } else if is(Metric::PositionTokens) || is(Metric::PositionSeconds) {
            let (Some(series), Some(range)) = (Series::of(sample), label("position")) else { return };
            let Some(at) = POSITION_NAMES.iter().position(|name| *name == range) else { return };
            let position = &mut self.series.entry(series).or_default().positions[at];
            match is(Metric::PositionTokens) {
                true => position.0 = sample.value,
                false => position.1 = sample.value,
            }
        }
    }
}

impl Series {
    fn of(sample: &Sample<'_>) -> Option<Self> {
        let upstream = value(sample, "upstream").unwrap_or_default();
        Some(Self { model: value(sample, "model")?, upstream })
    }
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

/// The three histograms by concurrency while the page is read.
#[derive(Default)]
struct Histograms(BTreeMap<(usize, Series, usize), HistogramParts>);

#[derive(Default)]
struct HistogramParts {
    cumulative: Vec<(f64, f64)>,
    sum: f64,
}

impl Histograms {
    fn take(&mut self, sample: &Sample<'_>) {
        let suffix = |metric: &Metric| sample.name.strip_prefix(metric.entry().name);
        let found =
            BY_CONCURRENCY.iter().enumerate().find_map(|(which, metric)| Some((which, suffix(metric)?)));
        let Some((which, suffix @ ("_bucket" | "_sum"))) = found else { return };
        let (Some(series), Some(range)) = (Series::of(sample), value(sample, "concurrency")) else { return };
        let Some(at) = CONCURRENCY_NAMES.iter().position(|name| *name == range) else { return };
        let parts = self.0.entry((which, series, at)).or_default();
        match (suffix, value(sample, "le").and_then(|edge| edge.parse().ok())) {
            ("_bucket", Some(edge)) => parts.cumulative.push((edge, sample.value)),
            ("_sum", _) => parts.sum = sample.value,
            _ => {}
        }
    }

    fn close(self, all: &mut BTreeMap<Series, Counts>) {
        for ((which, series, at), parts) in self.0 {
            let counts = &mut all.entry(series).or_default().by_concurrency[at];
            let slot = [&mut counts.first_token, &mut counts.output_rate, &mut counts.input_rate];
            *slot.into_iter().nth(which).expect("one for each of BY_CONCURRENCY") =
                Distribution::cumulative(parts.cumulative, parts.sum);
        }
    }
}

const BY_CONCURRENCY: [Metric; 3] = [Metric::FirstToken, Metric::OutputRate, Metric::InputRate];

fn value(sample: &Sample<'_>, label: &str) -> Option<String> {
    sample.labels().find(|(name, _)| *name == label).map(|(_, value)| value.into_owned())
}
