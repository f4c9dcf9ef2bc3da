//! Known exchanges, read through tokenmeter's own metrics page.

use std::time::Duration;

use curve::{Curves, ModelCurves, Reading, ReadingError, Window, json, svg, table};
use live::curve::Basis;
use meter::Observer;
use meter::{Ending, Identity, LoadSpan, Provenance, Record, Span, Timing, TokenType, Tokens};
use metrics::{Metrics, Objective, Options, PRESETS};
use scan::{Dialect, Sampling};

/// Returns a stream of 65 tokens, the last 64 at this speed.
fn stream(model: &str, concurrency: f64, first_token_ms: u64, tokens_per_second: f64) -> Record {
    let mut tokens = Tokens { output_provenance: Provenance::Reported, ..Tokens::NONE };
    tokens.by_type[TokenType::Output as usize] = 65;
    let mut timing = Timing {
        first_byte_ns: Some(1),
        first_token_ns: Some(first_token_ms * 1_000_000),
        output_rate: Some(tokens_per_second),
        input_rate: Some(1000.0),
        concurrency,
        ..Timing::default()
    };
    timing.pace.get_or_insert_default().position[0] =
        Span { tokens: 64, ns: (64e9 / tokens_per_second) as u64 };
    Record {
        identity: Identity::new("gpu", "vllm", Dialect::OpenaiChat, model),
        asked_stream: true,
        streamed: true,
        status: 200,
        answers: 1,
        choices: 1,
        finishes: [None; meter::record::FINISHES],
        sampling: Sampling::default(),
        ending: Ending::Complete,
        tokens,
        timing,
        load: LoadSpan::single(),
        visible_chars: 0,
        usage_rejected: 0,
        cached_excess: 0,
        disagreement: None,
        unknown_counts: Vec::new(),
        is_compacted: false,
        upstream_attempts: 1,
    }
}

fn metrics(objectives: &[&str]) -> Metrics {
    let objectives =
        PRESETS.iter().filter(|preset| objectives.contains(&preset.name)).map(|preset| Objective {
            name: preset.name.into(),
            models: Vec::new(),
            tenants: Vec::new(),
            first_token_ns: preset.first_token_ns,
            output_rate: preset.output_rate,
            target_ratio: 0.99,
        });
    Metrics::new(Options { objectives: objectives.collect(), ..Options::default() })
}

fn play(metrics: &Metrics, records: &[Record]) {
    let mut worker = metrics.worker();
    for record in records {
        let model = worker.model(&record.identity.model);
        worker.begin(model);
        worker.end(model, record);
    }
}

fn read(metrics: &Metrics) -> Reading {
    Reading::of(&metrics.text()).unwrap()
}

fn curves(metrics: &Metrics) -> Curves {
    Curves::of(&read(metrics), Window::SinceStart, None)
}

/// Returns ten streams for each pair of concurrency and speed.
fn steps(model: &str, steps: &[(f64, f64)]) -> Vec<Record> {
    let ten = |(at, (n, speed)): (usize, &(f64, f64))| {
        let wait = 90 * (at as u64 + 1);
        (0..10).map(move |_| stream(model, *n, wait, *speed)).collect::<Vec<_>>()
    };
    steps.iter().enumerate().flat_map(ten).collect()
}

#[test]
fn cells_and_page_give_the_same_curves() {
    let metrics = metrics(&["chat"]);
    play(&metrics, &steps("m", &[(1.0, 90.0), (3.0, 80.0), (20.0, 45.0), (500.0, 3000.0)]));
    play(&metrics, &steps("\"n\\\n", &[(1.0, 20.0)]));
    assert_eq!(curves(&metrics).models.len(), 2);
    assert_eq!(Reading::from(&metrics.reading()), read(&metrics));
}

#[test]
fn every_stream_counts_at_its_concurrency() {
    let metrics = metrics(&[]);
    play(&metrics, &steps("m", &[(1.0, 90.0), (3.0, 80.0), (20.0, 45.0), (500.0, 3000.0)]));
    let curves = curves(&metrics);
    let [model] = curves.models.as_slice() else { panic!("one model") };
    assert_eq!(model.exchanges(), 40.0);
    let ranges: Vec<_> =
        model.by_concurrency.iter().map(|point| (point.range, point.min, point.max)).collect();
    assert_eq!(
        ranges,
        [("1", 1, Some(1)), ("2-4", 2, Some(4)), ("17-32", 17, Some(32)), ("129+", 129, None)]
    );
    let means: Vec<_> = model.by_concurrency.iter().map(|point| point.output_rate.mean().unwrap()).collect();
    assert_eq!(means, [90.0, 80.0, 45.0, 3000.0], "exact");
    let all: Vec<_> = model.by_concurrency.iter().map(|point| point.aggregate_estimate().unwrap()).collect();
    // No server reaches 129 × 3000: beyond the last edge the observed rate counts.
    let observed = 4.0 / (1.0 / 90.0 + 1.0 / 80.0 + 1.0 / 45.0 + 1.0 / 3000.0);
    for (all, expected) in all.iter().zip([90.0, 240.0, 24.5 * 45.0, 129.0 * observed]) {
        assert!((all / expected - 1.0).abs() < 1e-8, "{all} {expected}");
    }
    // All are in one bucket, 75 to 100: the estimates are its middle, tenth and hundredth.
    let first = &model.by_concurrency[0];
    let speeds = [0.5, 0.9, 0.99].map(|share| first.speed_reached_by(share).unwrap());
    for (speed, expected) in speeds.iter().zip([87.5, 77.5, 75.25]) {
        assert!((speed - expected).abs() < 1e-9, "{speeds:?}");
    }
    assert_eq!(model.by_concurrency[3].speed_reached_by(0.5), Some(1000.0), "the last edge");
    let text = table(&curves);
    assert!(text.contains("   129+        10     3000    ≥1000    ≥1000      ≥1000    ~11177\n"), "{text}");
    let picture = svg(&curves).unwrap();
    assert_eq!(picture.matches("\n≥\n").count(), 4, "three quantiles and the mean: {picture}");
    let axis = picture.lines().filter(|line| line.parse::<f64>().is_ok());
    assert!({ axis }.all(|number| !number.ends_with(".0")), "{picture}");
    let [position] = model.positions.as_slice() else { panic!("one range of positions") };
    assert_eq!((position.range, position.tokens), ("1-64", 2560.0));
    let seconds = 640.0 * (1.0 / 90.0 + 1.0 / 80.0 + 1.0 / 45.0 + 1.0 / 3000.0);
    assert!((position.seconds - seconds).abs() < 1e-6, "{position:?}");
}

#[test]
fn knee_ends_where_half_are_too_slow() {
    let told = |objectives: &[&str], speeds: &[(f64, f64)]| {
        let metrics = metrics(objectives);
        play(&metrics, &steps("m", speeds));
        let knees = curves(&metrics).models[0].knees.clone();
        knees.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let slope = [(1.0, 90.0), (3.0, 60.0), (12.0, 35.0), (40.0, 14.0)];
    assert_eq!(told(&["chat"], &slope), ["chat (30 tokens/s): kept up to 9-16 at once, no longer at 33-64"]);
    assert_eq!(
        told(&["voice"], &slope),
        ["voice (100 tokens/s): not kept at 1 at once, the lowest measured"]
    );
    assert_eq!(
        told(&[], &slope),
        [
            "voice (100 tokens/s, a preset): not kept at 1 at once, the lowest measured",
            "chat (30 tokens/s, a preset): kept up to 9-16 at once, no longer at 33-64",
            "reading (15 tokens/s, a preset): kept up to 9-16 at once, no longer at 33-64",
            "floor (10 tokens/s, a preset): kept up to 33-64 at once, the highest measured",
        ]
    );
    assert_eq!(
        told(&["chat"], &[(1.0, 90.0), (3.0, 20.0), (12.0, 35.0)]),
        [
            "chat (30 tokens/s): kept up to 1 at once, no longer at 2-4 (but kept again at 9-16; check the number of \
             streams per row)"
        ]
    );
}

#[test]
fn half_is_counted_not_interpolated() {
    let metrics = metrics(&["chat"]);
    // Five of ten are above 30, all in the adjacent buckets: kept. Four of ten: not kept.
    for (model, over) in [("kept", 5), ("missed", 4)] {
        let speed = |at| if at < over { 31.0 } else { 29.0 };
        play(&metrics, &(0..10).map(|at| stream(model, 1.0, 50, speed(at))).collect::<Vec<_>>());
    }
    let curves = curves(&metrics);
    let kept: Vec<_> = curves.models.iter().map(|model: &ModelCurves| model.knees[0].kept_up_to).collect();
    assert_eq!(kept, [Some("1"), None]);
    assert!(curves.models.iter().all(|model| model.knees[0].basis() == Basis::Configured));
}

#[test]
fn verdicts_are_counted_in_the_window() {
    let metrics = metrics(&["chat"]);
    play(&metrics, &steps("m", &[(1.0, 90.0), (1.0, 20.0)]));
    let before = read(&metrics);
    let all = table(&curves(&metrics));
    assert!(
        all.contains("  Of 20 judged exchanges 10 met chat altogether: 50 %; the target is 99 %\n"),
        "{all}"
    );
    play(&metrics, &steps("m", &[(1.0, 90.0)]));
    play(&metrics, &[Record { ending: Ending::UpstreamCut, ..stream("m", 1.0, 50, 90.0) }]);
    let since = read(&metrics).less(&before).unwrap();
    let table = table(&Curves::of(&since, Window::Last(Duration::from_secs(1)), None));
    assert!(table.contains("  Of 11 judged exchanges 10 met chat altogether: 90.9 %;"), "{table}");
}

#[test]
fn window_is_the_difference_of_two_readings() {
    let metrics = metrics(&[]);
    play(&metrics, &steps("old", &[(1.0, 90.0)]));
    play(&metrics, &steps("both", &[(1.0, 90.0)]));
    let before = read(&metrics);
    play(&metrics, &steps("both", &[(1.0, 20.0), (3.0, 10.0)]));
    play(&metrics, &steps("new", &[(1.0, 50.0)]));
    let since = read(&metrics).less(&before).unwrap();
    let curves = Curves::of(&since, Window::Last(Duration::from_secs(60)), None);
    let models: Vec<_> = curves.models.iter().map(|model| (&*model.model, model.exchanges())).collect();
    assert_eq!(models, [("both", 20.0), ("new", 10.0)]);
    let mean = curves.models[0].by_concurrency[0].output_rate.mean().unwrap();
    assert!((mean - 20.0).abs() < 1e-9, "{mean}");
    assert!(table(&curves).starts_with("both at gpu: 20 streams in 60 s\n"));
    assert!(!table(&curves).contains("altogether"), "no objective was set");
    assert!(json(&curves).contains("\"window_seconds\": 60.0"));
    assert_eq!(before.less(&read(&metrics)), Err(ReadingError::Restarted), "counters never fall");
}

/// A small server that is slow alone and a large one that is fast at high concurrency: no curve rises.
#[test]
fn upstreams_of_one_model_have_separate_curves() {
    let metrics = metrics(&[]);
    let mut records = steps("m", &[(1.0, 20.0), (3.0, 10.0)]);
    let fast = steps("m", &[(3.0, 110.0), (20.0, 90.0)]);
    records.extend(fast.into_iter().map(|mut record| {
        record.identity.upstream = "large".into();
        record
    }));
    play(&metrics, &records);
    let curves = curves(&metrics);
    let mean = |model: &ModelCurves| -> Vec<_> {
        model.by_concurrency.iter().map(|point| (point.range, point.output_rate.mean().unwrap())).collect()
    };
    let read: Vec<_> = curves.models.iter().map(|one| (one.upstream.as_deref(), mean(one))).collect();
    assert_eq!(
        read,
        [
            (Some("gpu"), vec![("1", 20.0), ("2-4", 10.0)]),
            (Some("large"), vec![("2-4", 110.0), ("17-32", 90.0)])
        ]
    );
    let text = table(&curves);
    assert!(text.starts_with("m at gpu: 20 streams") && text.contains("\nm at large: 20 streams"), "{text}");
    assert_eq!(read_models(&metrics), ["m"], "one model");
}

fn read_models(metrics: &Metrics) -> Vec<String> {
    read(metrics).models().map(str::to_owned).collect()
}

#[test]
fn curves_can_be_limited_to_one_model() {
    let metrics = metrics(&[]);
    play(&metrics, &steps("a", &[(1.0, 90.0)]));
    play(&metrics, &steps("b", &[(1.0, 90.0)]));
    let reading = read(&metrics);
    let of = |model| Curves::of(&reading, Window::SinceStart, Some(model)).models;
    assert_eq!(of("b").iter().map(|model| &*model.model).collect::<Vec<_>>(), ["b"]);
    assert!(of("c").is_empty());
    assert_eq!(reading.models().collect::<Vec<_>>(), ["a", "b"], "an idle `_unknown` is no model");
}

#[test]
fn client_chosen_names_are_escaped() {
    let metrics = metrics(&[]);
    play(&metrics, &steps("<b>&\"\u{1b}[2J\n\\", &[(1.0, 90.0)]));
    let curves = curves(&metrics);
    let text = table(&curves);
    assert!(text.starts_with("<b>&\"\u{fffd}[2J\u{fffd}\\ at gpu: 10 streams"), "{text}");
    let picture = svg(&curves).unwrap();
    assert!(!picture.contains("<b>") && picture.contains("&lt;b&gt;&amp;"), "{picture}");
    assert!(!picture.contains('\u{1b}'));
    assert!(json(&curves).contains("\"<b>&\\\"\u{fffd}[2J\u{fffd}\\\\\""));
}
