//! The measurements of a load.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The reason of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The request could not be built from the load: a bad header.
    Request,
    /// No connection.
    Connect,
    /// The connection was lost before a response head.
    NoResponse,
    /// This status, not 2xx.
    Status(u16),
    /// An error event in the stream.
    InBand,
    /// The stream ended without its end mark.
    Cut,
    /// An event that is not JSON, or too long.
    Malformed,
    /// It exceeded the load's timeout.
    Timeout,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request => f.write_str("bad request"),
            Self::Connect => f.write_str("no connection"),
            Self::NoResponse => f.write_str("no response"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::InBand => f.write_str("error in the stream"),
            Self::Cut => f.write_str("stream cut"),
            Self::Malformed => f.write_str("malformed stream"),
            Self::Timeout => f.write_str("timeout"),
        }
    }
}

/// The outcome of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    Completed(Sample),
    Failed(Failure),
    /// The client hung up, as configured.
    Left,
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// From sending the request to the first token frame, if there was one.
    pub(super) first: Option<Duration>,
    /// To the last token frame.
    pub(super) last: Duration,
    /// To the end of the body.
    pub(super) duration: Duration,
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) reported: bool,
}

/// The measurements of a whole load.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Requests whose stream ended with its end mark.
    pub completed: u64,
    /// Requests on which the client hung up, as configured.
    pub left: u64,
    /// Failed requests, by reason.
    pub failures: BTreeMap<Failure, u64>,
    /// Prompt tokens of the completed requests, if reported by the server.
    pub prompt_tokens: u64,
    /// Output tokens of the completed requests.
    pub output_tokens: u64,
    /// Completed requests whose tokens the server did not report: their frames count instead.
    pub unreported: u64,
    /// Time from the first request's start to the last one's end.
    pub elapsed: Duration,
    /// Seconds from sending a request to its first token frame.
    pub time_to_first_token: Distribution,
    /// Per request, (tokens − 1) ÷ (last − first token frame), in tokens per second.
    pub tokens_per_second: Distribution,
    /// Seconds from sending a request to the end of its response.
    pub duration: Distribution,
}

impl Report {
    /// Returns the number of failed requests.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Returns the output tokens per second of all clients together.
    pub fn aggregate_tokens_per_second(&self) -> f64 {
        match self.elapsed.as_secs_f64() {
            0.0 => 0.0,
            elapsed => self.output_tokens as f64 / elapsed,
        }
    }

    pub(super) fn add(&mut self, outcome: Outcome) {
        let sample = match outcome {
            Outcome::Completed(sample) => sample,
            Outcome::Failed(failure) => {
                *self.failures.entry(failure).or_default() += 1;
                return;
            }
            Outcome::Left => {
                self.left += 1;
                return;
            }
        };
        self.completed += 1;
        self.prompt_tokens += sample.prompt_tokens;
        self.output_tokens += sample.output_tokens;
        self.unreported += u64::from(!sample.reported);
        self.duration.push(sample.duration.as_secs_f64());
        let Some(first) = sample.first else { return };
        self.time_to_first_token.push(first.as_secs_f64());
        let between = (sample.last - first).as_secs_f64();
        // One token, or all in one read, gives no speed.
        if sample.output_tokens > 1 && between > 0.0 {
            self.tokens_per_second.push((sample.output_tokens - 1) as f64 / between);
        }
    }

    pub(super) fn settle(&mut self, elapsed: Duration) {
        self.elapsed = elapsed;
        self.time_to_first_token.sort();
        self.tokens_per_second.sort();
        self.duration.sort();
    }
}

/// All samples of one quantity, sorted: quantiles are exact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    sorted: Vec<f64>,
}

impl Distribution {
    /// Returns the number of samples.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the smallest sample that at least the share `q` (0 to 1) of all samples do not exceed
    /// (nearest rank). NaN without samples.
    pub fn quantile(&self, q: f64) -> f64 {
        let rank = (q.clamp(0.0, 1.0) * self.sorted.len() as f64).ceil() as usize;
        let index = rank.saturating_sub(1);
        self.sorted.get(index).copied().unwrap_or(f64::NAN)
    }

    /// Returns the arithmetic mean. NaN without samples.
    pub fn mean(&self) -> f64 {
        self.sorted.iter().sum::<f64>() / self.sorted.len() as f64
    }

    fn push(&mut self, sample: f64) {
        self.sorted.push(sample);
    }

    fn sort(&mut self) {
        self.sorted.sort_by(f64::total_cmp);
    }
}

impl FromIterator<f64> for Distribution {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        let mut distribution = Self { sorted: samples.into_iter().collect() };
        distribution.sort();
        distribution
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples_by_nearest_rank() {
        let distribution: Distribution = [5.0, 1.0, 4.0, 2.0, 3.0].into_iter().collect();
        assert_eq!(distribution.quantile(0.0), 1.0);
        assert_eq!(distribution.quantile(0.5), 3.0);
        assert_eq!(distribution.quantile(0.9), 5.0);
        assert_eq!(distribution.quantile(1.0), 5.0);
        assert_eq!(distribution.mean(), 3.0);
        assert!(Distribution::default().quantile(0.5).is_nan());
        assert!(Distribution::default().mean().is_nan());
    }

    #[test]
    fn speed_excludes_the_first_token() {
        let mut report = Report::default();
        let sample = Sample {
            first: Some(Duration::from_secs(1)),
            last: Duration::from_secs(3),
            duration: Duration::from_secs(4),
            prompt_tokens: 5,
            output_tokens: 11,
            reported: true,
        };
        report.add(Outcome::Completed(sample));
        report.add(Outcome::Completed(Sample { first: None, output_tokens: 0, reported: false, ..sample }));
        report.add(Outcome::Failed(Failure::Cut));
        report.add(Outcome::Left);
        report.settle(Duration::from_secs(2));
        assert_eq!((report.completed, report.failed(), report.left), (2, 1, 1));
        assert_eq!(report.unreported, 1);
        assert_eq!(report.tokens_per_second.quantile(0.5), 5.0);
        assert_eq!(report.time_to_first_token.count(), 1);
        assert_eq!(report.aggregate_tokens_per_second(), 5.5);
    }
}
