//! The curves as JSON; `curve.md` documents each member. Names contain the units; `null` means
//! not measured.

use serde_json::{Value, json as value};

use crate::curves::{ConcurrencyPoint, Curves, ModelCurves, PositionSpeed, Window};
use crate::distribution::Distribution;
use crate::knee::Knee;

/// Returns the curves as JSON, with a line feed at the end.
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
        "upstream": curves.upstream,
        "by_concurrency": curves.by_concurrency.iter().map(point).collect::<Vec<_>>(),
        "by_position": curves.positions.iter().map(position).collect::<Vec<_>>(),
        "knees": curves.knees.iter().map(knee).collect::<Vec<_>>(),
    })
}

fn point(point: &ConcurrencyPoint) -> Value {
    value!({
        "concurrency": point.range,
        "concurrency_least": point.min,
        "concurrency_most": point.max,
        "exchanges": point.exchanges() as u64,
        "speed_tokens_per_second": distribution(&point.output_rate, |share| 1.0 - share),
        "aggregate_tokens_per_second_estimate": number(point.aggregate_estimate()),
        "aggregate_concurrency": point.middle(),
        "first_token_seconds": distribution(&point.first_token, |share| share),
        "prompt_tokens_per_second": distribution(&point.input_rate, |share| 1.0 - share),
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
        "basis": knee.basis().name(),
        "tokens_per_second": knee.tokens_per_second,
        "kept_up_to": knee.kept_up_to,
        "missed_at": knee.missed_at,
        "kept_again_at": knee.kept_again_at,
        "words": knee.to_string(),
        "judged_exchanges": knee.outcome.map(|outcome| outcome.exchanges as u64),
        "met_exchanges": knee.outcome.map(|outcome| outcome.met as u64),
        "target_ratio": knee.outcome.map(|outcome| outcome.target_ratio),
    })
}

/// Rounds to a millionth: further digits come from the arithmetic.
fn number(number: Option<f64>) -> Value {
    number.map_or(Value::Null, |number| value!((number * 1e6).round() / 1e6))
}
