//! Samples of the metrics, once a second, become the current state and the history.
//!
//! Laws: the sum over a history is the growth of the counts, also over seconds that were missed; a label that is
//! evicted, whose counts move to `_other`, makes no spike there; no wall clock is used but for the time that is shown.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use metrics::{Metric, ModelSnapshot, OTHER, Snapshot};

use crate::counts::Counts;
use crate::history::{History, Step};
use crate::now::Now;
use crate::parts::{currency, sum, unix_ms};
use crate::point::Point;
use crate::recent::Recent;
use crate::ring::{Rings, Values};
use crate::track::{Gauges, SECONDS_PER_MINUTE, Span, Track};

/// The most scopes with a history, besides all traffic.
pub const HISTORY_SCOPES: usize = 31;

/// The most memory of the histories of all scopes, in bytes: 3.3 MB. Each of the 32 scopes has 900 seconds and 1440
/// minutes of 11 numbers of 4 bytes. The samples from which the current numbers are computed are not in it: about 4 KiB
/// for the times of ten seconds, and at most 5 KiB for the growth of a minute, for each label.
pub const HISTORY_MAX_BYTES: usize =
    (HISTORY_SCOPES + 1) * (Step::Second.points() + Step::Minute.points()) * size_of::<Values>();

/// Records samples of the metrics.
#[derive(Debug, Default)]
pub struct Recorder {
    last: Option<Sample>,
    all: Track,
    models: BTreeMap<Arc<str>, Track>,
    tenants: BTreeMap<Arc<str>, Track>,
    /// CPU times of the last samples, oldest first.
    cpu: VecDeque<(Instant, f64)>,
}

/// The time of a sample.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The first sample, from which seconds are counted.
    first: Instant,
    at: Instant,
    /// The number of whole seconds since the first sample.
    second: u64,
    at_unix_s: u64,
    /// Time of the last whole minute's end.
    minute_unix_s: u64,
}

impl Recorder {
    /// Adds a sample that was taken at `at`, and returns the current state without what the metrics do not know: the
    /// version, the readiness and the upstreams.
    pub fn sample(&mut self, at: Instant, snapshot: &Snapshot) -> Now {
        let at_unix_s = unix_ms(snapshot.at) / 1000;
        match self.last {
            None => {
                let second = 0;
                self.last = Some(Sample { first: at, at, second, at_unix_s, minute_unix_s: at_unix_s });
                self.begin(snapshot);
            }
            Some(last) => {
                let since = at.saturating_duration_since(last.first).as_secs_f64();
                let second = since.round() as u64;
                // A sample within the same second waits for the next.
                if second > last.second {
                    let seconds = at.saturating_duration_since(last.at).as_secs_f64();
                    self.advance(Span { before: last.second, second, seconds }, snapshot);
                    let minute = second - second % SECONDS_PER_MINUTE;
                    let minute_unix_s = if minute > last.second {
                        at_unix_s.saturating_sub(second - minute)
                    } else {
                        last.minute_unix_s
                    };
                    self.last = Some(Sample { at, second, at_unix_s, minute_unix_s, ..last });
                }
            }
        }
        self.sample_cpu(at, snapshot.cpu_seconds);
        self.now(snapshot)
    }

    /// Returns the history of a scope: `all`, `model:NAME` or `tenant:NAME`. `None` for an unknown scope. A known scope
    /// without a history has empty lists.
    pub fn history(&self, scope: &str, step: Step) -> Option<History> {
        let track = match scope.split_once(':') {
            None if scope == "all" => &self.all,
            Some(("model", name)) => self.models.get(name)?,
            Some(("tenant", name)) => self.tenants.get(name)?,
            _ => return None,
        };
        let last_unix_s = self.last.map_or(0, |last| match step {
            Step::Second => last.at_unix_s,
            Step::Minute => last.minute_unix_s,
        });
        let none = Rings::default();
        Some(track.rings.as_ref().unwrap_or(&none).of(step).history(scope, last_unix_s))
    }

    /// Returns the last seconds of all traffic.
    pub(crate) fn all(&self) -> (Point, Recent) {
        last_seconds(Some(&self.all))
    }

    /// Returns the last seconds of a model.
    pub(crate) fn model(&self, label: &str) -> (Point, Recent) {
        last_seconds(self.models.get(label))
    }

    /// Returns the last seconds of a tenant.
    pub(crate) fn tenant(&self, label: &str) -> (Point, Recent) {
        last_seconds(self.tenants.get(label))
    }

    /// Returns the CPU time per second of the last samples.
    pub(crate) fn cpu_cores(&self) -> Option<f64> {
        let ((first, before), (last, now)) = (self.cpu.front()?, self.cpu.back()?);
        let seconds = last.saturating_duration_since(*first).as_secs_f64();
        (seconds > 0.0).then(|| (now - before) / seconds)
    }

    /// Takes the first sample, which has no growth.
    fn begin(&mut self, snapshot: &Snapshot) {
        self.all = Track::from(all(snapshot));
        self.all.rings = Some(Rings::default());
        let model = |model: &ModelSnapshot| (Arc::clone(&model.model), Track::from(Counts::of_model(model)));
        self.models = snapshot.models.iter().map(model).collect();
        let tenants = snapshot.tenants.iter();
        self.tenants = tenants
            .map(|tenant| (Arc::clone(&tenant.tenant), Track::from(Counts::of_tenant(tenant))))
            .collect();
    }

    fn advance(&mut self, span: Span, snapshot: &Snapshot) {
        let gauges = Gauges { has_prices: currency(snapshot).is_some(), ..Gauges::default() };
        let in_flight = snapshot.models.iter().map(|model| model.in_flight).fold(0, u64::saturating_add);
        let watts = sum(&snapshot.parts, Metric::HwPower);
        self.all.sample(span, all(snapshot), Gauges { in_flight: Some(in_flight), watts, ..gauges });
        let models = snapshot.models.iter().map(|model| {
            let gauges = Gauges { in_flight: Some(model.in_flight), ..gauges };
            (&model.model, Counts::of_model(model), gauges)
        });
        advance(&mut self.models, span, models.collect());
        let tenants =
            snapshot.tenants.iter().map(|tenant| (&tenant.tenant, Counts::of_tenant(tenant), gauges));
        advance(&mut self.tenants, span, tenants.collect());
        self.share_histories(span.second.is_multiple_of(SECONDS_PER_MINUTE));
    }

    /// Gives a history to active scopes, and at the end of a minute the history of the least active one to the most
    /// active one without, if that is at least twice as active.
    fn share_histories(&mut self, is_minute: bool) {
        let mut tracks: Vec<_> = self.models.values_mut().chain(self.tenants.values_mut()).collect();
        let mut free =
            HISTORY_SCOPES.saturating_sub(tracks.iter().filter(|track| track.rings.is_some()).count());
        for track in tracks.iter_mut().filter(|track| track.rings.is_none()) {
            if free > 0 && track.is_active() {
                track.rings = Some(Rings::default());
                free -= 1;
            }
        }
        if !is_minute || free > 0 {
            return;
        }
        let by_activity = |a: &usize, b: &usize| tracks[*a].activity.total_cmp(&tracks[*b].activity);
        let (with, without): (Vec<_>, Vec<_>) = (0..tracks.len()).partition(|at| tracks[*at].rings.is_some());
        let least = with.into_iter().min_by(by_activity);
        let most = without.into_iter().max_by(by_activity);
        if let (Some(least), Some(most)) = (least, most)
            && tracks[most].activity > 2.0 * tracks[least].activity
        {
            tracks[least].rings = None;
            tracks[most].rings = Some(Rings::default());
        }
    }

    fn sample_cpu(&mut self, at: Instant, cpu_seconds: Option<f64>) {
        if self.cpu.len() > CPU_SAMPLES {
            self.cpu.pop_front();
        }
        self.cpu.extend(cpu_seconds.map(|seconds| (at, seconds)));
    }

    #[cfg(test)]
    pub(crate) fn history_bytes(&self) -> usize {
        let tracks = self.models.values().chain(self.tenants.values()).chain([&self.all]);
        let rings = tracks.filter_map(|track| track.rings.as_ref());
        rings.map(|rings| rings.seconds.bytes() + rings.minutes.bytes()).sum()
    }
}

impl Track {
    fn is_active(&self) -> bool {
        let Point { output_tokens_per_second, exchanges_per_second, in_flight, .. } = self.point;
        [output_tokens_per_second, exchanges_per_second, in_flight].into_iter().flatten().any(|n| n > 0.0)
    }
}

/// Returns the last second, and the rates and counts of the last seconds; unknown for a label without a past.
fn last_seconds(track: Option<&Track>) -> (Point, Recent) {
    track.map(|track| (track.point, track.recent)).unwrap_or_default()
}

/// Returns the counts of all traffic.
fn all(snapshot: &Snapshot) -> Counts {
    let mut all = Counts::default();
    snapshot.models.iter().for_each(|model| all.add(&Counts::of_model(model)));
    all
}

/// Adds a sample of all labels. The counts of a label that is gone, or began again, are in `_other` since.
fn advance(tracks: &mut BTreeMap<Arc<str>, Track>, span: Span, labels: Vec<(&Arc<str>, Counts, Gauges)>) {
    let mut moved = Counts::default();
    // Both are sorted by label.
    let is_gone = |label: &Arc<str>| labels.binary_search_by(|(known, ..)| (*known).cmp(label)).is_err();
    for (_, gone) in tracks.extract_if(.., |label, _| is_gone(label)) {
        moved.add(&gone.last);
    }
    for (label, counts, _) in &labels {
        if let Some(track) = tracks.get_mut(*label)
            && counts.exchanges < track.last.exchanges
        {
            moved.add(&track.last);
            track.last = Counts::default();
        }
    }
    for (label, counts, gauges) in labels {
        let track = tracks.entry(Arc::clone(label)).or_default();
        if **label == *OTHER {
            track.last.add(&moved);
        }
        track.sample(span, counts, gauges);
    }
}

/// Samples of the CPU time: those of ten seconds.
const CPU_SAMPLES: usize = 10;

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
