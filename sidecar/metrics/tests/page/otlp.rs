//! Names in OTLP. The naive translation is OpenTelemetry's "Prometheus and OpenMetrics
//! Compatibility" as a backend applies it (`UnderscoreEscapingWithSuffixes`), rule by rule.

use std::collections::BTreeSet;

use metrics::{Currency, Instrument, Kind, Metric, attribute};

/// Returns the name in Prometheus of a metric received by OTLP.
fn translated(name: &str, unit: &str, instrument: Instrument) -> String {
    let mut words: Vec<String> = words(name);
    // An annotation is not a unit.
    let unit = match (unit.find('{'), unit.find('}')) {
        (Some(from), Some(to)) => format!("{}{}", &unit[..from], &unit[to + 1..]),
        _ => unit.to_owned(),
    };
    let (main, per) = unit.split_once('/').unwrap_or((&unit, ""));
    for word in
        [word(main).to_owned(), if per.is_empty() { String::new() } else { format!("per_{}", singular(per)) }]
    {
        if !word.is_empty() && !words.join("_").split('_').any(|known| known == word) {
            words.push(word);
        }
    }
    if unit == "1" && instrument == Instrument::Gauge {
        words.retain(|word| word != "ratio");
        words.push("ratio".to_owned());
    }
    if instrument == Instrument::Counter {
        words.retain(|word| word != "total");
        words.push("total".to_owned());
    }
    words.join("_")
}

/// Returns the parts of a name between the characters that Prometheus does not allow.
fn words(name: &str) -> Vec<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == ':';
    name.split(|c| !allowed(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn word(unit: &str) -> &str {
    match unit {
        "s" => "seconds",
        "By" => "bytes",
        "J" => "joules",
        "W" => "watts",
        "Cel" => "celsius",
        "Hz" => "hertz",
        "1" | "" => "",
        other => panic!("a unit that the translation has no word for: {other}"),
    }
}

fn singular(per: &str) -> &str {
    match per {
        "s" => "second",
        other => panic!("a rate that the translation has no word for: {other}"),
    }
}

#[test]
fn translation_follows_known_examples() {
    for (name, unit, instrument, prometheus) in [
        (
            "gen_ai.server.time_to_first_token",
            "s",
            Instrument::Histogram,
            "gen_ai_server_time_to_first_token_seconds",
        ),
        ("hw.gpu.utilization", "1", Instrument::Gauge, "hw_gpu_utilization_ratio"),
        ("hw.energy", "J", Instrument::Counter, "hw_energy_joules_total"),
        ("hw.status", "1", Instrument::UpDownCounter, "hw_status"),
        ("a.token.rate", "{token}/s", Instrument::Histogram, "a_token_rate_per_second"),
        ("a.total", "{token}", Instrument::Counter, "a_total"),
    ] {
        assert_eq!(translated(name, unit, instrument), prometheus);
    }
}

#[test]
fn translated_metric_has_name_of_page() {
    let euro = Currency::new("EUR").unwrap();
    let mut names = BTreeSet::new();
    for metric in Metric::ALL {
        let entry = metric.entry();
        let (name, unit, instrument) = (entry.otlp_name(), entry.otlp_unit(), entry.instrument());
        assert_eq!(translated(name, unit, instrument), entry.name, "{name} in {unit}");
        let (euros, unit_in) = (entry.otlp_name_in(euro), entry.otlp_unit_in(euro));
        assert_eq!(translated(&euros, &unit_in, instrument), entry.name_in(euro), "{euros} in {unit_in}");
        assert!(names.insert(name), "{name} occurs twice");
        assert_ne!(unit, "{thing}", "{name}: list what it counts in table/otlp.rs");
        let fits = match entry.kind {
            Kind::Counter => instrument == Instrument::Counter,
            Kind::Gauge => [Instrument::Gauge, Instrument::UpDownCounter].contains(&instrument),
            Kind::Histogram(_) => instrument == Instrument::Histogram,
        };
        assert!(fits, "{name}: {instrument:?}");
        assert!(unit != "1" || instrument == Instrument::Gauge, "{name}: backends differ over _ratio");
        let first = name.chars().next().unwrap();
        let allowed = |c: char| c.is_ascii_alphanumeric() || ['_', '.', '-', '/'].contains(&c);
        assert!(first.is_ascii_alphabetic() && name.chars().all(allowed) && name.len() <= 255, "{name}");
    }
}

#[test]
fn translated_label_has_name_of_page() {
    for metric in Metric::ALL {
        for label in metric.entry().labels {
            assert_eq!(words(attribute(label)).join("_"), *label);
        }
    }
}
