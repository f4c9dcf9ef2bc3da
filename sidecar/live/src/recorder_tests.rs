//! The recorder against a naive twin, and its laws.

use std::time::{Duration, SystemTime};

use meter::{Ending, Provenance, TokenType};
use metrics::{BucketCounts, Metrics, Options, TenantSnapshot};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A process whose labels tests fill.
struct Process {
    recorder: Recorder,
    snapshot: Snapshot,
    first: Instant,
    second: u64,
}

impl Process {
    fn new() -> Self {
        let snapshot = Metrics::new(Options::default()).snapshot();
        let snapshot = Snapshot { models: Vec::new(), tenants: Vec::new(), ..snapshot };
        let mut process = Self { recorder: Recorder::default(), snapshot, first: Instant::now(), second: 0 };
        process.sample();
        process
    }

    fn sample(&mut self) -> Now {
        self.sample_at(Duration::from_secs(self.second))
    }

    fn sample_at(&mut self, since: Duration) -> Now {
        self.snapshot.at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) + since;
        self.recorder.sample(self.first + since, &self.snapshot)
    }

    /// Samples after this many seconds.
    fn pass(&mut self, seconds: u64) -> Now {
        self.second += seconds;
        self.sample()
    }

    fn model(&mut self, name: &str) -> &mut ModelSnapshot {
        let models = &mut self.snapshot.models;
        let at = models.binary_search_by(|model| (*model.model).cmp(name)).unwrap_or_else(|at| {
            models.insert(at, ModelSnapshot::empty(&name.into()));
            at
        });
        &mut models[at]
    }

    fn tenant(&mut self, name: &str) -> &mut TenantSnapshot {
        let tenants = &mut self.snapshot.tenants;
        let at = tenants.binary_search_by(|tenant| (*tenant.tenant).cmp(name)).unwrap_or_else(|at| {
            tenants.insert(at, TenantSnapshot::empty(&name.into()));
            at
        });
        &mut tenants[at]
    }

    fn rates(&self, scope: &str, member: &str) -> Vec<Option<f32>> {
        self.recorder.history(scope, Step::Second).expect("the scope is known").series[member].clone()
    }
}

fn end(model: &mut ModelSnapshot, ending: Ending, output: u64) {
    model.endings[ending as usize] += 1;
    model.exchanges += 1;
    model.live_output_tokens += output;
    model.tokens[Provenance::Reported as usize][TokenType::Output as usize] += output;
}

/// What happens between two samples.
#[derive(Clone, Debug)]
struct Happening {
    seconds: u64,
    output: u64,
    endings: Vec<(usize, f64, f64)>,
    in_flight: u64,
}

fn happening() -> impl Strategy<Value = Happening> {
    let seconds = prop_oneof![8 => Just(1u64), 2 => 2u64..5, 1 => 50u64..200];
    let endings = vec((0..Ending::ALL.len(), 0.001..20.0f64, 1.0..500.0f64), 0..4);
    (seconds, 0u64..5000, endings, 0u64..30).prop_map(|(seconds, output, endings, in_flight)| Happening {
        seconds,
        output,
        endings,
        in_flight,
    })
}

/// Returns the points of each second from the definition.
fn naive_seconds(happenings: &[Happening]) -> Vec<Point> {
    let mut points = Vec::new();
    let mut ended_at: Vec<(u64, f64, f64)> = Vec::new();
    let mut second = 0;
    for happening in happenings {
        let count = |which: &dyn Fn(Ending) -> bool| {
            let endings = happening.endings.iter().filter(|(ending, ..)| which(Ending::ALL[*ending]));
            Some(endings.count() as f64 / happening.seconds as f64)
        };
        let rates = Point {
            output_tokens_per_second: Some(happening.output as f64 / happening.seconds as f64),
            input_tokens_per_second: Some(0.0),
            exchanges_per_second: count(&|_| true),
            errors_per_second: count(&|ending| !ending.is_success() && ending != Ending::ClientAbort),
            aborts_per_second: count(&|ending| ending == Ending::ClientAbort),
            ..Point::default()
        };
        points.extend((1..happening.seconds).map(|_| rates));
        second += happening.seconds;
        ended_at.extend(happening.endings.iter().map(|(_, first, rate)| (second, *first, *rate)));
        let within = ended_at.iter().filter(|(at, ..)| at + 10 > second);
        points.push(naive_quantiles(Point { in_flight: Some(happening.in_flight as f64), ..rates }, within));
    }
    points
}

fn naive_quantiles<'a>(point: Point, times: impl Iterator<Item = &'a (u64, f64, f64)>) -> Point {
    let mut first_token = BucketCounts::empty(Metric::FirstToken);
    let mut output_rate = BucketCounts::empty(Metric::OutputRate);
    for (_, first, rate) in times {
        first_token.observe(*first);
        output_rate.observe(*rate);
    }
    Point {
        first_token_p50_seconds: first_token.quantile(0.5),
        first_token_p99_seconds: first_token.quantile(0.99),
        request_tokens_per_second_p50: output_rate.quantile(0.5),
        ..point
    }
}

/// Returns the points of each whole minute.
fn naive_minutes(happenings: &[Happening], seconds: &[Point]) -> Vec<Point> {
    let mut second = 0;
    let ended_at: Vec<_> = happenings
        .iter()
        .flat_map(|happening| {
            second += happening.seconds;
            happening.endings.iter().map(move |(_, first, rate)| (second, *first, *rate))
        })
        .collect();
    let minute = |(at, points): (usize, &[Point])| {
        let mean = std::array::from_fn(|member| {
            let known: Vec<_> = points.iter().filter_map(|point| point.values()[member]).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        });
        let (from, until) = (at as u64 * 60, at as u64 * 60 + 60);
        let within = ended_at.iter().filter(|(at, ..)| *at > from && *at <= until);
        naive_quantiles(Point::of(mean), within)
    };
    seconds.chunks_exact(60).enumerate().map(minute).collect()
}

fn assert_same(history: &History, points: &[Point], most: usize) {
    let points = &points[points.len().saturating_sub(most)..];
    for (at, member) in Point::MEMBERS.iter().enumerate() {
        let series = &history.series[*member];
        assert_eq!(series.len(), points.len(), "{member}");
        for (recorded, point) in series.iter().zip(points) {
            match (*recorded, point.values()[at]) {
                (None, None) => {}
                (Some(recorded), Some(naive)) => {
                    let error = (f64::from(recorded) - naive).abs();
                    assert!(error <= naive.abs() * 1e-6 + 1e-9, "{member}: {recorded} {naive}");
                }
                (recorded, naive) => panic!("{member}: {recorded:?} {naive:?}"),
            }
        }
    }
}

/// Compares the current numbers with the sums over the seconds.
fn assert_recent(recent: Recent, seconds: &[Point]) {
    let last = |most: usize| &seconds[seconds.len().saturating_sub(most)..];
    let sum = |most, of: fn(&Point) -> Option<f64>| last(most).iter().filter_map(of).sum::<f64>();
    let rate = sum(10, |point| point.output_tokens_per_second) / last(10).len() as f64;
    let error = (recent.output_tokens_per_second_10s.unwrap() - rate).abs();
    assert!(error <= rate * 1e-9, "{recent:?} {rate}");
    let near = |count: Option<u64>, sum: f64| (count.unwrap() as f64 - sum).abs() <= 0.501;
    assert!(near(recent.exchanges_60s, sum(60, |point| point.exchanges_per_second)), "{recent:?}");
    assert!(near(recent.errors_60s, sum(60, |point| point.errors_per_second)), "{recent:?}");
    assert!(near(recent.aborts_60s, sum(60, |point| point.aborts_per_second)), "{recent:?}");
    assert_eq!(recent.spend_per_hour_60s, None, "there is no price book");
}

proptest! {
    #![proptest_config(chance::cases(60))]

    #[test]
    fn histories_equal_those_of_the_naive_twin(happenings in vec(happening(), 1..120)) {
        let mut process = Process::new();
        let mut now = Now::default();
        for happening in &happenings {
            let model = process.model("m");
            model.in_flight = happening.in_flight;
            model.live_output_tokens += happening.output;
            for (ending, first_token, output_rate) in &happening.endings {
                end(model, Ending::ALL[*ending], 0);
                model.first_token.observe(*first_token);
                model.output_rate.observe(*output_rate);
            }
            now = process.pass(happening.seconds);
        }
        let seconds = naive_seconds(&happenings);
        let minutes = naive_minutes(&happenings, &seconds);
        let history = |step| process.recorder.history("all", step).unwrap();
        assert_same(&history(Step::Second), &seconds, Step::Second.points());
        assert_same(&history(Step::Minute), &minutes, Step::Minute.points());
        assert_recent(now.all.recent, &seconds);
        assert_eq!(now.models.first().map_or(now.all.recent, |model| model.recent), now.all.recent);
        // A model's rings begin with its first activity.
        let of_model = process.recorder.history("model:m", Step::Second).unwrap();
        let begun = of_model.series["in_flight"].len();
        assert_same(&of_model, &seconds, begun);
    }
}

#[test]
fn members_are_those_of_the_json() {
    let Ok(serde_json::Value::Object(json)) = serde_json::to_value(Point::default()) else { panic!() };
    let mut members = Point::MEMBERS.to_vec();
    members.sort_unstable();
    assert_eq!(json.keys().collect::<Vec<_>>(), members);
}

#[test]
fn sum_over_a_pause_is_the_growth() {
    let mut process = Process::new();
    process.model("m").live_output_tokens = 600;
    process.pass(60);
    let sum: f32 = process.rates("all", "output_tokens_per_second").into_iter().flatten().sum();
    assert!((sum - 600.0).abs() < 0.01, "{sum}");
    assert_eq!(process.rates("all", "in_flight").iter().flatten().count(), 1, "unknown but at its end");
    process.pass(100_000);
    assert_eq!(process.rates("all", "exchanges_per_second").len(), 900, "a day is bounded");
}

#[test]
fn evicted_label_makes_no_spike() {
    let mut process = Process::new();
    end(process.model("old"), Ending::Complete, 1_000_000);
    end(process.model("steady"), Ending::Complete, 10);
    process.pass(1);
    process.snapshot.models.retain(|model| &*model.model != "old");
    // Its counts move, and its last exchange ends there.
    let other = process.model("_other");
    end(other, Ending::Complete, 1_000_000);
    end(other, Ending::ClientAbort, 5);
    let now = process.pass(1);
    assert_eq!(now.all.point.output_tokens_per_second, Some(5.0));
    let other = now.models.iter().find(|model| model.name == "_other").unwrap();
    assert_eq!(other.point.output_tokens_per_second, Some(5.0));
    assert_eq!(other.point.aborts_per_second, Some(1.0));
    assert!(process.recorder.history("model:old", Step::Second).is_none());
}

#[test]
fn label_that_began_again_makes_no_spike() {
    let mut process = Process::new();
    for _ in 0..3 {
        end(process.model("a"), Ending::Complete, 1000);
    }
    end(process.model("_other"), Ending::Complete, 7);
    process.pass(1);
    *process.model("a") = ModelSnapshot::empty(&"a".into());
    end(process.model("a"), Ending::Complete, 4);
    for _ in 0..3 {
        end(process.model("_other"), Ending::Complete, 1000);
    }
    let now = process.pass(1);
    let rates: Vec<_> =
        now.models.iter().map(|model| (&*model.name, model.point.output_tokens_per_second)).collect();
    assert_eq!(rates, [("_other", Some(0.0)), ("a", Some(4.0))]);
}

#[test]
fn wall_clock_changes_no_rate() {
    let mut process = Process::new();
    process.model("m").live_output_tokens = 10;
    process.pass(1);
    process.model("m").live_output_tokens = 30;
    process.second += 1;
    process.snapshot.at = SystemTime::UNIX_EPOCH;
    let now = process.recorder.sample(process.first + Duration::from_secs(2), &process.snapshot);
    assert_eq!(now.all.point.output_tokens_per_second, Some(20.0));
    let history = process.recorder.history("all", Step::Second).unwrap();
    assert_eq!((history.last_unix_s, history.series["in_flight"].len()), (0, 2));
}

#[test]
fn samples_within_a_second_are_one_point() {
    let mut process = Process::new();
    for (ms, tokens) in [(900, 9), (1100, 11), (1400, 14), (2050, 20)] {
        process.model("m").live_output_tokens = tokens;
        process.sample_at(Duration::from_millis(ms));
    }
    let rates = process.rates("all", "output_tokens_per_second");
    assert_eq!(rates.len(), 2, "{rates:?}");
    assert!(rates.iter().flatten().all(|rate| (rate - 10.0).abs() < 0.5), "{rates:?}");
}

#[test]
fn first_sample_has_no_growth_and_later_labels_begin_at_zero() {
    let mut process = Process::new();
    process.recorder = Recorder::default();
    end(process.model("before"), Ending::Complete, 1000);
    let now = process.sample();
    assert_eq!(now.all.point, Point::default(), "nothing is known of the time before");
    assert_eq!(now.all.recent, Recent::default());
    end(process.model("later"), Ending::Complete, 3);
    let now = process.pass(1);
    assert_eq!(now.all.point.output_tokens_per_second, Some(3.0));
    assert_eq!(now.all.totals.live_output_tokens, Some(1003));
}

#[test]
fn histories_stay_within_their_memory() {
    let mut process = Process::new();
    for _ in 0..26 {
        for n in 0..30 {
            process.model(&format!("m{n}")).live_output_tokens += 1;
            process.tenant(&format!("t{n}")).endings[0] += 1;
        }
        process.pass(3600);
    }
    assert_eq!(process.recorder.history_bytes(), HISTORY_MAX_BYTES);
    let lengths = |scope: &str| {
        [Step::Second, Step::Minute]
            .map(|step| process.recorder.history(scope, step).unwrap().series["in_flight"].len())
    };
    assert_eq!(lengths("all"), [900, 1440]);
    assert_eq!(lengths("model:m29"), [900, 1440], "models come first");
    assert_eq!(lengths("tenant:t29"), [0, 0], "a known scope without a history");
    assert!(
        ["", "model", "model:x", "tenant:m1", "other:m1"]
            .iter()
            .all(|scope| { process.recorder.history(scope, Step::Second).is_none() })
    );
}

#[test]
fn rings_grow_lazily() {
    let mut process = Process::new();
    process.model("m").live_output_tokens = 1;
    process.pass(10);
    assert_eq!(
        process.recorder.history_bytes(),
        60 * size_of::<Values>(),
        "the model's begins with the next"
    );
    process.pass(1);
    assert_eq!(process.recorder.history_bytes(), 2 * 60 * size_of::<Values>());
}

#[test]
fn unused_history_gives_way_to_a_busy_scope() {
    let mut process = Process::new();
    for n in 0..HISTORY_SCOPES {
        process.model(&format!("m{n:02}")).live_output_tokens += 1000;
    }
    process.pass(1);
    let has = |process: &Process, scope: &str| {
        !process.recorder.history(scope, Step::Second).unwrap().series["in_flight"].is_empty()
    };
    for minute in 1..4 {
        for n in 1..HISTORY_SCOPES {
            process.model(&format!("m{n:02}")).live_output_tokens += 1000;
        }
        process.tenant("busy").tokens[TokenType::Output as usize] += 1200;
        process.second = minute * 60;
        process.sample();
    }
    process.pass(1);
    assert!(has(&process, "tenant:busy") && !has(&process, "model:m00") && has(&process, "model:m01"));
}

#[test]
fn cpu_is_over_ten_seconds() {
    let mut process = Process::new();
    for second in 1..30_u64 {
        process.snapshot.cpu_seconds =
            Some(if second < 15 { second as f64 } else { 15.0 + second as f64 / 10.0 });
        process.pass(1);
    }
    let cores = process.pass(0).meter.cpu_cores.unwrap();
    assert!((cores - 0.1).abs() < 0.03, "{cores}");
}
