//! Terms of tenants: a discount or a markup on every price of the book. The prices of such a tenant are computed when
//! the book is read, so that a charge is exact, and each has a rate of its own.
//!
//! A name applies before a pattern, a pattern with more literal characters before one with fewer, then the first in
//! alphabetical order.

use std::sync::Arc;

use text::Glob;

use crate::pattern;
use crate::prices::Factor;

/// The terms of one tenant, or of all whose name matches a pattern.
#[derive(Clone, Debug)]
pub struct TenantTerm {
    /// The line of the file on which they are.
    pub line: u64,
    /// The name or the pattern.
    pub tenants: Glob,
    /// The terms as written: `discount 10%`.
    pub text: Arc<str>,
    pub(crate) factor: Factor,
    /// The place of its prices in [`crate::Offer`].
    pub(crate) at: usize,
}

/// The terms of a book, by precedence.
#[derive(Clone, Debug, Default)]
pub(crate) struct TenantTerms {
    terms: Vec<TenantTerm>,
    /// The different factors, in the order of [`TenantTerm::at`].
    factors: Vec<Factor>,
}

impl TenantTerms {
    /// Orders terms, and gives those with equal factors the same place.
    pub(crate) fn new(mut terms: Vec<TenantTerm>) -> Self {
        let key = |term: &TenantTerm| {
            let text = term.tenants.text();
            let is_pattern = text.contains(['*', '?']);
            (is_pattern, std::cmp::Reverse(pattern::literal_chars(text)), text.to_owned())
        };
        terms.sort_by_cached_key(key);
        let mut factors: Vec<Factor> = Vec::new();
        for term in &mut terms {
            term.at = factors.iter().position(|factor| *factor == term.factor).unwrap_or(factors.len());
            if term.at == factors.len() {
                factors.push(term.factor);
            }
        }
        Self { terms, factors }
    }

    /// Returns the terms of a tenant.
    pub(crate) fn find(&self, tenant: &str) -> Option<&TenantTerm> {
        self.terms.iter().find(|term| term.tenants.matches(tenant))
    }

    pub(crate) fn all(&self) -> &[TenantTerm] {
        &self.terms
    }

    /// Returns the different factors, each with the first of its terms.
    pub(crate) fn factors(&self) -> Vec<(Factor, &TenantTerm)> {
        let first = |at| self.terms.iter().find(|term| term.at == at);
        let factors = self.factors.iter().enumerate();
        factors.filter_map(|(at, factor)| Some((*factor, first(at)?))).collect()
    }
}
