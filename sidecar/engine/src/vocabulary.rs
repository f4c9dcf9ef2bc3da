//! One vocabulary for every server, and how a server's names are read into it.
//!
//! The law: a quantity is read under the newest name the page has, or it is absent. Samples of
//! several models or engines are added, shares are averaged.

use metrics::PROMPT_SOURCES;
use relay::Kind;

use scrape::Page;

/// How one kind of server says things. A quantity it does not say has no way.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub(crate) kind: Kind,
    /// How its names begin.
    pub(crate) prefixes: &'static [&'static str],
    /// Where its page is.
    pub(crate) page: &'static str,
    pub(crate) running: Ways,
    pub(crate) waiting: Ways,
    /// Share of the KV cache in use.
    pub(crate) kv_cache: Ways,
    /// Prompt tokens the prefix cache had; a counter.
    pub(crate) cache_hits: Ways,
    /// Prompt tokens looked up in it; a counter.
    pub(crate) cache_lookups: Ways,
    /// The share of hits, where the server only states that.
    pub(crate) cache_hit_ratio: Ways,
    /// Prompt tokens, cached ones included; a counter.
    pub(crate) prompt_tokens: Ways,
    /// Generated tokens; a counter.
    pub(crate) generation_tokens: Ways,
    /// Prompt tokens by where they came from, in the order of [`metrics::PROMPT_SOURCES`]; counters.
    pub(crate) prompt_sources: [Ways; PROMPT_SOURCES.len()],
    /// Requests put back into the queue; a counter.
    pub(crate) preemptions: Ways,
    /// Requests turned away for a limit of the queue; a counter.
    pub(crate) admission_rejections: Ways,
}

/// The names a quantity has had, newest first.
pub(crate) type Ways = &'static [Way];

/// The names whose samples add up to a quantity. It is said this way if the first is on the page.
pub(crate) type Way = &'static [Name];

/// A name, and a label that its samples must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    name: &'static str,
    label: Option<(&'static str, &'static str)>,
}

/// All samples of that name.
pub(crate) const fn all(name: &'static str) -> Name {
    Name { name, label: None }
}

/// The samples of that name with this label.
pub(crate) const fn with(name: &'static str, label: &'static str, value: &'static str) -> Name {
    Name { name, label: Some((label, value)) }
}

/// A vocabulary without a word; what a server says is put in its place.
pub(crate) const fn silent(kind: Kind, prefixes: &'static [&'static str]) -> Vocabulary {
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

/// What a page says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) running: Option<f64>,
    pub(crate) waiting: Option<f64>,
    pub(crate) kv_cache: Option<f64>,
    pub(crate) cache_hit_ratio: Option<f64>,
    pub(crate) counters: Counters,
    /// When the process started, seconds since 1970.
    pub(crate) started: Option<f64>,
}

/// Its counters, as they stand.
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
    /// Whether a page is this kind's.
    pub(crate) fn is_on(&self, page: &Page<'_>) -> bool {
        let ours = |name: &str| self.prefixes.iter().any(|prefix| name.starts_with(prefix));
        page.samples.iter().any(|sample| ours(sample.name))
    }

    /// What a page says in it.
    pub(crate) fn read(&self, page: &Page<'_>) -> Said {
        Said {
            running: sum(page, self.running),
            waiting: sum(page, self.waiting),
            kv_cache: mean(page, self.kv_cache),
            cache_hit_ratio: mean(page, self.cache_hit_ratio),
            counters: Counters {
                cache_hits: sum(page, self.cache_hits),
                cache_lookups: sum(page, self.cache_lookups),
                prompt_tokens: sum(page, self.prompt_tokens),
                generation_tokens: sum(page, self.generation_tokens),
                prompt_sources: self.prompt_sources.map(|ways| sum(page, ways)),
                preemptions: sum(page, self.preemptions),
                admission_rejections: sum(page, self.admission_rejections),
            },
            started: sum(page, STARTED),
        }
    }
}

fn sum(page: &Page<'_>, ways: Ways) -> Option<f64> {
    let way = ways.iter().find(|way| values(page, way[0]).next().is_some())?;
    Some(way.iter().flat_map(|name| values(page, *name)).sum())
}

fn mean(page: &Page<'_>, ways: Ways) -> Option<f64> {
    let way = ways.iter().find(|way| values(page, way[0]).next().is_some())?;
    let values: Vec<f64> = way.iter().flat_map(|name| values(page, *name)).collect();
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// The client libraries of most languages say so by themselves.
const STARTED: Ways = &[&[all("process_start_time_seconds")]];

/// The values of a name. One that is no number says nothing.
fn values<'p>(page: &'p Page<'_>, name: Name) -> impl Iterator<Item = f64> + 'p {
    let named = page.samples.iter().filter(move |sample| sample.name == name.name);
    let meant = named.filter(move |sample| name.label.is_none_or(|(label, value)| sample.has(label, value)));
    meant.map(|sample| sample.value).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::{Ways, all, mean, sum, with};
    use scrape::Page;

    const PAGE: &str = "new{e=\"0\"} 2\nnew{e=\"1\"} 4\nnew NaN\nold 100\nextra 10\nshare{k=\"used\"} 0.5\n\
                        share{k=\"max\"} 900\nshare{k=\"used\",e=\"1\"} 0.25\nbroken +Inf\n";

    #[test]
    fn the_newest_name_counts_and_label_sets_are_added_or_averaged() {
        /// Ways, and what the page comes to by them: added, averaged.
        const CASES: &[(Ways, Option<f64>, Option<f64>)] = &[
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
        for (ways, added, averaged) in CASES {
            assert_eq!((sum(&page, ways), mean(&page, ways)), (*added, *averaged), "{ways:?}");
        }
    }
}
