//! Speeds as bars of text, three quantiles in each: what 99 of 100 reach is solid, what 9 of 10 and
//! half reach is lighter. Drawn here because terminals are read without colours too, and shades
//! tell quantiles apart where lines of one colour do not.

use std::fmt::Write;

use crate::curves::Crowd;

/// One range's bar.
struct Bar {
    label: &'static str,
    /// What 99 of 100, 9 of 10 and half of the streams reach, rising.
    speeds: [f64; 3],
}

/// The bars of all ranges over one axis, with a mark at each objective's speed; nothing if no stream
/// had a speed.
pub(crate) fn bars(crowds: &[Crowd], marks: &[f64]) -> String {
    let bars: Vec<_> = crowds.iter().filter_map(Bar::of).collect();
    let fastest = bars.iter().map(|bar| bar.speeds[2]).fold(0.0, f64::max);
    if fastest <= 0.0 {
        return String::new();
    }
    let step = nice(fastest / TICKS as f64);
    let end = step * (fastest / step).ceil();
    let column = |speed: f64| (speed / end * WIDTH as f64).round() as usize;
    let mut text =
        String::from("  at once  tokens/s of one stream: █ 99 of 100 reach it, ▓ 9 of 10, ░ half\n");
    for bar in &bars {
        let [most, nine, half] = bar.speeds.map(column);
        let shade = |at: usize| match at {
            at if at < most => '█',
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
    fn of(crowd: &Crowd) -> Option<Self> {
        let [most, nine, half] = [0.99, 0.9, 0.5].map(|share| crowd.speed_reached_by(share));
        Some(Self { label: crowd.range, speeds: [most?, nine?, half?] })
    }
}

/// The numbers under the axis, each beginning under its column.
fn axis(step: f64, end: f64, column: impl Fn(f64) -> usize) -> String {
    let mut line = String::new();
    for at in 0..=(end / step).round() as u64 {
        let at = at as f64 * step;
        line.extend(std::iter::repeat_n(' ', column(at).saturating_sub(line.len())));
        // A step of 0.2 three times is not 0.6 to the last bit.
        line += &((at * 1e6).round() / 1e6).to_string();
    }
    line
}

/// The least of 1, 2, 5, 10, 20, … that is not below a number.
fn nice(least: f64) -> f64 {
    let ten = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * ten)
        .find(|step| *step >= least)
        .unwrap_or(10.0 * ten)
}

/// Columns of the longest bar: with what stands beside it, a terminal of eighty.
const WIDTH: usize = 64;

/// Numbers on the axis besides 0, at most.
const TICKS: usize = 5;
