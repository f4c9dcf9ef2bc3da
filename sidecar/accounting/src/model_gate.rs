//! The gate of tenants whose enforced budget admits only requests that can be metered and priced: others would
//! bypass every budget. The law: the current price book decides which models have a price; without a book, no request is
//! rejected for its model.

use budget::Budget;
use ledger::now_us;
use relay::{Gap, Models, RequestedModel, Terms, UnknownPaths};

use crate::charger::Prices;

/// The enforced budgets, each with its terms.
#[derive(Debug)]
pub(crate) struct ModelGate {
    budgets: Vec<(Budget, Terms)>,
    prices: Prices,
}

impl ModelGate {
    pub(crate) fn new(budgets: Vec<(Budget, Terms)>, prices: Prices) -> Self {
        Self { budgets, prices }
    }

    fn covering(&self, tenant: &str) -> impl Iterator<Item = &(Budget, Terms)> {
        self.budgets.iter().filter(move |(budget, _)| budget.covers(tenant))
    }

    /// Returns the budget that rejects models without a price.
    fn budget_requiring_price(&self, tenant: &str) -> Option<&Budget> {
        self.covering(tenant).map(|(budget, _)| budget).find(|budget| budget.refuse_unpriced)
    }
}

impl Models for ModelGate {
    fn restricts(&self, tenant: &str) -> bool {
        self.budget_requiring_price(tenant).is_some()
    }

    fn refused(&self, tenant: &str, requested: &RequestedModel<'_>) -> Option<Box<str>> {
        let budget = self.budget_requiring_price(tenant)?;
        let RequestedModel { model, provider, upstream } = *requested;
        let book = self.prices.load();
        if book.as_ref()?.find(model, provider, upstream, now_us()).is_some() {
            return None;
        }
        // The message must not quote the request.
        let message = format!(
            "The budget '{}' allows only models with a price, and the requested model has none. The request was not \
             sent. Request another model, or ask the operator of tokenmeter to add it to the price file.",
            budget.name
        );
        Some(message.into())
    }

    /// Returns the strictest terms of the tenant's budgets.
    fn terms(&self, tenant: &str) -> Terms {
        self.covering(tenant).fold(Terms::default(), |all, (_, terms)| Terms {
            unknown_paths: all.unknown_paths.max(terms.unknown_paths),
            refuse_unknown_methods: all.refuse_unknown_methods || terms.refuse_unknown_methods,
            refuse_unreadable: all.refuse_unreadable || terms.refuse_unreadable,
            refuse_uncountable: all.refuse_uncountable || terms.refuse_uncountable,
        })
    }

    fn message(&self, tenant: &str, gap: Gap) -> Box<str> {
        let refuses = |terms: &Terms| match gap {
            Gap::UnknownPath => terms.unknown_paths == UnknownPaths::Refuse,
            Gap::UnknownMethod => terms.refuse_unknown_methods,
            Gap::Unreadable => terms.refuse_unreadable,
            Gap::Uncountable => terms.refuse_uncountable,
        };
        let budget = self.covering(tenant).find(|(_, terms)| refuses(terms));
        let name = budget.map_or("", |(budget, _)| &budget.name);
        let why = match gap {
            Gap::UnknownPath => {
                "allows only endpoints that tokenmeter knows, and the requested path is none of them. The request was \
                 not sent. Request a known endpoint."
            }
            Gap::UnknownMethod => {
                "allows only methods that tokenmeter knows at an endpoint, and the requested one, or the body with it, is \
                 not among them. The request was not sent. Send a POST."
            }
            Gap::Unreadable => {
                "allows only requests whose model can be read, and this body is larger than 8 MiB, compressed, not \
                 JSON, or has a model that is not a string. The request was not sent. Send plain JSON."
            }
            Gap::Uncountable => {
                "allows only responses with complete token counts, and this one would lack some. The request was not \
                 sent. Request streams with stream_options.include_usage, in plain JSON of at most 8 MiB that is not \
                 signed; one response to one prompt; all counts, that is without response_fields, or with details; and a response \
                 that is not fetched later."
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

    fn gate(prices: Option<&str>) -> ModelGate {
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
            Terms { unknown_paths: UnknownPaths::Refuse, refuse_unreadable: true, ..Terms::default() };
        let meters = Terms { unknown_paths: UnknownPaths::Meter, ..Terms::default() };
        let all =
            Budget { name: "all".into(), tenants: Vec::new(), refuse_unpriced: false, ..budget.clone() };
        ModelGate::new(vec![(all, meters), (budget, strict)], Arc::new(ArcSwapOption::new(book)))
    }

    #[test]
    fn strictest_terms_apply() {
        let gate = gate(None);
        let meters = Terms { unknown_paths: UnknownPaths::Meter, ..Terms::default() };
        assert_eq!(gate.terms("gold"), meters);
        let strict = gate.terms("trial-1");
        assert_eq!(strict.unknown_paths, UnknownPaths::Refuse);
        assert!(strict.refuse_unreadable && !strict.refuse_uncountable);
        for gap in [Gap::UnknownPath, Gap::Unreadable] {
            let message = gate.message("trial-1", gap);
            assert!(message.starts_with("The budget 'trial' allows only "), "{message}");
        }
    }

    #[test]
    fn unpriced_model_is_rejected_for_covered_tenants() {
        let prices = "version: v\ncurrency: USD\nmodels:\n- {name: m, aliases: [n], input: 1, output: 1}\n\
                      - {pattern: spot-*, upstream: spot, input: 1, output: 1}\n";
        let gate = gate(Some(prices));
        assert_eq!(["trial-1", "gold"].map(|tenant| gate.restricts(tenant)), [true, false]);
        for (tenant, model, upstream, refused) in [
            ("trial-1", "m", "u", false),
            ("trial-1", "n", "u", false),
            ("trial-1", "unheard-of", "u", true),
            ("trial-1", "spot-1", "spot", false),
            ("trial-1", "spot-1", "u", true),
            ("gold", "unheard-of", "u", false),
        ] {
            let told = gate.refused(tenant, &RequestedModel { model, provider: "openai", upstream });
            assert_eq!(told.is_some(), refused, "{tenant} {model} {upstream}");
            assert!(told.is_none_or(|told| told.contains("'trial'") && !told.contains(model)));
        }
    }

    #[test]
    fn no_model_is_rejected_without_a_price_book() {
        let requested = RequestedModel { model: "m", provider: "openai", upstream: "u" };
        assert_eq!(gate(None).refused("trial-1", &requested), None);
    }
}
