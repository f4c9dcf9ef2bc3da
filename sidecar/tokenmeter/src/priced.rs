//! Tenants whose enforced budget admits only requests that can be metered and priced: a request without a price, or
//! one that is not counted, would pass every budget. The law: the price book in force decides which models have a
//! price; without a book, no request is refused for its model.

use budget::Budget;
use ledger::now_us;
use relay::{Gap, Models, Terms, UnknownPaths, Wanted};

use crate::spend::Prices;

/// The budgets that are enforced, each with its terms.
#[derive(Debug)]
pub(crate) struct Priced {
    budgets: Vec<(Budget, Terms)>,
    prices: Prices,
}

impl Priced {
    pub(crate) fn new(budgets: Vec<(Budget, Terms)>, prices: Prices) -> Self {
        Self { budgets, prices }
    }

    fn covering(&self, tenant: &str) -> impl Iterator<Item = &(Budget, Terms)> {
        self.budgets.iter().filter(move |(budget, _)| budget.covers(tenant))
    }

    /// The budget that refuses models without a price.
    fn minding(&self, tenant: &str) -> Option<&Budget> {
        self.covering(tenant).map(|(budget, _)| budget).find(|budget| budget.refuse_unpriced)
    }
}

impl Models for Priced {
    fn minds(&self, tenant: &str) -> bool {
        self.minding(tenant).is_some()
    }

    fn refused(&self, tenant: &str, wanted: &Wanted<'_>) -> Option<Box<str>> {
        let budget = self.minding(tenant)?;
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

    /// Of several budgets the strictest terms.
    fn terms(&self, tenant: &str) -> Terms {
        self.covering(tenant).fold(Terms::default(), |all, (_, terms)| Terms {
            unknown_paths: all.unknown_paths.max(terms.unknown_paths),
            refuse_unreadable: all.refuse_unreadable || terms.refuse_unreadable,
            refuse_uncountable: all.refuse_uncountable || terms.refuse_uncountable,
        })
    }

    fn message(&self, tenant: &str, gap: Gap) -> Box<str> {
        let refuses = |terms: &Terms| match gap {
            Gap::UnknownPath => terms.unknown_paths == UnknownPaths::Refuse,
            Gap::Unreadable => terms.refuse_unreadable,
            Gap::Uncountable => terms.refuse_uncountable,
        };
        let budget = self.covering(tenant).find(|(_, terms)| refuses(terms));
        let name = budget.map_or("", |(budget, _)| &budget.name);
        let why = match gap {
            Gap::UnknownPath => {
                "allows only endpoints that tokenmeter knows, and the path asked for is none. The request was not \
                 sent. Ask for a known endpoint."
            }
            Gap::Unreadable => {
                "allows only requests whose model can be read, and this one's cannot: its body is larger than 8 MiB, \
                 compressed, no JSON, or names the model by something that is no text. The request was not sent. \
                 Send plain JSON."
            }
            Gap::Uncountable => {
                "allows only answers that the server counts, and this one would not be counted in full. The request \
                 was not sent. Ask for a stream with usage by stream_options.include_usage, in a body that is plain \
                 JSON of at most 8 MiB and not signed; for one answer to one prompt; and for all counts, that is \
                 without response_fields, or with details."
            }
        };
        format!("The budget '{name}' {why}").into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arc_swap::ArcSwapOption;
    use budget::Period;
    use price::Book;
    use text::Glob;

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
        let strict =
            Terms { unknown_paths: UnknownPaths::Refuse, refuse_unreadable: true, refuse_uncountable: false };
        let meters = Terms { unknown_paths: UnknownPaths::Meter, ..Terms::default() };
        let all =
            Budget { name: "all".into(), tenants: Vec::new(), refuse_unpriced: false, ..budget.clone() };
        Priced::new(vec![(all, meters), (budget, strict)], Arc::new(ArcSwapOption::new(book)))
    }

    #[test]
    fn of_several_budgets_the_strictest_terms_count() {
        let priced = priced(None);
        let meters = Terms { unknown_paths: UnknownPaths::Meter, ..Terms::default() };
        assert_eq!(priced.terms("gold"), meters);
        let strict = priced.terms("trial-1");
        assert_eq!(strict.unknown_paths, UnknownPaths::Refuse);
        assert!(strict.refuse_unreadable && !strict.refuse_uncountable);
        for gap in [Gap::UnknownPath, Gap::Unreadable] {
            let told = priced.message("trial-1", gap);
            assert!(told.starts_with("The budget 'trial' allows only "), "{told}");
        }
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
