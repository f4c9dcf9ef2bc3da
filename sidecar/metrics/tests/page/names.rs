//! The table follows Prometheus' naming rules, and page and table contain the same metrics.

use std::collections::BTreeSet;

use meter::edges::GAP_S;
use metrics::{Format, Kind, LABELS, Metric, Metrics, Options, Semconv, Unit};

use crate::openmetrics;

#[test]
fn every_name_follows_naming_rules() {
    let mut seen = BTreeSet::new();
    for metric in Metric::ALL {
        let entry = metric.entry();
        let name = entry.name;
        assert!(seen.insert(name), "{name} occurs twice");
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.chars().all(allowed) && !name.contains("__") && !name.ends_with('_'), "{name}");
        let prefix = ["tokenmeter_", "gen_ai_server_", "gen_ai_client_", "hw_", "process_"];
        assert!(prefix.iter().any(|prefix| name.starts_with(prefix)), "{name}");
        let base = name.strip_suffix("_total");
        assert_eq!(
            base.is_some(),
            entry.kind == Kind::Counter,
            "{name}: every counter, and only a counter, ends in _total"
        );
        let base = base.unwrap_or(name);
        match entry.unit.suffix() {
            Some(unit) => assert!(base.ends_with(&format!("_{unit}")), "{name} is in {unit}"),
            None => {
                let units = [
                    "_seconds",
                    "_milliseconds",
                    "_bytes",
                    "_ratio",
                    "_percent",
                    "_per_second",
                    "_joules",
                    "_watts",
                    "_celsius",
                    "_hertz",
                    "_usd",
                ];
                assert!(!units.iter().any(|unit| base.ends_with(unit)), "{name} claims a unit");
            }
        }
        for reserved in ["_count", "_sum", "_bucket", "_created"] {
            assert!(!base.ends_with(reserved), "{name}");
        }
    }
}

#[test]
fn described_labels_are_the_used_ones() {
    let described: BTreeSet<_> = LABELS.iter().map(|label| label.name).collect();
    assert_eq!(described.len(), LABELS.len());
    let used: BTreeSet<_> = Metric::ALL.iter().flat_map(|metric| metric.entry().labels).copied().collect();
    assert_eq!(described, used);
    assert!(
        used.iter()
            .all(|label| !label.starts_with("__") && !["le", "quantile", "job", "instance"].contains(label))
    );
    for metric in Metric::ALL {
        let labels: BTreeSet<_> = metric.entry().labels.iter().collect();
        assert_eq!(labels.len(), metric.entry().labels.len());
    }
}

#[test]
fn every_meaning_is_one_sentence() {
    for metric in Metric::ALL {
        let meaning = metric.entry().meaning;
        assert!(meaning.ends_with('.') && !meaning.contains(['\n', '\\', '|']), "{meaning}");
        assert!(!meaning.starts_with(char::is_lowercase) && !meaning.contains(". "), "{meaning}");
    }
}

#[test]
fn every_histogram_has_rising_edges() {
    for metric in Metric::ALL {
        let Kind::Histogram(edges) = metric.entry().kind else { continue };
        assert!(edges.iter().all(|edge| edge.is_finite() && *edge > 0.0), "{metric:?}");
        assert!(edges.is_sorted_by(|a, b| a < b), "{metric:?}");
        assert!(
            matches!(metric.entry().unit, Unit::Seconds | Unit::PerSecond | Unit::Joules | Unit::Tokens),
            "{metric:?}: its sum's scale"
        );
    }
    // An exchange keeps its gaps in these buckets.
    for metric in [Metric::InterToken, Metric::ChunkGap] {
        assert_eq!(metric.entry().kind, Kind::Histogram(&GAP_S));
    }
}

#[test]
fn page_has_exactly_the_metrics_of_table() {
    let families = |semconv| {
        let page = openmetrics::read(&Metrics::new(Options { semconv, ..Options::default() }).text());
        page.families
    };
    let mut all = families(Semconv::Both);
    for (at, family) in families(Semconv::Client).into_iter().enumerate() {
        if !all.iter().any(|known| known.name == family.name) {
            all.insert(at, family);
        }
    }
    assert_eq!(all.len(), Metric::ALL.len());
    for (family, metric) in all.iter().zip(Metric::ALL) {
        let entry = metric.entry();
        let counted = if entry.kind == Kind::Counter { "_total" } else { "" };
        assert_eq!(format!("{}{counted}", family.name), entry.name);
        assert_eq!(family.kind, entry.kind.name());
        assert_eq!(family.help.as_deref(), Some(entry.meaning));
        let without = [Unit::PerSecond, Unit::Ratio, Unit::Usd, Unit::Money].contains(&entry.unit);
        let unit = entry.unit.suffix().filter(|_| !without);
        assert_eq!(family.unit.as_deref(), unit, "{}", entry.name);
    }
}

/// Cells are indexed by `as usize` and the page by `ALL`, which must agree.
#[test]
fn closed_lists_are_in_order_of_declaration() {
    fn in_order<T: Copy>(all: &[T], index: impl Fn(T) -> usize) {
        assert!(all.iter().enumerate().all(|(at, one)| index(*one) == at));
    }
    in_order(&meter::Ending::ALL, |one| one as usize);
    in_order(&meter::Provenance::ALL, |one| one as usize);
    in_order(&meter::TokenType::ALL, |one| one as usize);
    in_order(&[meter::Weight::Exact, meter::Weight::Spread], |one| one as usize);
    in_order(&meter::Passthrough::ALL, |one| one as usize);
    in_order(&meter::Refusal::ALL, |one| one as usize);
    in_order(&meter::Dropped::ALL, |one| one as usize);
    in_order(&meter::RuleKind::ALL, |one| one as usize);
    in_order(&meter::TokenRejection::ALL, |one| one as usize);
    in_order(&metrics::Verdict::ALL, |one| one as usize);
    in_order(&metrics::Basis::ALL, |one| one as usize);
    in_order(&metrics::ReloadedFile::ALL, |one| one as usize);
    in_order(&Format::ALL, |one| one as usize);
    in_order(Metric::ALL, |one| one as usize);
}

#[test]
fn new_process_exports_informative_zeros() {
    let metrics = Metrics::new(Options::default());
    let _worker = metrics.worker();
    let page = openmetrics::read(&metrics.text());
    let zeros =
        |name: &str| page.samples.iter().filter(|(series, n)| series.name == name && **n == 0.0).count();
    assert_eq!(zeros("tokenmeter_exchanges_in_flight"), 1);
    assert_eq!(zeros("tokenmeter_passthrough_total"), meter::Passthrough::ALL.len());
    assert_eq!(zeros("tokenmeter_tenant_rule_total"), meter::RuleKind::ALL.len());
    assert_eq!(zeros("tokenmeter_untrusted_tenant_headers_total"), 1);
    assert_eq!(zeros("tokenmeter_untrusted_tenant_tokens_total"), meter::TokenRejection::ALL.len());
    assert_eq!(zeros("tokenmeter_refused_total"), meter::Refusal::ALL.len());
    assert_eq!(zeros("tokenmeter_dropped_total"), meter::Dropped::ALL.len() + 1);
    assert_eq!(page.get("tokenmeter_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), Some(1.0));
    if cfg!(target_os = "linux") {
        assert!(page.get("process_resident_memory_bytes", &[]).unwrap() > 1e5);
        assert!(page.get("process_start_time_seconds", &[]).unwrap() > 1.6e9);
        assert!(page.get("process_open_fds", &[]).unwrap() >= 3.0);
        assert!(page.get("process_cpu_seconds_total", &[]).is_some());
    }
}
