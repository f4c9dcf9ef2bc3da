//! Terms of tenants: a discount or a markup on every price of the book. The prices of such a tenant are computed when
//! the book is read, so that a charge is exact, and each has a rate of its own.
//!
//! A name applies before a pattern, a pattern with more literal characters before one with fewer, then the first in
//! alphabetical order.

use std::cmp::Reverse;
use std::sync::Arc;

use origin::Origin;
use text::Glob;

use crate::pattern;
use crate::prices::Factor;

/// The terms of one tenant, or of all whose name matches a pattern.
#[derive(Clone, Debug)]
pub struct TenantTerm {
    /// The place in which they were written.
    pub(crate) origin: Origin,
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
    /// The names, in alphabetical order, and then the patterns.
    terms: Vec<TenantTerm>,
    /// The number of names.
    names: usize,
}

impl TenantTerms {
    /// Orders terms, and gives those with equal factors the same place.
    pub(crate) fn new(mut terms: Vec<TenantTerm>) -> Self {
        let is_pattern = |term: &TenantTerm| term.tenants.text().contains(['*', '?']);
        terms.sort_by_cached_key(|term| {
            let text = term.tenants.text();
            // Names come first; at most one of them matches a tenant.
            let literal_chars = if is_pattern(term) { pattern::literal_chars(text) } else { usize::MAX };
            (Reverse(literal_chars), text.to_owned())
        });
        let mut factors: Vec<Factor> = Vec::new();
        for term in &mut terms {
            term.at = factors.iter().position(|factor| *factor == term.factor).unwrap_or(factors.len());
            if term.at == factors.len() {
                factors.push(term.factor);
            }
        }
        let names = terms.partition_point(|term| !is_pattern(term));
        Self { terms, names }
    }

    /// Returns the terms of a tenant. Runs for each exchange, so names are found by a binary search.
    pub(crate) fn find(&self, tenant: &str) -> Option<&TenantTerm> {
        let (names, patterns) = self.terms.split_at(self.names);
        match names.binary_search_by(|term| term.tenants.text().cmp(tenant)) {
            Ok(at) => names.get(at),
            Err(_) => patterns.iter().find(|term| term.tenants.matches(tenant)),
        }
    }

    pub(crate) fn all(&self) -> &[TenantTerm] {
        &self.terms
    }

    /// Returns the first term of each factor, in the order of [`TenantTerm::at`].
    pub(crate) fn first_of_factors(&self) -> Vec<&TenantTerm> {
        let mut first = Vec::new();
        for term in &self.terms {
            if term.at == first.len() {
                first.push(term);
            }
        }
        first
    }
}
