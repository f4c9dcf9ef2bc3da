//! The terms of tenants: `tenants: {acme: {discount: 10%}}`.

use origin::Origin;
use origin::fields::{self, Fields};
use origin::file::Node;
use text::{Glob, quoted};

use crate::prices::Factor;
use crate::tenant_terms::{TenantTerm, TenantTerms};

use super::{Draft, Reader};

const TERM_KEYS: &[&str] = &["discount", "markup"];

impl Reader {
    /// Reads the terms, and multiplies the prices of the drafts by each of their factors.
    pub(super) fn tenants(&mut self, top: &mut Fields, drafts: &mut [Draft]) -> TenantTerms {
        let Some(node) = top.take("tenants") else { return TenantTerms::default() };
        let remedy = || "write tenants with their terms under it, as in `acme: {discount: 10%}`".to_owned();
        let any = |_: &str, _: &Origin| None;
        let Some(tenants) = Fields::of_any(node, "`tenants`", remedy, &mut self.errors, any) else {
            return TenantTerms::default();
        };
        let origin = tenants.origin.clone();
        let terms = tenants.into_entries().filter_map(|(name, node)| self.term(&name, node)).collect();
        let terms = TenantTerms::new(terms);
        let factors = terms.first_of_factors();
        let rates = factors.len()
            * drafts.iter().map(|draft| draft.sheets.len() + draft.combined.len()).sum::<usize>();
        if rates > RATES_MAX {
            let message = format!("`tenants` adds {rates} rates, more than {RATES_MAX}");
            self.error(&origin, message, "use fewer different discounts, or remove models that are not used");
            return TenantTerms::default();
        }
        for first in factors {
            let place = format!("tenant `{}`", quoted(first.tenants.text()));
            for sheet in
                drafts.iter_mut().flat_map(|draft| draft.sheets.iter_mut().chain(&mut draft.combined))
            {
                let prices = self.multiplied(&first.origin, &place, &sheet.prices, first.factor);
                sheet.by_factor.push(prices);
            }
            // One warning for all prices of the entry.
            self.warnings.dedup();
            self.errors.dedup();
        }
        terms
    }

    fn term(&mut self, name: &str, node: Node) -> Option<TenantTerm> {
        let mut fields = Fields::read(node, "a tenant", TERM_KEYS, &mut self.errors)?;
        let origin = fields.origin.clone();
        let (key, node) = match (fields.take("discount"), fields.take("markup")) {
            (Some(node), None) => ("discount", node),
            (None, Some(node)) => ("markup", node),
            (None, None) | (Some(_), Some(_)) => {
                let message = format!("`{}` must have either `discount` or `markup`", quoted(name));
                self.error(&origin, message, "write one, as in `discount: 10%`");
                return None;
            }
        };
        let (text, at) = fields::scalar(key, node, &mut self.errors)?;
        let factor = if key == "discount" { Factor::of_discount(&text) } else { Factor::of_markup(&text) };
        let Some(factor) = factor else {
            let most = if key == "discount" { "100" } else { "9900" };
            let message = format!("`{key}`: `{}` is not a percentage", quoted(&text));
            let remedy =
                format!("write it as in 12.5%: above 0 and at most {most}, with at most seven decimals");
            self.error(&at, message, remedy);
            return None;
        };
        let text = format!("{key} {text}").into();
        Some(TenantTerm { origin, tenants: Glob::new(name), text, factor, at: 0 })
    }
}

/// Maximum rates of tenants' terms, of a few hundred bytes each.
const RATES_MAX: usize = 100_000;
