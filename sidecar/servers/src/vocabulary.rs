//! The common quantities, and the names under which each server exports them.
//!
//! Invariant: a quantity is read under the newest name on the page, else it is absent. Samples of several models or
//! engines are summed, shares are averaged.

use metrics::PROMPT_SOURCES;
use metrics::ServerKind;

use scrape::Page;

/// The names of one kind of server. A quantity without names is not exported by it.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub(crate) kind: ServerKind,
    /// The prefixes of its names.
    pub(crate) prefixes: &'static [&'static str],
    /// The path of its page.
    pub(crate) page: &'static str,
    pub(crate) running: Alternatives,
    pub(crate) waiting: Alternatives,
    /// Share of the KV cache in use.
    pub(crate) kv_cache: Alternatives,
    /// Prompt tokens that the prefix cache held; a counter.
    pub(crate) cache_hits: Alternatives,
    /// Prompt tokens looked up in it; a counter.
    pub(crate) cache_lookups: Alternatives,
    /// The share of hits, for a server without the counters.
    pub(crate) cache_hit_ratio: Alternatives,
    /// Prompt tokens, cached ones included; a counter.
    pub(crate) prompt_tokens: Alternatives,
    /// Generated tokens; a counter.
    pub(crate) generation_tokens: Alternatives,
    /// Prompt tokens by source, in the order of [`metrics::PROMPT_SOURCES`]; counters.
    pub(crate) prompt_sources: [Alternatives; PROMPT_SOURCES.len()],
    /// Preempted requests; a counter.
    pub(crate) preemptions: Alternatives,
    /// Requests rejected because of a queue limit; a counter.
    pub(crate) admission_rejections: Alternatives,
}

/// The alternative names of a quantity, newest first.
pub(crate) type Alternatives = &'static [Terms];

/// The names whose samples sum to a quantity. The alternative applies if the first name is on the page.
pub(crate) type Terms = &'static [Name];

/// A name, and an optional label that its samples must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    name: &'static str,
    label: Option<(&'static str, &'static str)>,
}

/// Returns a name with all its samples.
pub(crate) const fn all(name: &'static str) -> Name {
    Name { name, label: None }
}

/// Returns a name with the samples that have this label.
pub(crate) const fn with(name: &'static str, label: &'static str, value: &'static str) -> Name {
    Name { name, label: Some((label, value)) }
}

/// Returns a vocabulary without quantities, which each server's vocabulary extends.
pub(crate) const fn empty(kind: ServerKind, prefixes: &'static [&'static str]) -> Vocabulary {
    Vocabulary {
        kind,
        prefixes,
        page: crate::detect::PAGE,
        running: &[],
        waiting: &[],
        kv_cache: &[],
        cache_hits: &[],
        cache_lookups: &[],
        cache_hit_ratio: &[],
        prompt_tokens: &[],
        generation_tokens: &[],
        prompt_sources: [&[]; PROMPT_SOURCES.len()],
        preemptions: &[],
        admission_rejections: &[],
    }
}

/// The values of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PageValues {
    pub(crate) running: Option<f64>,
    pub(crate) waiting: Option<f64>,
    pub(crate) kv_cache: Option<f64>,
    pub(crate) cache_hit_ratio: Option<f64>,
    pub(crate) counters: Counters,
    /// Start of the process, seconds since 1970.
    pub(crate) started: Option<f64>,
}

/// The counters of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    pub(crate) cache_hits: Option<f64>,
    pub(crate) cache_lookups: Option<f64>,
    pub(crate) prompt_tokens: Option<f64>,
    pub(crate) generation_tokens: Option<f64>,
    pub(crate) prompt_sources: [Option<f64>; PROMPT_SOURCES.len()],
    pub(crate) preemptions: Option<f64>,
    pub(crate) admission_rejections: Option<f64>,
}

impl Vocabulary {
    /// Returns true if a page is of this kind.
    pub(crate) fn is_on(&self, page: &Page<'_>) -> bool {
        let has_prefix = |name: &str| self.prefixes.iter().any(|prefix| name.starts_with(prefix));
        page.samples.iter().any(|sample| has_prefix(sample.name))
    }

    /// Returns the values of a page.
    pub(crate) fn read(&self, page: &Page<'_>) -> PageValues {
        PageValues {
            running: sum(page, self.running),
            waiting: sum(page, self.waiting),
            kv_cache: mean(page, self.kv_cache),
            cache_hit_ratio: mean(page, self.cache_hit_ratio),
            counters: Counters {
                cache_hits: sum(page, self.cache_hits),
                cache_lookups: sum(page, self.cache_lookups),
                prompt_tokens: sum(page, self.prompt_tokens),
                generation_tokens: sum(page, self.generation_tokens),
                prompt_sources: self.prompt_sources.map(|alternatives| sum(page, alternatives)),
                preemptions: sum(page, self.preemptions),
                admission_rejections: sum(page, self.admission_rejections),
            },
            started: sum(page, STARTED),
        }
    }
}

fn sum(page: &Page<'_>, alternatives: Alternatives) -> Option<f64> {
    let terms = alternatives.iter().find(|terms| values(page, terms[0]).next().is_some())?;
    Some(terms.iter().flat_map(|name| values(page, *name)).sum())
}

fn mean(page: &Page<'_>, alternatives: Alternatives) -> Option<f64> {
    let terms = alternatives.iter().find(|terms| values(page, terms[0]).next().is_some())?;
    let values: Vec<f64> = terms.iter().flat_map(|name| values(page, *name)).collect();
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Most client libraries export it by default.
const STARTED: Alternatives = &[&[all("process_start_time_seconds")]];

/// Returns the finite values of a name.
fn values<'p>(page: &'p Page<'_>, name: Name) -> impl Iterator<Item = f64> + 'p {
    let named = page.samples.iter().filter(move |sample| sample.name == name.name);
    let selected =
        named.filter(move |sample| name.label.is_none_or(|(label, value)| sample.has(label, value)));
    selected.map(|sample| sample.value).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::{Alternatives, all, mean, sum, with};
    use scrape::Page;

    const PAGE: &str = "new{e=\"0\"} 2\nnew{e=\"1\"} 4\nnew NaN\nold 100\nextra 10\nshare{k=\"used\"} 0.5\n\
                        share{k=\"max\"} 900\nshare{k=\"used\",e=\"1\"} 0.25\nbroken +Inf\n";

    #[test]
    fn newest_name_is_summed_or_averaged() {
        /// Alternatives, with the expected sum and mean.
        const CASES: &[(Alternatives, Option<f64>, Option<f64>)] = &[
            (&[&[all("new")], &[all("old")]], Some(6.0), Some(3.0)),
            (&[&[all("newest")], &[all("old")]], Some(100.0), Some(100.0)),
            (&[&[all("old"), all("extra")]], Some(110.0), Some(55.0)),
            (&[&[all("old"), all("none")]], Some(100.0), Some(100.0)),
            (&[&[all("none"), all("old")]], None, None),
            (&[&[with("share", "k", "used")]], Some(0.75), Some(0.375)),
            (&[&[with("share", "k", "free")]], None, None),
            (&[&[all("broken")]], None, None),
            (&[], None, None),
        ];
        let page = Page::read(PAGE);
        for (alternatives, added, averaged) in CASES {
            assert_eq!(
                (sum(&page, alternatives), mean(&page, alternatives)),
                (*added, *averaged),
                "{alternatives:?}"
            );
        }
    }
}
