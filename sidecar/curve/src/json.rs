//! The curves for programs. Units stand in the names; what was not measured is `null`.
//!
//! ```json
//! {
//!   "window_seconds": 60,
//!   "models": [{
//!     "model": "qwen3-8b",
//!     "by_concurrency": [{
//!       "concurrency": "2-4", "concurrency_least": 2, "concurrency_most": 4,
//!       "exchanges": 812,
//!       "speed_tokens_per_second": {"count": 811, "mean": 41.2, "p50": 42, "p90": 33, "p99": 21},
//!       "aggregate_tokens_per_second_estimate": 123.6, "aggregate_concurrency": 3,
//!       "first_token_seconds": {"count": 812, "mean": 0.2, "p50": 0.18, "p90": 0.3, "p99": 0.7},
//!       "prompt_tokens_per_second": {"count": 812, "mean": 2100, "p50": 2000, "p90": 900, "p99": 400}
//!     }],
//!     "by_position": [{"position": "1-64", "tokens": 51000, "seconds": 1238,
//!                      "seconds_per_token": 0.0243, "tokens_per_second": 41.2}],
//!     "knees": [{"objective": "chat", "basis": "configured", "tokens_per_second": 30,
//!                "kept_up_to": "17-32", "missed_at": "33-64", "kept_again_at": [], "words": "…"}]
//!   }]
//! }
//! ```
//!
//! `window_seconds` is `null` since the proxy's start. Of a speed, `p90` is what 9 of 10 reach; of a wait, what 9
//! of 10 do not exceed. `exchanges` are streams with a first token. The aggregate is `aggregate_concurrency` times the
//! mean speed: what all yield together while all of them generate.

use serde_json::{Value, json as value};

use crate::curves::{Crowd, Curves, ModelCurves, PositionSpeed, Window};
use crate::distribution::Distribution;
use crate::knee::Knee;

/// As JSON, with a line's end at its end.
pub fn json(curves: &Curves) -> String {
    let window = match curves.window {
        Window::SinceStart => Value::Null,
        Window::Last(over) => value!(over.as_secs_f64()),
    };
    let models: Vec<_> = curves.models.iter().map(model).collect();
    let all = value!({ "window_seconds": window, "models": models });
    format!("{all:#}\n")
}

fn model(curves: &ModelCurves) -> Value {
    value!({
        "model": curves.model,
        "by_concurrency": curves.crowds.iter().map(crowd).collect::<Vec<_>>(),
        "by_position": curves.positions.iter().map(position).collect::<Vec<_>>(),
        "knees": curves.knees.iter().map(knee).collect::<Vec<_>>(),
    })
}

fn crowd(crowd: &Crowd) -> Value {
    value!({
        "concurrency": crowd.range,
        "concurrency_least": crowd.least,
        "concurrency_most": crowd.most,
        "exchanges": crowd.exchanges() as u64,
        "speed_tokens_per_second": distribution(&crowd.output_rate, |share| 1.0 - share),
        "aggregate_tokens_per_second_estimate": number(crowd.aggregate_estimate()),
        "aggregate_concurrency": crowd.middle(),
        "first_token_seconds": distribution(&crowd.first_token, |share| share),
        "prompt_tokens_per_second": distribution(&crowd.input_rate, |share| 1.0 - share),
    })
}

fn distribution(of: &Distribution, rank: impl Fn(f64) -> f64) -> Value {
    let at = |share| number(of.quantile(rank(share)));
    value!({
        "count": of.count() as u64,
        "mean": number(of.mean()),
        "p50": at(0.5),
        "p90": at(0.9),
        "p99": at(0.99),
    })
}

fn position(position: &PositionSpeed) -> Value {
    value!({
        "position": position.range,
        "tokens": position.tokens as u64,
        "seconds": number(Some(position.seconds)),
        "seconds_per_token": number(Some(position.seconds_per_token())),
        "tokens_per_second": number(position.tokens_per_second()),
    })
}

fn knee(knee: &Knee) -> Value {
    value!({
        "objective": knee.objective,
        "basis": knee.basis.name(),
        "tokens_per_second": knee.tokens_per_second,
        "kept_up_to": knee.kept_up_to,
        "missed_at": knee.missed_at,
        "kept_again_at": knee.kept_again_at,
        "words": knee.to_string(),
    })
}

/// To a millionth: what comes after that is the arithmetic's, not the page's.
fn number(number: Option<f64>) -> Value {
    number.map_or(Value::Null, |number| value!((number * 1e6).round() / 1e6))
}
