//! The curves as JSON; `curve.md` documents each member. Names contain the units; `null` means
//! not measured.

use live::curve as written;
use serde_json::to_value;

use crate::curves::{ConcurrencyPoint, Curves, ModelCurves, PositionSpeed, Window};
use crate::distribution::Distribution;
use crate::knee::Knee;

/// Returns the curves as JSON, with a line feed at the end.
pub fn json(curves: &Curves) -> String {
    let window_seconds = match curves.window {
        Window::SinceStart => None,
        Window::Last(over) => Some(over.as_secs_f64()),
    };
    let written = written::Curves { window_seconds, models: curves.models.iter().map(model).collect() };
    // As a value, whose members are sorted.
    let value = to_value(written).expect("names and numbers are JSON");
    format!("{value:#}\n")
}

fn model(curves: &ModelCurves) -> written::ModelCurves {
    written::ModelCurves {
        model: curves.model.clone(),
        upstream: curves.upstream.clone(),
        by_concurrency: curves.by_concurrency.iter().map(point).collect(),
        by_position: curves.positions.iter().map(position).collect(),
        knees: curves.knees.iter().map(knee).collect(),
    }
}

fn point(point: &ConcurrencyPoint) -> written::ConcurrencyPoint {
    written::ConcurrencyPoint {
        concurrency: point.range.to_owned(),
        concurrency_least: point.min,
        concurrency_most: point.max,
        exchanges: point.exchanges() as u64,
        speed_tokens_per_second: distribution(&point.output_rate, |share| 1.0 - share),
        aggregate_tokens_per_second_estimate: point.aggregate_estimate().map(rounded),
        aggregate_concurrency: point.middle(),
        first_token_seconds: distribution(&point.first_token, |share| share),
        prompt_tokens_per_second: distribution(&point.input_rate, |share| 1.0 - share),
    }
}

fn distribution(of: &Distribution, rank: impl Fn(f64) -> f64) -> written::Distribution {
    let at = |share| of.quantile(rank(share)).map(rounded);
    written::Distribution {
        count: of.count() as u64,
        mean: of.mean().map(rounded),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
    }
}

fn position(position: &PositionSpeed) -> written::PositionSpeed {
    written::PositionSpeed {
        position: position.range.to_owned(),
        tokens: position.tokens as u64,
        seconds: Some(rounded(position.seconds)),
        seconds_per_token: Some(rounded(position.seconds_per_token())),
        tokens_per_second: position.tokens_per_second().map(rounded),
    }
}

fn knee(knee: &Knee) -> written::Knee {
    let owned = |range: &str| range.to_owned();
    written::Knee {
        objective: knee.objective.clone(),
        basis: knee.basis(),
        tokens_per_second: knee.tokens_per_second,
        kept_up_to: knee.kept_up_to.map(owned),
        missed_at: knee.missed_at.map(owned),
        kept_again_at: knee.kept_again_at.iter().copied().map(owned).collect(),
        words: knee.to_string(),
        judged_exchanges: knee.outcome.map(|outcome| outcome.exchanges as u64),
        met_exchanges: knee.outcome.map(|outcome| outcome.met as u64),
        target_ratio: knee.outcome.map(|outcome| outcome.target_ratio),
    }
}

/// Rounds to a millionth: further digits come from the arithmetic.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
