//! The curves for programs; `curve.md` says what each member is. Units stand in the names; what was
//! not measured is `null`.

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
        "upstream": curves.upstream,
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

/// To a millionth: what comes after that is the arithmetic's, not the page's.
fn number(number: Option<f64>) -> Value {
    number.map_or(Value::Null, |number| value!((number * 1e6).round() / 1e6))
}
