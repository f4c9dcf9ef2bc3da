//! Amounts and counts as text. The amounts of one column have the same number of decimals, so that digits of the same
//! value stand below each other.

use text::{Decimal, group_thousands, money};

/// Returns a column of money, in pico-units; `None` is an amount that is not known.
pub(crate) fn column(amounts: impl Iterator<Item = Option<i128>>) -> Vec<String> {
    let amounts: Vec<Option<Decimal>> = amounts.map(|pico| pico.map(money)).collect();
    let decimals = |amount: &Decimal| u32::try_from(amount.parts().1.len()).unwrap_or(amount.digits);
    let least = amounts.iter().flatten().map(decimals).max().unwrap_or(0);
    amounts.into_iter().map(|amount| amount.map_or_else(|| "–".to_owned(), |it| grouped(it, least))).collect()
}

/// Returns an amount of money, in pico-units.
pub(crate) fn one(pico: i128) -> String {
    let amount = money(pico);
    grouped(amount, amount.least)
}

/// Returns a count.
pub(crate) fn count(number: i128) -> String {
    group_thousands(&number.to_string())
}

fn grouped(amount: Decimal, least: u32) -> String {
    let (before, after) = Decimal { least, ..amount }.parts();
    format!("{}.{after}", group_thousands(&before))
}

#[cfg(test)]
mod tests {
    use super::{column, one};

    #[test]
    fn amounts_of_a_column_have_equal_decimals() {
        let amounts = [Some(1_234_500_000_000_000), None, Some(-1), Some(0)];
        let column = column(amounts.into_iter());
        assert_eq!(column, ["1,234.500000000000", "–", "-0.000000000001", "0.000000000000"]);
        assert_eq!(one(1_234_500_000_000_000), "1,234.50");
    }
}
