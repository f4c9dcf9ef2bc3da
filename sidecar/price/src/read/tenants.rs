//! The terms of tenants: `tenants: {acme: {discount: 10%}}`.

use std::collections::HashMap;

use text::Glob;
use yaml::{Node, Shape};

use crate::prices::Factor;
use crate::tenant_terms::{TenantTerm, TenantTerms};

use super::fields::Fields;
use super::{Draft, Reader, quoted};

const TERM_KEYS: &[&str] = &["discount", "markup"];

impl Reader {
    /// Reads the terms, and multiplies the prices of the drafts by each of their factors.
    pub(super) fn tenants(&mut self, top: &Fields<'_>, drafts: &mut [Draft]) -> TenantTerms {
        let Some(node) = top.get("tenants") else { return TenantTerms::default() };
        let Shape::Map(entries) = &node.shape else {
            let remedy = "write tenants with their terms under it, as in `acme: {discount: 10%}`";
            self.error(node.line, "`tenants` is not a list of tenants", remedy);
            return TenantTerms::default();
        };
        let mut lines: HashMap<&str, u64> = HashMap::new();
        let mut terms = Vec::new();
        for (name, line, node) in entries {
            if let Some(first) = lines.insert(name, *line) {
                let message = format!("`{}` has terms already, on line {first}", quoted(name));
                self.error(*line, message, "remove one of them");
            } else {
                terms.extend(self.term(name, *line, node));
            }
        }
        let terms = TenantTerms::new(terms);
        let factors = terms.first_of_factors();
        let rates = factors.len() * drafts.iter().map(|draft| draft.sheets.len()).sum::<usize>();
        if rates > RATES_MAX {
            let message = format!("`tenants` adds {rates} rates, more than {RATES_MAX}");
            self.error(
                node.line,
                message,
                "use fewer different discounts, or remove models that are not used",
            );
            return TenantTerms::default();
        }
        for first in factors {
            let place = format!("tenant `{}`", quoted(first.tenants.text()));
            for sheet in drafts.iter_mut().flat_map(|draft| &mut draft.sheets) {
                let prices = self.multiplied(first.line, &place, &sheet.prices, first.factor);
                sheet.by_factor.push(prices);
            }
            // One warning for all prices of the entry.
            self.warnings.dedup();
            self.errors.dedup();
        }
        terms
    }

    fn term(&mut self, name: &str, line: u64, node: &Node) -> Option<TenantTerm> {
        let fields = self.fields(node, "a tenant", TERM_KEYS)?;
        let (key, node) = match (fields.get("discount"), fields.get("markup")) {
            (Some(node), None) => ("discount", node),
            (None, Some(node)) => ("markup", node),
            (None, None) | (Some(_), Some(_)) => {
                let message = format!("`{}` must have either `discount` or `markup`", quoted(name));
                self.error(line, message, "write one, as in `discount: 10%`");
                return None;
            }
        };
        let Shape::Scalar(text) = &node.shape else {
            self.error(node.line, format!("`{key}` is not one value"), "write it as in 10%");
            return None;
        };
        let factor = if key == "discount" { Factor::of_discount(text) } else { Factor::of_markup(text) };
        let Some(factor) = factor else {
            let most = if key == "discount" { "100" } else { "9900" };
            let message = format!("`{key}`: `{}` is not a percentage", quoted(text));
            let remedy =
                format!("write it as in 12.5%: above 0 and at most {most}, with at most seven decimals");
            self.error(node.line, message, remedy);
            return None;
        };
        let text = format!("{key} {text}").into();
        Some(TenantTerm { line, tenants: Glob::new(name), text, factor, at: 0 })
    }
}

/// Maximum rates of tenants' terms, of a few hundred bytes each.
const RATES_MAX: usize = 100_000;
