//! The output rate of the last quarter of an hour, for the line of bars.

use live::{History, Scope, Step};

/// The rate by the second, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Trend {
    /// `None` is a second without a value.
    rates: Vec<Option<f64>>,
    /// Time of the last one, seconds since 1970.
    last_s: u64,
}

impl Trend {
    /// Takes the past from a history.
    pub(crate) fn of(history: &History) -> Self {
        let rates = history.series.get("output_tokens_per_second");
        let mut rates: Vec<_> = rates.into_iter().flatten().map(|rate| rate.map(f64::from)).collect();
        rates.drain(..rates.len().saturating_sub(Step::Second.points()));
        Self { rates, last_s: history.last_unix_s }
    }

    /// Adds a reading. Seconds without one stay empty.
    pub(crate) fn push(&mut self, at_unix_ms: u64, scope: Option<&Scope>) {
        let at_s = at_unix_ms / 1000;
        let most = Step::Second.points();
        // Two readings in a second, or a clock that was set back.
        let Some(missed) = at_s.checked_sub(self.last_s + 1) else { return };
        let missed = usize::try_from(missed).unwrap_or(most).min(most);
        if !self.rates.is_empty() {
            self.rates.extend(std::iter::repeat_n(None, missed));
        }
        self.rates.push(scope.and_then(|scope| scope.point.output_tokens_per_second));
        self.rates.drain(..self.rates.len().saturating_sub(most));
        self.last_s = at_s;
    }

    /// Returns the means of the last `columns` spans of time, oldest first. Spans before the first reading are `None`.
    /// Spans begin at multiples of their length, so that a bar that is complete no longer changes.
    pub(crate) fn columns(&self, columns: usize, seconds_each: usize) -> Vec<Option<f64>> {
        let each = seconds_each.max(1);
        let newest = (self.last_s % each as u64) as usize + 1;
        let (complete, newest) = self.rates.split_at(self.rates.len().saturating_sub(newest));
        let spans = std::iter::once(newest).chain(complete.rchunks(each));
        let mut means: Vec<_> = spans.take(columns).map(mean).collect();
        means.resize(columns, None);
        means.reverse();
        means
    }

    /// Returns the highest rate of the last seconds.
    pub(crate) fn peak(&self, seconds: usize) -> Option<f64> {
        self.rates.iter().rev().take(seconds).flatten().copied().reduce(f64::max)
    }
}

fn mean(rates: &[Option<f64>]) -> Option<f64> {
    let known = rates.iter().flatten().count();
    (known > 0).then(|| rates.iter().flatten().sum::<f64>() / known as f64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use live::{History, Point, Scope};

    use super::Trend;

    fn history(rates: &[Option<f32>]) -> History {
        let series = BTreeMap::from([("output_tokens_per_second".to_owned(), rates.to_vec())]);
        History { scope: "all".into(), step_seconds: 1, last_unix_s: 100, series }
    }

    fn at(rate: f64) -> Scope {
        Scope {
            point: Point { output_tokens_per_second: Some(rate), ..Point::default() },
            ..Scope::default()
        }
    }

    #[test]
    fn readings_follow_the_history() {
        let mut trend = Trend::of(&history(&[Some(1.0), None, Some(3.0)]));
        trend.push(100_900, Some(&at(9.0)));
        assert_eq!(trend.columns(3, 1), [Some(1.0), None, Some(3.0)], "that second is in the history");
        trend.push(101_000, Some(&at(4.0)));
        trend.push(103_000, Some(&at(6.0)));
        trend.push(104_000, None);
        assert_eq!(trend.columns(5, 1), [Some(3.0), Some(4.0), None, Some(6.0), None]);
        // The seconds are 98 to 104: the newest span has begun.
        assert_eq!(
            trend.columns(5, 2),
            [Some(1.0), Some(3.5), Some(6.0), None].into_iter().rev().chain([None]).rev().collect::<Vec<_>>()
        );
        assert_eq!(trend.peak(2), Some(6.0));
        trend.push(99_000, Some(&at(7.0)));
        assert_eq!(trend.columns(1, 1), [None], "an earlier second changes nothing");
    }

    #[test]
    fn trend_has_a_bound() {
        let mut trend = Trend::of(&history(&[Some(1.0); 2000]));
        assert_eq!(trend.rates.len(), 900);
        trend.push(u64::MAX, Some(&at(2.0)));
        assert_eq!((trend.rates.len(), trend.peak(900)), (900, Some(2.0)));
    }
}
