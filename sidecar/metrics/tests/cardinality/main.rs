//! A million invented names of models and tenants: the series stay within the caps, the totals are exact and memory
//! does not grow. It runs in a process of its own, because it measures memory.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report; clippy knows only #[test] functions"
)]

use meter::Observer;
use metrics::{Basis, Metrics, Objective, Options};

use openmetrics::Page;
use records::plain;
use resident::resident_kib;

#[path = "../page/openmetrics.rs"]
mod openmetrics;
#[expect(dead_code, reason = "shared with the tests of the page")]
#[path = "../page/records.rs"]
mod records;
#[path = "../page/resident.rs"]
mod resident;

const NAMES: u64 = 1_000_000;
const MODELS: usize = 50;
const TENANTS: usize = 100;

/// Writes an invented name. Some names repeat, most do not.
fn name(at: u64, random: u64, name: &mut String) {
    name.clear();
    match at % 11 {
        0 => {}
        1 => name.push_str("__name__"),
        2 => name.push_str("_other"),
        3 => *name = format!("say \"{random:x}\""),
        4 => *name = format!("two\nlines {random:x}\r\t"),
        5 => *name = format!("模型-{random:x}-😀"),
        6 => *name = format!("a{{b=\"{random:x}\"}} 1 # EOF"),
        7 => *name = format!("\0{random:x}\\"),
        // Any characters.
        8 => name.extend((0..8).filter_map(|at| char::from_u32((random >> (at * 7)) as u32 & 0x1f_ffff))),
        9 if at % 100 == 9 => {
            *name = format!("{random:x}");
            name.extend(std::iter::repeat_n("ü", 50_000));
        }
        _ => *name = format!("model-{random:016x}"),
    }
}

#[test]
fn million_names_stay_within_caps() {
    let before = resident_kib();
    let objective = Objective {
        name: "all".into(),
        models: Vec::new(),
        tenants: Vec::new(),
        first_token_ns: 1_000_000_000,
        output_rate: 30.0,
        target_ratio: 0.99,
    };
    let metrics = Metrics::new(Options { models: MODELS, objectives: vec![objective], ..Options::default() });
    let mut workers = [metrics.worker(), metrics.worker()];
    let (mut random, mut text) = (1u64, String::with_capacity(101 << 10));
    let mut record = plain("by another name");
    for at in 0..NAMES {
        // A full-period generator.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        name(at, random, &mut text);
        let worker = &mut workers[(at % 2) as usize];
        let slot = worker.model(&text);
        worker.begin(slot);
        worker.live(slot, 11, 0);
        // The kinds of names of tenants and models are independent.
        name(at + 5, random.rotate_left(17), &mut text);
        record.identity.tenant = text.as_str().into();
        worker.end(slot, &record);
        metrics.charge(&text, "by another name", Basis::Price, 1_000_000_000_000);
    }
    let page = openmetrics::read(&metrics.text());
    let grown = resident_kib().saturating_sub(before);
    println!("{grown} KiB more for {NAMES} names, {} series", page.samples.len());
    assert!(grown < 32 * 1024, "{grown} KiB");

    assert_eq!(labels(&page, "model"), MODELS + 2, "the cap, _other and _unknown");
    assert_eq!(labels(&page, "tenant"), TENANTS + 2, "the cap, _other and _unknown");
    let all = NAMES as f64;
    assert_eq!(page.sum("tokenmeter_exchanges_total"), all);
    assert_eq!(page.sum("tokenmeter_exchanges_in_flight"), 0.0);
    assert_eq!(page.sum("tokenmeter_tokens_total"), all * 31.0);
    assert_eq!(page.sum("tokenmeter_live_output_tokens_total"), all * 11.0);
    assert_eq!(page.sum("tokenmeter_time_to_first_token_seconds_count"), all);
    assert_eq!(page.sum("gen_ai_client_inference_usage_input_tokens_total"), all * 20.0);
    // Every exchange is under its own label, beyond the cap, or without a name; the name `_other` is no overflow.
    let own = |label: &str| exchanges(&page, label);
    let named_other = (0..NAMES).filter(|at| at % 11 == 2).count() as f64;
    let tenants_named_other = (0..NAMES).filter(|at| (at + 5) % 11 == 2).count() as f64;
    let overflow = page.get("tokenmeter_dropped_total", &[("what", "label_overflow")]).unwrap();
    let beyond = own("_other") - named_other + of_tenant(&page, "_other") - tenants_named_other;
    assert_eq!(beyond, overflow);
    assert_eq!(page.sum("tokenmeter_objective_exchanges_total"), all);
    assert_eq!(page.sum("tokenmeter_tenant_objective_exchanges_total"), all);
    assert_eq!(page.sum("tokenmeter_tenant_exchanges_total"), all);
    assert_eq!(page.sum("tokenmeter_tenant_tokens_total"), all * 31.0);
    assert_eq!(page.sum("tokenmeter_tenant_spend_usd_total"), all);
    assert_eq!(page.sum("tokenmeter_model_spend_usd_total"), all);
    for tenant in ["_other", "_unknown", "\u{fffd}_name__"] {
        let labels = [("tenant", tenant), ("basis", "price")];
        let spend = page.get("tokenmeter_tenant_spend_usd_total", &labels);
        assert_eq!(spend, Some(of_tenant(&page, tenant)), "{tenant}: each exchange cost a dollar");
    }
    assert_eq!(
        of_tenant(&page, "\u{fffd}_name__"),
        (0..NAMES).filter(|at| (at + 5) % 11 == 1).count() as f64
    );
    assert_eq!(own("_unknown"), (0..NAMES).filter(|at| at % 11 == 0).count() as f64);
    assert_eq!(own("\u{fffd}_name__"), (0..NAMES).filter(|at| at % 11 == 1).count() as f64);
}

fn exchanges(page: &Page, model: &str) -> f64 {
    let labels =
        [("model", model), ("upstream", "gpu-1"), ("dialect", "openai_chat"), ("ending", "complete")];
    page.get("tokenmeter_exchanges_total", &labels).unwrap()
}

fn of_tenant(page: &Page, tenant: &str) -> f64 {
    let labels = [("tenant", tenant), ("objective", "all"), ("verdict", "met")];
    page.get("tokenmeter_tenant_objective_exchanges_total", &labels).unwrap()
}

/// Returns the number of values of a label.
fn labels(page: &Page, label: &str) -> usize {
    let values: std::collections::BTreeSet<_> =
        page.samples.keys().filter_map(|series| series.labels.get(label)).collect();
    values.len()
}
