//! The curves for people, on a terminal of eighty columns. Numbers as short as they are true: three
//! digits at most are known of a quantile.

use std::fmt::Write;
use std::time::Duration;

use crate::bars::bars;
use crate::curves::{Crowd, Curves, ModelCurves, PositionSpeed, Window};
use crate::distribution::Distribution;
use crate::knee::{Basis, Outcome};

/// As text, a section for each model at each upstream.
pub fn table(curves: &Curves) -> String {
    let sections: Vec<_> = curves.models.iter().map(|model| section(model, curves.window)).collect();
    let mut text = sections.join("\n");
    text += NOTES;
    text
}

fn section(model: &ModelCurves, window: Window) -> String {
    let when = match window {
        Window::SinceStart => "since that tokenmeter started".to_owned(),
        Window::Last(over) => format!("in {}", seconds(over)),
    };
    let mut text = format!("{}: {} streams {when}\n\n", printable(&model.title()), model.exchanges());
    text += "  tokens/s of one stream, and of all together\n";
    text += "  at once   streams     mean     half  9 of 10  99 of 100      all*\n";
    model.crowds.iter().for_each(|crowd| text += &speeds(crowd));
    text += "\n  the first token, and the prompt until then\n";
    text += "  at once     p50      p90      p99   prompt tokens/s, mean\n";
    model.crowds.iter().for_each(|crowd| text += &waits(crowd));
    let marks = model.knees.iter().filter(|knee| knee.basis() == Basis::Configured);
    let marks: Vec<_> = marks.map(|knee| knee.tokens_per_second).collect();
    let bars = bars(&model.crowds, &marks);
    if !bars.is_empty() {
        text += "\n";
        text += &bars;
    }
    if !model.positions.is_empty() {
        text += "\n  position in the answer     tokens  ms a token  tokens/s\n";
        model.positions.iter().for_each(|one| text += &position(one));
    }
    if !model.knees.is_empty() {
        text += "\n  Half of the streams or more have the speed of\n";
    }
    for knee in &model.knees {
        writeln!(text, "    {}", printable(&knee.to_string())).expect("a String takes any text");
    }
    for (knee, outcome) in model.knees.iter().filter_map(|knee| Some((knee, knee.outcome?))) {
        text += &met(&knee.objective, outcome);
    }
    text
}

fn speeds(crowd: &Crowd) -> String {
    let speed = |share| rate(crowd.speed_reached_by(share), &crowd.output_rate);
    let all = crowd.aggregate_estimate().map_or("-".to_owned(), |all| format!("~{}", digits(all)));
    format!(
        "  {:>7}{:>10}{:>9}{:>9}{:>9}{:>11}{:>10}\n",
        crowd.range,
        crowd.exchanges(),
        crowd.output_rate.mean().map_or("-".to_owned(), digits),
        speed(0.5),
        speed(0.9),
        speed(0.99),
        all,
    )
}

fn waits(crowd: &Crowd) -> String {
    let wait = |q| crowd.first_token.quantile(q).map_or("-".to_owned(), |s| wait(s, &crowd.first_token));
    format!(
        "  {:>7}{:>8}{:>9}{:>9}{:>24}\n",
        crowd.range,
        wait(0.5),
        wait(0.9),
        wait(0.99),
        crowd.input_rate.mean().map_or("-".to_owned(), digits),
    )
}

/// Whether an objective was met, its first token included; percents cut, so that 100 is all of them.
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

/// A rate; with a `≥` at the last edge, beyond which nothing is known.
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

/// Three digits, or all before the point.
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

/// A model's name is text from a client: nothing in it may steer a terminal.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

const NOTES: &str = "
  * an estimate: the middle of the range times the mean, while all generate;
  where the mean or half are beyond the last bucket (≥), times all tokens by
  their time.
  The mean is exact. What half, 9 of 10 or 99 of 100 streams reach, and p50 to
  p99, are estimates within a bucket of the histogram.
";
