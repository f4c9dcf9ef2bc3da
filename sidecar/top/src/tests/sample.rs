//! A reading with every part, and one of a process without traffic.

use std::collections::BTreeMap;

use live::{
    Budget, Energy, Engine, Gpu, History, LedgerState, MeterCost, Now, Objective, Point, Readiness, Recent,
    Scope, Totals, Upstream,
};

use crate::dashboard::Dashboard;
use crate::trend::Trend;

/// The name of a model that an attacker chose.
pub(crate) const HOSTILE: &str = "\u{1b}[2J\u{202e}模型\u{301}\n";

/// Returns the display of the reading, with its curves and a past.
pub(crate) fn dashboard() -> Dashboard {
    let wave = (0..900).map(|second| (second % 20 != 7).then_some((second % 120) as f32 * 10.0));
    let series = BTreeMap::from([("output_tokens_per_second".to_owned(), wave.collect())]);
    let history = History { scope: "all".into(), step_seconds: 1, last_unix_s: 1_795_550_399, series };
    let mut dashboard = Dashboard { trend: Trend::of(&history), ..Dashboard::default() };
    dashboard.curves = serde_json::from_str(include_str!("../../../curve/tests/golden/demo.json")).unwrap();
    dashboard.read(now());
    dashboard
}

/// Returns the display of a process that has just started: nothing is known.
pub(crate) fn idle() -> Dashboard {
    let mut dashboard = Dashboard::default();
    let upstream = Upstream { name: "default".into(), ..Upstream::default() };
    dashboard.read(Now { version: "0.1.0".into(), upstreams: vec![upstream], ..Now::default() });
    dashboard
}

/// The time of the reading.
const AT_UNIX_MS: u64 = 1_795_550_400_000;

/// Returns the reading.
pub(crate) fn now() -> Now {
    let at_unix_ms = AT_UNIX_MS;
    Now {
        version: "0.1.0".into(),
        at_unix_ms,
        started_unix_ms: at_unix_ms - 8_000_000,
        readiness: Readiness::Impaired(vec!["the ledger lags by 12 s".into()]),
        currency: Some("USD".into()),
        upstreams: vec![
            upstream("chat", Some(true), Some(12.0)),
            Upstream {
                verified: Some(false),
                fault: Some("counts frames: set usage to always".into()),
                ..upstream("code", Some(false), None)
            },
        ],
        objectives: vec![Objective {
            name: "chat".into(),
            first_token_seconds: Some(1.0),
            request_tokens_per_second: Some(30.0),
            target_ratio: Some(0.99),
        }],
        all: Scope { name: String::new(), ..scope("", 812.4, 41.2) },
        models: vec![
            scope("qwen3-8b", 700.0, 43.1),
            scope("a-model-with-a-name-that-is-longer-than-its-column", 112.4, 28.0),
            estimated(),
        ],
        tenants: ["search", "support", "research"]
            .into_iter()
            .enumerate()
            .map(|(at, name)| tenant(at, name))
            .collect(),
        unlisted: 3,
        endings: BTreeMap::from([
            ("complete".into(), 3_981),
            ("client_abort".into(), 41),
            ("error_status".into(), 7),
        ]),
        gpus: vec![Gpu {
            id: "GPU-4f2".into(),
            name: "NVIDIA H100 80GB HBM3".into(),
            up: true,
            utilization_ratio: Some(0.92),
            memory_used_bytes: Some(7e10),
            memory_limit_bytes: Some(8.5e10),
            power_watts: Some(612.0),
            power_limit_watts: Some(700.0),
            temperature_celsius: Some(64.0),
        }],
        energy: Some(Energy {
            attributed_joules: 1.2e6,
            idle_joules: 3.4e5,
            unattributed_joules: 0.0,
            pending_joules: 812.0,
        }),
        meter: MeterCost {
            overhead_p50_seconds: Some(0.000_031),
            overhead_p99_seconds: Some(0.000_112),
            cpu_cores: Some(0.04),
            resident_bytes: Some(4.2e7),
            connections: 17,
            dropped: 0,
            passthrough: 2,
            refused: 1,
        },
        ledger: Some(LedgerState { up: true, rows: 4_029, commit_lag_seconds: 0.021, lost_rows: 0 }),
    }
}

fn upstream(name: &str, up: Option<bool>, waiting: Option<f64>) -> Upstream {
    let engine = waiting.map(|waiting| Engine {
        kind: Some("vllm".into()),
        up: true,
        read_unix_ms: Some(AT_UNIX_MS - 12_000),
        running_requests: Some(32.0),
        waiting_requests: Some(waiting),
        kv_cache_usage_ratio: Some(0.871),
        prefix_cache_hit_ratio: Some(0.42),
    });
    let (listen, url) = ("127.0.0.1:9800".into(), format!("http://{name}:8000"));
    Upstream { name: name.into(), listen, url, up, verified: None, fault: None, engine }
}

fn scope(name: &str, rate: f64, each: f64) -> Scope {
    Scope {
        name: name.into(),
        point: Point {
            output_tokens_per_second: Some(rate),
            input_tokens_per_second: Some(rate * 3.0),
            in_flight: Some((rate / 40.0).round()),
            exchanges_per_second: Some(3.1),
            errors_per_second: Some(0.0),
            aborts_per_second: Some(0.1),
            first_token_p50_seconds: Some(0.21),
            first_token_p99_seconds: Some(1.234),
            request_tokens_per_second_p50: Some(each),
            spend_per_hour: Some(rate * 0.0144),
            watts: name.is_empty().then_some(612.0),
        },
        recent: Recent {
            output_tokens_per_second_10s: Some(rate),
            input_tokens_per_second_10s: Some(rate * 3.0),
            exchanges_60s: Some(186),
            errors_60s: Some(0),
            aborts_60s: Some(6),
            spend_per_hour_60s: Some(rate * 0.0144),
        },
        totals: Totals {
            exchanges: 4_029,
            errors: 7,
            aborts: 41,
            tokens: BTreeMap::from([
                ("input".into(), 2_000_000),
                ("output".into(), 1_000_000),
                ("output_reasoning".into(), 234_567),
            ]),
            output_provenance: Some(BTreeMap::from([("reported".into(), 1_234_567)])),
            live_output_tokens: Some(1_300_000),
            spend: Some(12.3),
            unpriced_exchanges: Some(0),
            cost_per_million_tokens: Some(0.21),
            goodput_ratio: Some(0.9921),
        },
        budget: None,
    }
}

fn estimated() -> Scope {
    let mut scope = scope(HOSTILE, 0.0, 12.0);
    scope.totals.output_provenance =
        Some(BTreeMap::from([("reported".into(), 1_000_000), ("frames".into(), 234_567)]));
    scope.totals.unpriced_exchanges = Some(3);
    scope
}

fn tenant(at: usize, name: &str) -> Scope {
    let mut scope = scope(name, 300.0 - 100.0 * at as f64, 0.0);
    scope.point.in_flight = None;
    scope.point.first_token_p50_seconds = None;
    scope.point.first_token_p99_seconds = None;
    scope.point.request_tokens_per_second_p50 = None;
    scope.totals.output_provenance = None;
    scope.totals.live_output_tokens = None;
    scope.totals.unpriced_exchanges = None;
    scope.budget = (at > 0).then(|| Budget {
        period: "month".into(),
        limit: 100.0,
        used: 45.0 * at as f64,
        forecast: Some(60.0 * at as f64),
    });
    scope
}
