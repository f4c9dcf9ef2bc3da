//! A strict reader of OpenMetrics 1.0 text, which rejects everything unknown. It is written from the specification and
//! not from the encoder, so that it finds errors of the encoder.

use std::collections::{BTreeMap, BTreeSet};

/// A parsed page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Families in the order of the page: name, type, unit.
    pub(crate) families: Vec<Family>,
    /// Every sample's value.
    pub(crate) samples: BTreeMap<Series, f64>,
    /// By bucket.
    pub(crate) exemplars: BTreeMap<Series, Exemplar>,
}

/// One observation of a bucket with its trace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exemplar {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
    /// Seconds since 1970.
    pub(crate) at: f64,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) unit: Option<String>,
    pub(crate) help: Option<String>,
    /// The number of its samples.
    pub(crate) samples: usize,
}

/// The identity of a sample.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// By name. An edge `le` is formatted as Rust formats the number.
    pub(crate) labels: BTreeMap<String, String>,
}

impl Series {
    pub(crate) fn new(name: &str, labels: &[(&str, &str)]) -> Self {
        let labels = labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Self { name: name.to_owned(), labels }
    }

    /// Returns the upper edge of a bucket.
    fn edge(&self) -> Option<f64> {
        let edge = self.labels.get("le")?;
        Some(if edge == "+Inf" { f64::INFINITY } else { edge.parse().unwrap() })
    }

    /// Returns the series with another suffix and without an edge.
    fn sibling(&self, from: &str, to: &str) -> Self {
        let mut labels = self.labels.clone();
        labels.remove("le");
        Self { name: format!("{}{to}", self.name.strip_suffix(from).unwrap()), labels }
    }
}

impl Page {
    /// Returns the value of a sample, if it exists.
    pub(crate) fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.samples.get(&Series::new(name, labels)).copied()
    }

    /// Returns the sum over all samples of a name.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.samples.iter().filter(|(series, _)| series.name == name).map(|(_, value)| value).sum()
    }
}

/// Parses a page; panics with the invalid line.
pub(crate) fn read(text: &str) -> Page {
    let body = text.strip_suffix("# EOF\n").expect("a page ends with # EOF and a line feed");
    assert!(!text.contains('\0'), "some scrapers end at a NUL");
    let mut page = Page::default();
    for line in body.split_terminator('\n') {
        match line.strip_prefix("# ") {
            Some(comment) => describe(&mut page, comment),
            None => sample(&mut page, line),
        }
    }
    let names: BTreeSet<_> = page.families.iter().map(|family| &family.name).collect();
    assert_eq!(names.len(), page.families.len(), "a family appears twice");
    histograms(&page);
    page
}

fn describe(page: &mut Page, comment: &str) {
    let mut words = comment.splitn(3, ' ');
    let (what, name, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    assert!(is_name(name), "{comment:?}");
    if page.families.last().is_none_or(|family| family.name != name) {
        page.families.push(Family { name: name.to_owned(), ..Family::default() });
    }
    let family = page.families.last_mut().unwrap();
    assert_eq!(family.samples, 0, "{comment:?} comes after samples");
    match what {
        "HELP" => assert!(family.help.replace(rest.to_owned()).is_none()),
        "TYPE" => {
            assert!(["counter", "gauge", "histogram"].contains(&rest), "{comment:?}");
            assert!(family.kind.is_empty());
            rest.clone_into(&mut family.kind);
        }
        "UNIT" => {
            assert!(name.ends_with(&format!("_{rest}")), "{comment:?}: a unit is the name's suffix");
            assert!(family.unit.replace(rest.to_owned()).is_none());
        }
        _ => panic!("neither HELP, TYPE nor UNIT: {comment:?}"),
    }
}

fn sample(page: &mut Page, line: &str) {
    let (series, value, exemplar) = split(line);
    let family = page.families.last_mut().unwrap_or_else(|| panic!("no family above {line:?}"));
    let suffix = series.name.strip_prefix(family.name.as_str());
    let suffix = suffix.unwrap_or_else(|| panic!("strange to its family: {line:?}"));
    let allowed: &[&str] = match family.kind.as_str() {
        "counter" => &["_total"],
        "gauge" => &[""],
        _ => &["_sum", "_count", "_bucket"],
    };
    assert!(allowed.contains(&suffix), "{line:?} in a {}", family.kind);
    assert_eq!(suffix == "_bucket", series.edge().is_some(), "{line:?}");
    assert!(value >= 0.0 || family.name.ends_with("_drift_tokens"), "only a drift may be negative: {line:?}");
    if let Some(exemplar) = exemplar {
        let length: usize =
            exemplar.labels.iter().flat_map(|(name, value)| [name, value]).map(|s| s.chars().count()).sum();
        assert!(length <= 128, "an exemplar of {length} characters: {line:?}");
        let upper = series.edge().unwrap_or_else(|| panic!("an exemplar that is in no bucket: {line:?}"));
        assert!(exemplar.value <= upper, "{line:?}");
        page.exemplars.insert(series.clone(), exemplar);
    }
    family.samples += 1;
    assert!(page.samples.insert(series, value).is_none(), "twice on one page: {line:?}");
}

/// Splits a line into `name`, `{label="value",…}`, a number and an optional exemplar, without any other text.
fn split(line: &str) -> (Series, f64, Option<Exemplar>) {
    let end = line.find([' ', '{']).unwrap_or_else(|| panic!("no value: {line:?}"));
    let (name, rest) = line.split_at(end);
    assert!(is_name(name), "{line:?}");
    let (mut labels, rest) = split_labels(rest, line);
    let rest = rest.strip_prefix(' ').unwrap_or_else(|| panic!("no value: {line:?}"));
    let (value, exemplar) = match rest.split_once(" # ") {
        Some((value, exemplar)) => (value, Some(split_exemplar(exemplar, line))),
        None => (rest, None),
    };
    if let Some(edge) = labels.get_mut("le").filter(|edge| *edge != "+Inf") {
        *edge = edge.parse::<f64>().unwrap_or_else(|_| panic!("not an edge: {line:?}")).to_string();
    }
    (Series { name: name.to_owned(), labels }, number(value, line), exemplar)
}

fn split_exemplar(text: &str, line: &str) -> Exemplar {
    let (labels, rest) = split_labels(text, line);
    let (value, at) = rest.trim_start().split_once(' ').unwrap_or_else(|| panic!("no time: {line:?}"));
    Exemplar { labels, value: number(value, line), at: number(at, line) }
}

/// Returns the labels of `{label="value",…}`, if there are any, and the rest.
fn split_labels<'a>(text: &'a str, line: &str) -> (BTreeMap<String, String>, &'a str) {
    let mut labels = BTreeMap::new();
    let Some(mut rest) = text.strip_prefix('{') else { return (labels, text) };
    loop {
        let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line:?}"));
        assert!(is_name(label) && !label.contains(':'), "{line:?}");
        let (value, after) = unescape(after);
        assert!(labels.insert(label.to_owned(), value).is_none(), "a label appears twice: {line:?}");
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => {
                let rest = after.strip_prefix('}').unwrap_or_else(|| panic!("labels end oddly: {line:?}"));
                return (labels, rest);
            }
        }
    }
}

fn number(text: &str, line: &str) -> f64 {
    let written = |c: char| c.is_ascii_digit() || ['.', 'e', '-', '+'].contains(&c);
    assert!(text.chars().all(written), "{line:?}");
    text.parse().unwrap_or_else(|_| panic!("not a number: {line:?}"))
}

/// Returns a quoted value and the text after its closing quote.
fn unescape(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match chars.next().map(|(_, c)| c) {
                Some('n') => '\n',
                Some('\\') => '\\',
                Some('"') => '"',
                other => panic!("not an escape: {other:?}"),
            }),
            c => value.push(c),
        }
    }
    panic!("no closing quote: {text:?}")
}

/// Checks that buckets are cumulative, and that the last one is open and equals the count.
fn histograms(page: &Page) {
    let mut buckets: BTreeMap<Series, Vec<(f64, f64)>> = BTreeMap::new();
    for (series, value) in &page.samples {
        if let Some(edge) = series.edge() {
            buckets.entry(series.sibling("_bucket", "_count")).or_default().push((edge, *value));
        }
    }
    for (count, mut buckets) in buckets {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{count:?} {buckets:?}");
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, page.samples[&count])), "{count:?}");
        assert!(page.samples.contains_key(&count.sibling("_count", "_sum")), "{count:?}");
    }
    let counts = page.samples.keys().filter(|series| series.name.ends_with("_count")).count();
    let sums = page.samples.keys().filter(|series| series.name.ends_with("_sum")).count();
    assert_eq!(counts, sums);
}

fn is_name(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && name.chars().all(rest) && !name.starts_with(|c: char| c.is_ascii_digit())
}
