//! Numbers with three or four digits, which is more than their measurement has; `-` is not known.

/// Returns a rate or another real number: `0.12`, `3.14`, `41.2`, `20`, `812`, `12.3k`.
pub(crate) fn real(number: f64) -> String {
    if !number.is_finite() {
        return UNKNOWN.to_owned();
    }
    match number.abs() {
        small if small < 9.995 => trimmed(format!("{number:.2}")),
        small if small < 99.95 && small.fract() != 0.0 => format!("{number:.1}"),
        below if below < 9_999.5 => format!("{number:.0}"),
        _ => scaled(number, 1e3, &["k", "M", "G", "T", "P"]),
    }
}

/// Returns a count: `0`, `9999`, `12.3k`.
pub(crate) fn count(number: u64) -> String {
    match number {
        0..=9_999 => number.to_string(),
        many => scaled(many as f64, 1e3, &["k", "M", "G", "T", "P", "E"]),
    }
}

/// Returns a time from seconds: `85 µs`, `210 ms`, `1.23 s`, `2 min`.
pub(crate) fn time(seconds: f64) -> String {
    if !seconds.is_finite() {
        return UNKNOWN.to_owned();
    }
    match seconds.abs() {
        0.0 => "0 s".to_owned(),
        short if short < 0.000_999_5 => format!("{} µs", real(seconds * 1e6)),
        short if short < 0.999_5 => format!("{} ms", real(seconds * 1e3)),
        short if short < 119.5 => format!("{} s", real(seconds)),
        _ => format!("{} min", real(seconds / 60.0)),
    }
}

/// Returns an amount of money without its currency: `0`, `0.000123`, `0.123`, `12.30`, `1234`.
pub(crate) fn money(amount: f64) -> String {
    if !amount.is_finite() {
        return UNKNOWN.to_owned();
    }
    match amount.abs() {
        0.0 => "0".to_owned(),
        dust if dust < 0.000_000_5 => "<0.000001".to_owned(),
        small if small < 0.000_995 => format!("{amount:.6}"),
        small if small < 0.099_5 => format!("{amount:.4}"),
        small if small < 0.995 => format!("{amount:.3}"),
        below if below < 999.995 => format!("{amount:.2}"),
        below if below < 9_999.5 => format!("{amount:.0}"),
        _ => scaled(amount, 1e3, &["k", "M", "G", "T", "P"]),
    }
}

/// Returns a share of 0 to 1: `0 %`, `4.2 %`, `99.95 %`, `100 %`. Only all of it is 100 %.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return UNKNOWN.to_owned();
    }
    let percent = share * 100.0;
    match percent {
        most if (99.0..100.0).contains(&most) => format!("{:.2} %", (most * 100.0).floor() / 100.0),
        large if large >= 9.95 => format!("{large:.0} %"),
        small => format!("{} %", trimmed(format!("{small:.1}"))),
    }
}

/// Returns a size of memory: `512 MiB`.
pub(crate) fn bytes(bytes: f64) -> String {
    match bytes.is_finite() {
        true if bytes.abs() < 1024.0 => format!("{bytes:.0} B"),
        true => scaled(bytes, 1024.0, &[" KiB", " MiB", " GiB", " TiB", " PiB"]),
        false => UNKNOWN.to_owned(),
    }
}

/// Returns an energy: `812 J`, `1.20 MJ`.
pub(crate) fn energy(joules: f64) -> String {
    match joules.is_finite() {
        true if joules.abs() < 999.5 => format!("{joules:.0} J"),
        true => scaled(joules, 1e3, &[" kJ", " MJ", " GJ", " TJ", " PJ"]),
        false => UNKNOWN.to_owned(),
    }
}

/// Returns a long time from milliseconds: `45 s`, `2 h 13 min`, `3 d 4 h`.
pub(crate) fn age(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// Returns the text of a number, or `-` if it is not known.
pub(crate) fn known(number: Option<f64>, text: impl Fn(f64) -> String) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), text)
}

fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let mut number = number / step;
    let mut units = units.iter();
    let mut unit = units.next();
    // 999.95 would be rounded to 1000.
    while number.abs() >= 999.5 {
        let Some(next) = units.next() else { return format!("{number:.0e}{}", unit.unwrap_or(&"")) };
        (number, unit) = (number / step, Some(next));
    }
    let digits = match number.abs() {
        small if small < 9.995 => format!("{number:.2}"),
        small if small < 99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    };
    digits + unit.unwrap_or(&"")
}

/// Removes the zeros after the last digit, and the point.
fn trimmed(digits: String) -> String {
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The text of an unknown number.
pub(crate) const UNKNOWN: &str = "-";

#[cfg(test)]
mod tests {
    use super::{age, bytes, count, energy, known, money, percent, real, time};

    #[test]
    fn numbers_have_three_or_four_digits() {
        let reals = [0.0, 0.004, 0.5, 4.56, 9.999, 41.25, 99.97, 812.4, 9_999.0, 12_345.0, 999_999.0, 1e300];
        let texts =
            ["0", "0", "0.5", "4.56", "10.0", "41.2", "100", "812", "9999", "12.3k", "1.00M", "1e285P"];
        assert_eq!(reals.map(real), texts);
        assert_eq!(
            [0, 9_999, 10_000, 1_234_567, u64::MAX].map(count),
            ["0", "9999", "10.0k", "1.23M", "18.4E"]
        );
        assert_eq!(
            [0.0, 0.000_085, 0.000_999_9, 0.21, 0.999_9, 1.234, 61.5, 150.0].map(time),
            ["0 s", "85 µs", "1 ms", "210 ms", "1 s", "1.23 s", "61.5 s", "2.5 min"]
        );
        assert_eq!(
            [0.0, 1e-9, 0.000_123, 0.012, 0.123, 0.999, 12.3, 1234.5, 56_789.0].map(money),
            ["0", "<0.000001", "0.000123", "0.0120", "0.123", "1.00", "12.30", "1234", "56.8k"]
        );
        assert_eq!([512.0, 2048.0, 5e8, 8e10].map(bytes), ["512 B", "2.00 KiB", "477 MiB", "74.5 GiB"]);
        assert_eq!([0.0, 812.4, 1.2e6].map(energy), ["0 J", "812 J", "1.20 MJ"]);
    }

    #[test]
    fn only_all_is_a_hundred_percent() {
        assert_eq!(
            [0.0, 0.042, 0.5, 0.99, 0.99999, 1.0].map(percent),
            ["0 %", "4.2 %", "50 %", "99.00 %", "99.99 %", "100 %"]
        );
    }

    #[test]
    fn age_has_its_two_largest_units() {
        assert_eq!([0, 45_000, 135_000].map(age), ["0 s", "45 s", "2 min 15 s"]);
        assert_eq!([8_000_000, 1_000_000_000].map(age), ["2 h 13 min", "11 d 13 h"]);
    }

    #[test]
    fn unknown_number_is_a_dash() {
        assert_eq!(known(None, real), "-");
        assert_eq!(known(Some(2.0), real), "2");
        assert_eq!([f64::NAN, f64::INFINITY].map(real), ["-", "-"]);
    }
}
