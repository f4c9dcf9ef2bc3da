//! Amounts and counts as text. The amounts of one column have the same number of decimals, so that digits of the same
//! value stand below each other.

use text::{Decimal, group_thousands, money};

/// Returns a column of money, in pico-units, each amount rounded to `round` decimals, or exact; `None` is an amount
/// that is not known.
pub(crate) fn column(amounts: impl Iterator<Item = Option<i128>>, round: Option<u32>) -> Vec<String> {
    let amounts: Vec<Option<Decimal>> = amounts.map(|pico| pico.map(|pico| rounded(pico, round))).collect();
    let decimals = |amount: &Decimal| u32::try_from(amount.parts().1.len()).unwrap_or(amount.digits);
    let least = amounts.iter().flatten().map(decimals).max().unwrap_or(0);
    amounts.into_iter().map(|amount| amount.map_or_else(|| "–".to_owned(), |it| grouped(it, least))).collect()
}

/// Returns an amount of money, in pico-units, rounded to `round` decimals, or exact.
pub(crate) fn one(pico: i128, round: Option<u32>) -> String {
    let amount = rounded(pico, round);
    grouped(amount, amount.least)
}

fn rounded(pico: i128, round: Option<u32>) -> Decimal {
    round.map_or(money(pico), |places| money(pico).round(places))
}

/// Returns a count.
pub(crate) fn count(number: i128) -> String {
    group_thousands(&number.to_string())
}

fn grouped(amount: Decimal, least: u32) -> String {
    let (before, after) = Decimal { least, ..amount }.parts();
    let point = if after.is_empty() { "" } else { "." };
    format!("{}{point}{after}", group_thousands(&before))
}

#[cfg(test)]
mod tests {
    use super::{column, one};

    #[test]
    fn amounts_of_a_column_have_equal_decimals() {
        let amounts = [Some(1_234_500_000_000_000), None, Some(-1), Some(0)];
        let exact = column(amounts.into_iter(), None);
        assert_eq!(exact, ["1,234.500000000000", "–", "-0.000000000001", "0.000000000000"]);
        assert_eq!(one(1_234_500_000_000_000, None), "1,234.50");
    }

    #[test]
    fn amounts_are_rounded_half_to_even() {
        let amounts = [Some(1_234_565_000_000_000), None, Some(-1)];
        assert_eq!(column(amounts.into_iter(), Some(2)), ["1,234.56", "–", "0.00"]);
        assert_eq!(column(amounts.into_iter(), Some(0)), ["1,235", "–", "0"]);
        assert_eq!(one(1_234_565_000_000_000, Some(2)), "1,234.56");
    }
}
