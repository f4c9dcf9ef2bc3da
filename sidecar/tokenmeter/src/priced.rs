//! Who may ask only for models that have a price: what has none passes every budget. The law: the book in
//! force decides, and without one nobody is refused.

use budget::Budget;
use ledger::now_us;
use relay::{Models, Wanted};

use crate::spend::Prices;

/// The budgets that refuse what has no price.
#[derive(Debug)]
pub(crate) struct Priced {
    budgets: Vec<Budget>,
    prices: Prices,
}

impl Priced {
    pub(crate) fn new(budgets: Vec<Budget>, prices: Prices) -> Self {
        Self { budgets, prices }
    }

    fn covering(&self, tenant: &str) -> Option<&Budget> {
        self.budgets.iter().find(|budget| budget.covers(tenant))
    }
}

impl Models for Priced {
    fn minds(&self, tenant: &str) -> bool {
        self.covering(tenant).is_some()
    }

    fn refused(&self, tenant: &str, wanted: &Wanted<'_>) -> Option<Box<str>> {
        let budget = self.covering(tenant)?;
        let Wanted { model, provider, upstream } = *wanted;
        let book = self.prices.load();
        if book.as_ref()?.find(model, provider, upstream, now_us()).is_some() {
            return None;
        }
        // It does not quote the request.
        let message = format!(
            "The budget '{}' allows only models that have a price, and the model asked for has none. The request \
             was not sent. Ask for another model, or ask whoever runs tokenmeter to put it into the price file.",
            budget.name
        );
        Some(message.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arc_swap::ArcSwapOption;
    use budget::Period;
    use metrics::Glob;
    use price::Book;

    use super::*;

    fn priced(prices: Option<&str>) -> Priced {
        let budget = Budget {
            name: "trial".into(),
            tenants: vec![Glob::new("trial-*")],
            shared: false,
            period: Period::Day,
            soft: None,
            hard: Some(1),
            enforce: true,
            refuse_unpriced: true,
        };
        let book = prices.map(|text| Arc::new(Book::read(text).unwrap().0));
        Priced::new(vec![budget], Arc::new(ArcSwapOption::new(book)))
    }

    #[test]
    fn what_has_no_price_there_is_refused_to_those_it_is_said_of() {
        let prices = "version: v\ncurrency: USD\nmodels:\n- {name: m, aliases: [n], input: 1, output: 1}\n\
                      - {pattern: spot-*, upstream: spot, input: 1, output: 1}\n";
        let priced = priced(Some(prices));
        assert_eq!(["trial-1", "gold"].map(|tenant| priced.minds(tenant)), [true, false]);
        for (tenant, model, upstream, refused) in [
            ("trial-1", "m", "u", false),
            ("trial-1", "n", "u", false),
            ("trial-1", "unheard-of", "u", true),
            ("trial-1", "spot-1", "spot", false),
            ("trial-1", "spot-1", "u", true),
            ("gold", "unheard-of", "u", false),
        ] {
            let told = priced.refused(tenant, &Wanted { model, provider: "openai", upstream });
            assert_eq!(told.is_some(), refused, "{tenant} {model} {upstream}");
            assert!(told.is_none_or(|told| told.contains("'trial'") && !told.contains(model)));
        }
    }

    #[test]
    fn without_a_book_nobody_is_refused() {
        let wanted = Wanted { model: "m", provider: "openai", upstream: "u" };
        assert_eq!(priced(None).refused("trial-1", &wanted), None);
    }
}
