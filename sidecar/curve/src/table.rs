//! The curves as a table for a terminal of eighty columns. Numbers have at most three digits, the
//! precision of a quantile.

use std::fmt::Write;
use std::time::Duration;

use live::curve::Basis;

use crate::bars::bars;
use crate::curves::{ConcurrencyPoint, Curves, ModelCurves, PositionSpeed, Window};
use crate::distribution::Distribution;
use crate::knee::Outcome;

/// Returns the table, with a section for each model at each upstream.
pub fn table(curves: &Curves) -> String {
    let sections: Vec<_> = curves.models.iter().map(|model| section(model, curves.window)).collect();
    let mut text = sections.join("\n");
    text += NOTES;
    text
}

fn section(model: &ModelCurves, window: Window) -> String {
    let when = match window {
        Window::SinceStart => "since the start of the proxy".to_owned(),
        Window::Last(over) => format!("in {}", seconds(over)),
    };
    let mut text = format!("{}: {} streams {when}\n\n", printable(&model.title()), model.exchanges());
    text += "  tokens/s of one stream, and of all together\n";
    text += "  at once   streams     mean     half  9 of 10  99 of 100      all*\n";
    model.by_concurrency.iter().for_each(|point| text += &speeds(point));
    text += "\n  time to first token, and prompt speed until then\n";
    text += "  at once     p50      p90      p99   prompt tokens/s, mean\n";
    model.by_concurrency.iter().for_each(|point| text += &waits(point));
    let marks = model.knees.iter().filter(|knee| knee.basis() == Basis::Configured);
    let marks: Vec<_> = marks.map(|knee| knee.tokens_per_second).collect();
    let bars = bars(&model.by_concurrency, &marks);
    if !bars.is_empty() {
        text += "\n";
        text += &bars;
    }
    if !model.positions.is_empty() {
        text += "\n  position in the answer     tokens  ms a token  tokens/s\n";
        model.positions.iter().for_each(|one| text += &position(one));
    }
    if !model.knees.is_empty() {
        text += "\n  At least half of the streams reach the speed of\n";
    }
    for knee in &model.knees {
        writeln!(text, "    {}", printable(&knee.to_string())).expect("a String takes any text");
    }
    for (knee, outcome) in model.knees.iter().filter_map(|knee| Some((knee, knee.outcome?))) {
        text += &met(&knee.objective, outcome);
    }
    text
}

fn speeds(point: &ConcurrencyPoint) -> String {
    let speed = |share| rate(point.speed_reached_by(share), &point.output_rate);
    let all = point.aggregate_estimate().map_or("-".to_owned(), |all| format!("~{}", digits(all)));
    format!(
        "  {:>7}{:>10}{:>9}{:>9}{:>9}{:>11}{:>10}\n",
        point.range,
        point.exchanges(),
        point.output_rate.mean().map_or("-".to_owned(), digits),
        speed(0.5),
        speed(0.9),
        speed(0.99),
        all,
    )
}

fn waits(point: &ConcurrencyPoint) -> String {
    let wait = |q| point.first_token.quantile(q).map_or("-".to_owned(), |s| wait(s, &point.first_token));
    format!(
        "  {:>7}{:>8}{:>9}{:>9}{:>24}\n",
        point.range,
        wait(0.5),
        wait(0.9),
        wait(0.99),
        point.input_rate.mean().map_or("-".to_owned(), digits),
    )
}

/// Returns the verdicts on an objective; percentages are rounded down, so that 100 means all.
fn met(objective: &str, of: Outcome) -> String {
    let Outcome { exchanges, met, target_ratio } = of;
    let percent = |ratio: f64| (ratio * 1000.0 + 1e-6).floor() / 10.0;
    format!(
        "  Of {exchanges} judged exchanges {met} met {} altogether: {} %; the target is {} %\n",
        printable(objective),
        percent(met / exchanges),
        percent(target_ratio),
    )
}

fn position(position: &PositionSpeed) -> String {
    format!(
        "  {:<22}{:>11}{:>12}{:>10}\n",
        position.range,
        position.tokens,
        digits(position.seconds_per_token() * 1000.0),
        position.tokens_per_second().map_or("-".to_owned(), digits),
    )
}

/// Formats a rate, with `≥` at the last edge, beyond which it is unknown.
fn rate(rate: Option<f64>, of: &Distribution) -> String {
    match rate {
        None => "-".to_owned(),
        Some(rate) if Some(rate) == of.last_edge() => format!("≥{}", digits(rate)),
        Some(rate) => digits(rate),
    }
}

fn wait(seconds: f64, of: &Distribution) -> String {
    let least = if Some(seconds) == of.last_edge() { "≥" } else { "" };
    match seconds {
        short if short < 1.0 => format!("{least}{} ms", digits(short * 1000.0)),
        long => format!("{least}{} s", digits(long)),
    }
}

/// Formats with three digits, or with all digits before the point.
fn digits(number: f64) -> String {
    match number {
        small if small < 9.995 => format!("{small:.2}"),
        middle if middle < 99.95 => format!("{middle:.1}"),
        large => format!("{large:.0}"),
    }
}

fn seconds(over: Duration) -> String {
    format!("{} s", over.as_secs_f64())
}

/// Replaces control characters: a model's name comes from a client and must not control the terminal.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

const NOTES: &str = "
  * an estimate while all streams generate: the middle of the range times the
  mean. If the mean or half is beyond the last bucket (≥), all tokens by the
  time of all streams replace the mean.
  The mean is exact. The speeds that half, 9 of 10 or 99 of 100 streams reach,
  and p50 to p99, are estimates within a bucket of the histogram.
";
