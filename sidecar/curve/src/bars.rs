//! Text bars of speeds with three quantiles each: the speed that 99 of 100 streams reach is solid, those of 9 of 10
//! and of half are lighter. Shades work without colours, unlike the lines of
//! a terminal plot.

use std::fmt::Write;

use crate::curves::ConcurrencyPoint;

/// The bar of one concurrency range.
struct Bar {
    label: &'static str,
    /// The speeds that 99 of 100, 9 of 10 and half of the streams reach, ascending.
    speeds: [f64; 3],
}

/// Returns the bars of all ranges over one axis, with a mark at each objective's speed; empty if no stream
/// had a speed.
pub(crate) fn bars(by_concurrency: &[ConcurrencyPoint], marks: &[f64]) -> String {
    let bars: Vec<_> = by_concurrency.iter().filter_map(Bar::of).collect();
    let fastest = bars.iter().map(|bar| bar.speeds[2]).fold(0.0, f64::max);
    if fastest <= 0.0 {
        return String::new();
    }
    let step = round_up(fastest / TICKS as f64);
    let end = step * (fastest / step).ceil();
    let column = |speed: f64| (speed / end * WIDTH as f64).round() as usize;
    let mut text =
        String::from("  at once  tokens/s of one stream: █ 99 of 100 reach it, ▓ 9 of 10, ░ half\n");
    for bar in &bars {
        let [max, nine, half] = bar.speeds.map(column);
        let shade = |at: usize| match at {
            at if at < max => '█',
            at if at < nine => '▓',
            at if at < half => '░',
            _ => ' ',
        };
        let shades: String = (0..WIDTH).map(shade).collect();
        writeln!(text, "  {:>7}  │{}", bar.label, shades.trim_end()).expect("a String takes any text");
    }
    let mut line = vec!['─'; WIDTH + 1];
    line[0] = '└';
    for mark in marks.iter().filter(|mark| **mark <= end) {
        line[column(*mark)] = '┴';
    }
    writeln!(text, "  {:>7}  {}", "", line.iter().collect::<String>()).expect("a String takes any text");
    writeln!(text, "  {:>7}  {}", "", axis(step, end, column)).expect("a String takes any text");
    text
}

impl Bar {
    fn of(point: &ConcurrencyPoint) -> Option<Self> {
        let [max, nine, half] = [0.99, 0.9, 0.5].map(|share| point.speed_reached_by(share));
        Some(Self { label: point.range, speeds: [max?, nine?, half?] })
    }
}

/// Returns the numbers under the axis, each starting under its column.
fn axis(step: f64, end: f64, column: impl Fn(f64) -> usize) -> String {
    let mut line = String::new();
    for at in 0..=(end / step).round() as u64 {
        let at = at as f64 * step;
        line.extend(std::iter::repeat_n(' ', column(at).saturating_sub(line.len())));
        // Rounded: three steps of 0.2 are not exactly 0.6.
        line += &((at * 1e6).round() / 1e6).to_string();
    }
    line
}

/// Returns the least of 1, 2, 5, 10, 20, … that is not below a number.
fn round_up(least: f64) -> f64 {
    let ten = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * ten)
        .find(|step| *step >= least)
        .unwrap_or(10.0 * ten)
}

/// Columns of the longest bar: with its label, a terminal of eighty columns.
const WIDTH: usize = 64;

/// The maximum number of labels on the axis besides 0.
const TICKS: usize = 5;
