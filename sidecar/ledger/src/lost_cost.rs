//! The cost of lost rows.

use price::{Charge, Currency, Rate, Unpriced};

/// The cost of lost rows by their first charge. All fields are `None` if that is not known: after a crash, and of rows in
/// two currencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostCost {
    /// The number of rows without a price, which add nothing to the cost.
    pub unpriced_rows: Option<u64>,
    /// The cost of the other rows, 10⁻¹² of the currency.
    pub cost_pico: Option<i128>,
    /// The currency; also `None` if the cost is 0.
    pub currency: Option<Currency>,
}

impl LostCost {
    /// A cost that is not known.
    pub const UNKNOWN: Self = Self { unpriced_rows: None, cost_pico: None, currency: None };

    /// The cost of no rows.
    pub(crate) const NONE: Self = Self::known(0, 0, Currency::USD);

    const fn known(unpriced_rows: u64, cost_pico: i128, currency: Currency) -> Self {
        let currency = if cost_pico == 0 { None } else { Some(currency) };
        Self { unpriced_rows: Some(unpriced_rows), cost_pico: Some(cost_pico), currency }
    }

    /// Returns the cost of one row.
    pub(crate) fn of_row(charge: &Charge) -> Self {
        match charge {
            Charge::Priced { rate, cost } => Self::known(0, (*cost).into(), rate.currency),
            Charge::Unpriced(Unpriced::Leg) => Self::NONE,
            Charge::Unpriced(_) => Self::known(1, 0, Currency::USD),
        }
    }

    /// Returns the cost of the exchanges of a total with this rate.
    pub(crate) fn of_total(exchanges: u64, cost_pico: i128, rate: Option<&Rate>) -> Self {
        match rate {
            Some(rate) => Self::known(0, cost_pico, rate.currency),
            None => Self::known(exchanges, 0, Currency::USD),
        }
    }

    /// Returns the sum with another cost.
    pub(crate) fn plus(self, other: Self) -> Self {
        let is_one = self.currency.zip(other.currency).is_none_or(|(one, other)| one == other);
        let sum = || {
            Some(Self {
                unpriced_rows: Some(self.unpriced_rows?.saturating_add(other.unpriced_rows?)),
                cost_pico: Some(self.cost_pico?.saturating_add(other.cost_pico?)),
                currency: self.currency.or(other.currency),
            })
        };
        sum().filter(|_| is_one).unwrap_or(Self::UNKNOWN)
    }

    /// Returns the cost as one word, which [`Self::read`] reads.
    pub(crate) fn word(self) -> String {
        let Self { unpriced_rows: Some(unpriced), cost_pico: Some(pico), currency } = self else {
            return "-".to_owned();
        };
        format!("{unpriced},{pico},{}", currency.as_ref().map_or("XXX", Currency::code))
    }

    pub(crate) fn read(word: &str) -> Self {
        let read = || {
            let mut parts = word.split(',');
            let (unpriced, pico) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(Self::known(unpriced, pico, Currency(parts.next()?.as_bytes().try_into().ok()?)))
        };
        read().unwrap_or(Self::UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use price::Currency;

    use super::LostCost;

    #[test]
    fn cost_of_two_currencies_is_not_known() {
        let [usd, eur] = [Currency::USD, Currency(*b"EUR")];
        let sum = |amounts: &[(u64, i128, Currency)]| {
            let each =
                amounts.iter().map(|(unpriced, pico, currency)| LostCost::known(*unpriced, *pico, *currency));
            each.fold(LostCost::NONE, LostCost::plus)
        };
        assert_eq!(sum(&[(0, 0, eur), (1, 2, usd), (2, 3, usd)]), LostCost::known(3, 5, usd));
        assert_eq!(sum(&[]), LostCost::NONE);
        assert_eq!(sum(&[(0, 2, usd), (0, 3, eur)]), LostCost::UNKNOWN);
        assert_eq!(sum(&[(0, 2, usd), (0, 3, eur), (0, 4, eur)]), LostCost::UNKNOWN);
    }

    #[test]
    fn cost_is_read_as_written() {
        let eur = Currency(*b"EUR");
        let costs = [LostCost::UNKNOWN, LostCost::NONE, LostCost::known(3, 0, eur)];
        for cost in
            costs.into_iter().chain([i128::MAX, 1, -5].map(|pico| LostCost::known(u64::MAX, pico, eur)))
        {
            assert_eq!(LostCost::read(&cost.word()), cost, "{cost:?}");
        }
        for word in ["", "-", ",", "1", "1,2", "1,x,EUR", "x,1,EUR", "1,1,EURO"] {
            assert_eq!(LostCost::read(word), LostCost::UNKNOWN, "{word}");
        }
    }
}
