//! The bucket edges of every histogram, in the unit of its series. They stand here because an exchange keeps
//! its gaps in these buckets; the metrics page only prints them.

/// Inter-token latency and chunk gaps, seconds: from saturated small models to a stall.
pub const GAP_S: [f64; 20] = [
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25,
    0.5, 1.0, 2.5, 10.0,
];

/// `gen_ai.server.time_to_first_token`, seconds: the edges of the semantic convention, and four more for
/// long prompts.
pub const FIRST_TOKEN_S: [f64; 20] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0,
];

/// `gen_ai.server.time_per_output_token`, seconds: the edges of the semantic convention.
pub const PER_TOKEN_S: [f64; 13] = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];

/// `gen_ai.server.request.duration`, seconds: the edges of the semantic convention, and two more.
pub const DURATION_S: [f64; 16] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68];

/// Output tokens per second of one request. The floors of the objectives, 10, 15, 30 and 100, are exact
/// edges. Where most servers lie, no bucket is wider than a third of its lower edge, so that a median
/// separates 34 from 48.
pub const OUTPUT_RATE: [f64; 19] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 75.0, 100.0, 125.0, 150.0, 200.0, 300.0,
    500.0, 1000.0,
];

/// Prompt tokens per second of one request.
pub const INPUT_RATE: [f64; 14] =
    [10.0, 30.0, 100.0, 200.0, 500.0, 1e3, 2e3, 3e3, 5e3, 1e4, 2e4, 3e4, 1e5, 3e5];

/// The proxy's own share of an exchange, seconds.
pub const OVERHEAD_S: [f64; 12] =
    [0.000_005, 0.000_01, 0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.1];

/// Upper ends (inclusive) of the concurrency buckets; above the last is `129+`.
pub const CONCURRENCY: [u64; 7] = [1, 4, 8, 16, 32, 64, 128];

/// Label values of the concurrency buckets.
pub const CONCURRENCY_NAMES: [&str; 8] = ["1", "2-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129+"];

/// Upper ends (inclusive) of the output position buckets, in tokens; the last bucket is open.
pub const POSITION: [u64; 5] = [64, 256, 1024, 4096, 16384];

/// Label values of the position buckets.
pub const POSITION_NAMES: [&str; 6] = ["1-64", "65-256", "257-1024", "1025-4096", "4097-16384", "16385+"];
