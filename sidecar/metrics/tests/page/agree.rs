//! For any observations of several workers in any order, the page agrees with the naive twin.

use std::io;

use meter::Record;
use meter::{Class, Dropped, ModelSlot, Observer, Passthrough, Refusal, Stated, UsageStep};
use meter::{RuleKind, TokenRejection};
use metrics::{Basis, Format, Metric, Metrics, Options, Semconv, UNPRICED, Upstream, WorkerCells};
use proptest::prelude::*;

use crate::openmetrics;
use crate::random::any_record;
use crate::records::plain;
use crate::twin::{Twin, objectives};

const WORKERS: usize = 3;
const MODELS: [&str; 4] = ["llama-3", "qwen3-8b", "mistral", "über-\"modell\"\\"];

#[derive(Clone, Debug)]
enum Step {
    Begin,
    Admit(usize),
    Live(usize, u64, u64),
    End(usize, Box<Record>),
    Pass(Passthrough),
    Mislabelled(Stated),
    Refuse(Refusal),
    TenantRefusal(&'static str, Refusal),
    Usage(UsageStep),
    Tenant(RuleKind, bool, Option<TokenRejection>),
    Charge(&'static str, usize, Basis, u64),
    Unpriced(usize, &'static str),
    Lose(Dropped, u64),
    Overhead(Class, u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Begin),
        4 => (0..MODELS.len()).prop_map(Step::Admit),
        4 => (0..MODELS.len(), 0u64..100, prop_oneof![3 => Just(0), 1 => 0u64..200])
            .prop_map(|(model, tokens, overcount)| Step::Live(model, tokens, overcount)),
        6 => (any::<usize>(), any_record()).prop_map(|(which, record)| Step::End(which, Box::new(record))),
        1 => prop::sample::select(Passthrough::ALL.to_vec()).prop_map(Step::Pass),
        1 => prop::sample::select(Stated::ALL.to_vec()).prop_map(Step::Mislabelled),
        1 => prop::sample::select(Refusal::ALL.to_vec()).prop_map(Step::Refuse),
        1 => (prop::sample::select(vec!["default", "gold", "silver"]), prop::sample::select(Refusal::ALL.to_vec()))
            .prop_map(|(tenant, reason)| Step::TenantRefusal(tenant, reason)),
        1 => prop::sample::select(UsageStep::ALL.to_vec()).prop_map(Step::Usage),
        1 => (
            prop::sample::select(RuleKind::ALL.to_vec()),
            any::<bool>(),
            prop::option::of(prop::sample::select(TokenRejection::ALL.to_vec())),
        )
            .prop_map(|(rule, untrusted, why)| Step::Tenant(rule, untrusted, why)),
        2 => (
            prop::sample::select(vec!["default", "gold", "silver"]),
            0..MODELS.len(),
            prop::sample::select(Basis::ALL.to_vec()),
            0u64..5_000_000_000_000,
        )
            .prop_map(|(tenant, model, basis, pico)| Step::Charge(tenant, model, basis, pico)),
        1 => (0..MODELS.len(), prop::sample::select(UNPRICED.to_vec()))
            .prop_map(|(model, reason)| Step::Unpriced(model, reason)),
        1 => (prop::sample::select(Dropped::ALL.to_vec()), 1u64..9).prop_map(|(what, n)| Step::Lose(what, n)),
        1 => (prop::sample::select(Class::ALL.to_vec()), 1u64..1_000_000)
            .prop_map(|(class, ns)| Step::Overhead(class, ns)),
    ]
}

/// One worker and its exchanges in flight, as label and slot.
struct Worker {
    cells: WorkerCells,
    open: Vec<(&'static str, ModelSlot)>,
}

fn play(at: usize, metrics: &Metrics, worker: &mut Worker, step: &Step, twin: &mut Twin) {
    let cells = &mut worker.cells;
    match step {
        Step::Begin => {
            let slot = cells.unknown_model();
            cells.begin(slot);
            worker.open.push(("_unknown", slot));
            twin.add("tokenmeter_exchanges_in_flight", &[("model", "_unknown")], 1.0);
        }
        Step::Admit(model) => {
            let Some(exchange) = worker.open.iter_mut().find(|(label, _)| *label == "_unknown") else {
                return;
            };
            let to = cells.model(MODELS[*model]);
            cells.admit(exchange.1, to);
            *exchange = (MODELS[*model], to);
            twin.add("tokenmeter_exchanges_in_flight", &[("model", "_unknown")], -1.0);
            twin.add("tokenmeter_exchanges_in_flight", &[("model", MODELS[*model])], 1.0);
        }
        Step::Live(model, tokens, overcount) => {
            let slot = cells.model(MODELS[*model]);
            cells.live(slot, *tokens, *overcount);
            twin.live(at, MODELS[*model], *tokens, *overcount);
        }
        Step::End(which, record) => {
            if worker.open.is_empty() {
                return;
            }
            let (label, slot) = worker.open.swap_remove(which % worker.open.len());
            cells.end(slot, record);
            twin.end(label, record);
            twin.objective(label, record);
        }
        Step::Pass(reason) => {
            cells.passthrough(*reason);
            twin.add("tokenmeter_passthrough_total", &[("reason", reason.name())], 1.0);
        }
        Step::Mislabelled(stated) => {
            cells.mislabelled(*stated);
            twin.add("tokenmeter_mislabelled_responses_total", &[("stated", stated.name())], 1.0);
        }
        Step::Refuse(reason) => {
            cells.refuse(*reason);
            twin.add("tokenmeter_refused_total", &[("reason", reason.name())], 1.0);
        }
        Step::TenantRefusal(tenant, reason) => {
            cells.reject(tenant, *reason);
            let labels = [("tenant", *tenant), ("reason", reason.name())];
            twin.add("tokenmeter_tenant_refused_total", &labels, 1.0);
        }
        Step::Usage(step) => {
            cells.usage(*step);
            twin.add("tokenmeter_usage_steps_total", &[("step", step.name())], 1.0);
        }
        Step::Tenant(rule, untrusted, distrust) => {
            cells.tenant(*rule);
            twin.add("tokenmeter_tenant_rule_total", &[("rule", rule.name())], 1.0);
            if *untrusted {
                cells.untrusted_header();
                twin.add("tokenmeter_untrusted_tenant_headers_total", &[], 1.0);
            }
            if let Some(why) = distrust {
                cells.untrusted_token(*why);
                twin.add("tokenmeter_untrusted_tenant_tokens_total", &[("reason", why.name())], 1.0);
            }
        }
        Step::Charge(tenant, model, basis, pico) => {
            // A worker meets a model before the model is charged.
            cells.model(MODELS[*model]);
            metrics.charge(tenant, MODELS[*model], *basis, i128::from(*pico));
            twin.charge(tenant, MODELS[*model], basis.name(), *pico);
        }
        Step::Unpriced(model, reason) => {
            cells.model(MODELS[*model]);
            metrics.unpriced(MODELS[*model], reason);
            let labels = [("model", MODELS[*model]), ("reason", *reason)];
            twin.add("tokenmeter_unpriced_exchanges_total", &labels, 1.0);
        }
        Step::Lose(what, n) => {
            cells.dropped(*what, *n);
            twin.add("tokenmeter_dropped_total", &[("what", what.name())], *n as f64);
        }
        Step::Overhead(class, ns) => {
            cells.overhead(*class, *ns);
            twin.observe(Metric::Overhead, &[("class", class.name())], *ns as f64 / 1e9);
        }
    }
}

proptest! {
    #![proptest_config(chance::cases(96))]

    #[test]
    fn page_agrees_with_naive_twin(steps in prop::collection::vec((0..WORKERS, any_step()), 0..120)) {
        let upstreams = vec![Upstream { name: "gpu-1".into(), host: "10.0.0.7".into(), port: Some(8000) }];
        let options =
            Options { objectives: objectives(), semconv: Semconv::Both, upstreams, ..Options::default() };
        let metrics = Metrics::new(options);
        let worker = || Worker { cells: metrics.worker(), open: Vec::new() };
        let mut workers = [worker(), worker(), worker()];
        let mut twin = Twin::default();
        twin.configured();
        for (at, step) in &steps {
            play(*at, &metrics, &mut workers[*at], step, &mut twin);
        }
        let page = openmetrics::read(&metrics.text());
        twin.agrees(&page);

        // Each finished exchange has a first token or a reason for its absence.
        let ended = page.sum("tokenmeter_exchanges_total");
        let first = page.sum("tokenmeter_time_to_first_token_seconds_count");
        prop_assert_eq!(ended, first + page.sum("tokenmeter_no_first_token_total"));
    }
}

#[test]
fn overflowing_counts_do_not_stop_page() {
    let metrics = Metrics::new(Options { objectives: objectives(), ..Options::default() });
    let mut workers = [metrics.worker(), metrics.worker()];
    for worker in &mut workers {
        let model = worker.model("boaster");
        let mut record = plain("boaster");
        record.tokens.by_type.fill(u64::MAX);
        record.visible_chars = u64::MAX;
        let pace = record.timing.pace.get_or_insert_default();
        pace.inter_token.buckets.fill(u64::MAX);
        pace.position[0].tokens = u64::MAX;
        record.timing.stalled_ns = u64::MAX;
        for _ in 0..2 {
            worker.live(model, u64::MAX, u64::MAX);
            worker.begin(model);
            worker.end(model, &record);
        }
    }
    openmetrics::read(&metrics.text());
    for format in Format::ALL {
        metrics.reading().write(format, &mut io::sink()).unwrap();
    }
    assert_eq!(metrics.snapshot().models[1].output_tokens, u64::MAX);
}
