//! The naive twin: it keeps one number per series in a map, and adds an observation to every bucket that contains it.
//! It uses no cells, no workers, and of the table only the edges.

use std::collections::BTreeMap;

use meter::edges::{CONCURRENCY_NAMES, GAP_S, POSITION_NAMES};
use meter::{Disagreement, Ending, Gaps, Provenance, Record, Role, TokenType};
use metrics::{Kind, Metric, Objective};
use scan::Dialect;
use text::Glob;

use crate::openmetrics::{Page, Series};

#[derive(Debug, Default)]
pub(crate) struct Twin {
    samples: BTreeMap<Series, f64>,
    overcounts: BTreeMap<(usize, String), u64>,
}

/// Objectives of every kind: by model and tenant, by model, and for the rest.
pub(crate) fn objectives() -> Vec<Objective> {
    let objective = |name: &str, model: &str, tenant: &str, first_token_ns, output_rate| Objective {
        name: name.into(),
        models: vec![Glob::new(model)],
        tenants: vec![Glob::new(tenant)],
        first_token_ns,
        output_rate,
        target_ratio: 0.99,
    };
    vec![
        objective("gold", "llama*", "gold", 100_000_000, 30.0),
        objective("llama", "llama*", "*", 10_000_000_000, 100.0),
        objective("rest", "*", "default", 1_000_000_000, 100.0),
    ]
}

impl Twin {
    /// Adds to a counter or a gauge.
    pub(crate) fn add(&mut self, name: &str, labels: &[(&str, &str)], n: f64) {
        *self.samples.entry(Series::new(name, labels)).or_default() += n;
    }

    /// Adds one observation, in the unit of the metric.
    pub(crate) fn observe(&mut self, metric: Metric, labels: &[(&str, &str)], value: f64) {
        let Kind::Histogram(edges) = metric.entry().kind else { panic!("not a histogram") };
        for edge in edges {
            self.bucket(metric, labels, &edge.to_string(), if value <= *edge { 1.0 } else { 0.0 });
        }
        self.bucket(metric, labels, "+Inf", 1.0);
        self.totals(metric, labels, 1.0, value);
    }

    /// Adds observations that are already in buckets.
    pub(crate) fn gaps(&mut self, metric: Metric, labels: &[(&str, &str)], gaps: &Gaps) {
        let all: u64 = gaps.buckets.iter().sum();
        if all == 0 {
            return;
        }
        for (at, edge) in GAP_S.iter().enumerate() {
            let below: u64 = gaps.buckets[..=at].iter().sum();
            self.bucket(metric, labels, &edge.to_string(), below as f64);
        }
        self.bucket(metric, labels, "+Inf", all as f64);
        self.totals(metric, labels, all as f64, seconds(gaps.sum_ns));
    }

    fn bucket(&mut self, metric: Metric, labels: &[(&str, &str)], le: &str, n: f64) {
        let labels = [labels, &[("le", le)]].concat();
        self.add(&format!("{}_bucket", metric.entry().name), &labels, n);
    }

    fn totals(&mut self, metric: Metric, labels: &[(&str, &str)], count: f64, sum: f64) {
        self.add(&format!("{}_count", metric.entry().name), labels, count);
        self.add(&format!("{}_sum", metric.entry().name), labels, sum);
    }

    /// Adds new tokens to the live counter, less the worker's overcount.
    pub(crate) fn live(&mut self, worker: usize, model: &str, tokens: u64, overcount: u64) {
        let before = self.overcounts.entry((worker, model.to_owned())).or_default();
        let left = (*before + overcount) as i64 - tokens as i64;
        *before = left.max(0) as u64;
        self.add("tokenmeter_live_output_tokens_total", &[("model", model)], (-left).max(0) as f64);
    }

    /// Adds a finished exchange.
    pub(crate) fn end(&mut self, model: &str, record: &Record) {
        let (timing, ending) = (&record.timing, record.ending.name());
        let m = ("model", model);
        self.add("tokenmeter_exchanges_in_flight", &[m], -1.0);
        let role = record.identity.role;
        if role != Role::Whole {
            let r = ("role", role.name());
            self.add("tokenmeter_leg_exchanges_total", &[m, r, ("ending", ending)], 1.0);
            self.observe(Metric::LegDuration, &[m, r], seconds(timing.duration_ns));
        }
        let (u, dialect) = (("upstream", &*record.identity.upstream), record.identity.dialect.name());
        for disagreement in Disagreement::ALL {
            let labels = [m, u, ("dialect", dialect), ("disagreement", disagreement.name())];
            let n = if record.disagreement == Some(disagreement) { 1.0 } else { 0.0 };
            self.add("tokenmeter_usage_disagreements_total", &labels, n);
        }
        if role == Role::Prefill {
            return self.add("tokenmeter_leg_prompt_tokens_total", &[m], record.tokens.input() as f64);
        }
        let labels = [m, u, ("dialect", dialect), ("ending", ending)];
        self.add("tokenmeter_exchanges_total", &labels, 1.0);
        for kind in TokenType::ALL {
            let provenance = record.tokens.provenance(kind).name();
            let labels = [m, ("type", kind.name()), ("provenance", provenance)];
            self.add("tokenmeter_tokens_total", &labels, record.tokens.of(kind) as f64);
        }
        let t = ("tenant", &*record.identity.tenant);
        self.add("tokenmeter_tenant_exchanges_total", &[t, ("ending", ending)], 1.0);
        for kind in TokenType::ALL {
            let labels = [t, ("type", kind.name())];
            self.add("tokenmeter_tenant_tokens_total", &labels, record.tokens.of(kind) as f64);
        }
        let is_processed = record.upstream_attempts > 0 && record.status < 400;
        let uncounted = record.tokens.input_provenance == Provenance::None && is_processed;
        self.add("tokenmeter_tenant_uncounted_prompts_total", &[t], f64::from(u8::from(uncounted)));
        let known = [("input", record.tokens.input_provenance), ("output", record.tokens.output_provenance)];
        for (direction, provenance) in known {
            let labels = [("direction", direction), ("provenance", provenance.name())];
            self.add("tokenmeter_usage_provenance_total", &labels, 1.0);
        }

        let success = matches!(record.ending, Ending::Complete | Ending::Length);
        let (address, port) = if u.1 == "gpu-1" { ("10.0.0.7", "8000") } else { ("", "") };
        let flavour = [
            ("gen_ai_operation_name", record.identity.dialect.operation()),
            ("gen_ai_provider_name", &*record.identity.provider),
            ("gen_ai_request_model", model),
            ("server_address", address),
            ("server_port", port),
        ];
        let status = record.status.to_string();
        let error = match ending {
            "complete" | "length" => "",
            "detached" => "no_output",
            "error_status" => &status,
            "client_abort" => "client_disconnect",
            "upstream_cut" if timing.first_byte_ns.is_none() => "upstream_reset",
            "upstream_cut" => "stream_truncated",
            "proxy_error" => "_OTHER",
            other => other,
        };
        let failed = [&flavour[..], &[("error_type", error)]].concat();
        self.observe(Metric::GenAiDuration, &failed, seconds(timing.duration_ns));
        if record.identity.dialect == Dialect::Embeddings {
            self.observe(Metric::EmbeddingsDuration, &failed, seconds(timing.duration_ns));
        }
        if success {
            self.moment(Metric::GenAiFirstToken, &flavour, timing.first_token_ns);
            self.moment(Metric::GenAiPerToken, &flavour, timing.per_output_token_ns);
        }

        self.usage(&flavour, error, record);

        let crowd = [m, u, ("concurrency", concurrency(timing.concurrency))];
        self.moment(Metric::FirstToken, &crowd, timing.first_token_ns);
        self.moment(Metric::FirstByte, &[m, u], timing.first_byte_ns);
        self.moment(Metric::FirstVisible, &[m, u], timing.first_visible_ns);
        self.moment(Metric::FirstTool, &[m, u], timing.first_tool_ns);
        self.moment(Metric::ServerQueue, &[m, u], timing.server().queue_ns);
        self.moment(Metric::ServerPrefill, &[m, u], timing.server().prefill_ns);
        self.moment(Metric::ServerDecode, &[m, u], timing.server().decode_ns);
        if let Some(drafted) = timing.server().draft_tokens.filter(|drafted| *drafted > 0) {
            let accepted = timing.server().accepted_draft_tokens.unwrap_or(0);
            self.add("tokenmeter_upstream_draft_tokens_total", &[m, u], drafted as f64);
            self.add("tokenmeter_upstream_accepted_draft_tokens_total", &[m, u], accepted as f64);
        }
        if timing.first_token_ns.is_none() {
            let reason = if success && !record.streamed { "not_streamed" } else { ending };
            self.add("tokenmeter_no_first_token_total", &[m, u, ("reason", reason)], 1.0);
        }
        self.rate(Metric::OutputRate, &crowd, timing.output_rate);
        self.rate(Metric::InputRate, &crowd, timing.input_rate);
        self.rate(Metric::CharacterRate, &[m, u], timing.visible_chars_rate);

        let weighted = [m, u, ("weight", timing.weight.name())];
        let pace = timing.pace();
        self.gaps(Metric::InterToken, &weighted, &pace.inter_token);
        self.gaps(Metric::ChunkGap, &weighted, &pace.chunk_gap);
        for (range, span) in POSITION_NAMES.iter().zip(pace.position) {
            let labels = [m, u, ("position", *range)];
            self.add("tokenmeter_output_position_tokens_total", &labels, span.tokens as f64);
            self.add("tokenmeter_output_position_seconds_total", &labels, seconds(span.ns));
        }
        self.add("tokenmeter_visible_characters_total", &[m], record.visible_chars as f64);
        self.add("tokenmeter_stalls_total", &[m], f64::from(timing.stalls));
        self.add("tokenmeter_stalled_seconds_total", &[m], seconds(timing.stalled_ns));
        self.add("tokenmeter_client_wait_seconds_total", &[m], seconds(timing.client_wait_ns));
    }

    /// Adds the cost of an exchange, in pico-dollars.
    pub(crate) fn charge(&mut self, tenant: &str, model: &str, basis: &str, pico: u64) {
        let dollars = pico as f64 / 1e12;
        self.add("tokenmeter_tenant_spend_usd_total", &[("tenant", tenant), ("basis", basis)], dollars);
        self.add("tokenmeter_model_spend_usd_total", &[("model", model), ("basis", basis)], dollars);
    }

    /// Adds a finished exchange under [`objectives`], whose patterns are repeated by hand.
    pub(crate) fn objective(&mut self, model: &str, record: &Record) {
        if record.identity.role == Role::Prefill {
            return;
        }
        let (name, tenant) = (&*record.identity.model, &*record.identity.tenant);
        let (objective, first_s, rate) = match (name.starts_with("llama"), tenant == "gold") {
            (true, true) => ("gold", 0.1, 30.0),
            (true, false) => ("llama", 10.0, 100.0),
            (false, false) => ("rest", 1.0, 100.0),
            (false, true) => return,
        };
        if [Dialect::Embeddings, Dialect::Rerank].contains(&record.identity.dialect) {
            return;
        }
        let timing = &record.timing;
        let output: u64 = TokenType::ALL
            .into_iter()
            .filter(|kind| kind.name().starts_with("output"))
            .map(|kind| record.tokens.of(kind))
            .sum();
        let verdict = match record.ending.name() {
            "complete" | "length" if record.streamed => {
                let late = timing.first_token_ns.is_some_and(|ns| seconds(ns) > first_s);
                let slow = timing.output_rate.is_some_and(|is| is < rate);
                ["met", "slow_first_token", "slow_output", "slow_both"]
                    [usize::from(late) + 2 * usize::from(slow)]
            }
            "complete" | "length" => {
                let each = output as f64 / f64::from(record.choices);
                let allowed = if each > 1.0 { first_s + (each - 1.0) / rate } else { first_s };
                let unknown = record.tokens.output_provenance.name() == "none";
                if unknown || seconds(timing.duration_ns) <= allowed { "met" } else { "slow_output" }
            }
            "client_abort" => {
                let waited = timing.first_token_ns.unwrap_or(timing.duration_ns);
                if !record.asked_stream || seconds(waited) <= first_s {
                    return;
                }
                "slow_first_token"
            }
            "detached" => return,
            "error_status" if ![408, 424, 429, 500, 503].contains(&record.status) => return,
            _ => "failed",
        };
        let labels = [("model", model), ("objective", objective)];
        let verdicts = [("objective", objective), ("verdict", verdict)];
        let tokens = [labels[0], labels[1], ("provenance", record.tokens.output_provenance.name())];
        self.add("tokenmeter_objective_exchanges_total", &[labels[0], verdicts[0], verdicts[1]], 1.0);
        let tenant = [("tenant", tenant), verdicts[0], verdicts[1]];
        self.add("tokenmeter_tenant_objective_exchanges_total", &tenant, 1.0);
        self.add("tokenmeter_objective_tokens_total", &tokens, output as f64);
        if verdict == "met" {
            self.add("tokenmeter_goodput_exchanges_total", &labels, 1.0);
            self.add("tokenmeter_goodput_tokens_total", &tokens, output as f64);
        }
    }

    /// Adds the configuration of [`objectives`].
    pub(crate) fn configured(&mut self) {
        for (name, first_s, rate) in [("gold", 0.1, 30.0), ("llama", 10.0, 100.0), ("rest", 1.0, 100.0)] {
            let labels = [("objective", name)];
            self.add("tokenmeter_objective_first_token_seconds", &labels, first_s);
            self.add("tokenmeter_objective_output_token_rate_per_second", &labels, rate);
            self.add("tokenmeter_objective_target_ratio", &labels, 0.99);
        }
    }

    /// Adds the semantic convention's token usage.
    fn usage(&mut self, flavour: &[(&str, &str); 5], error: &str, record: &Record) {
        let embeds = record.identity.dialect == Dialect::Embeddings;
        let count =
            |kinds: &[TokenType]| kinds.iter().map(|kind| record.tokens.of(*kind)).sum::<u64>() as f64;
        let base = "gen_ai_client_inference_usage";
        let mut add = |what: &str, modality: &str, n: f64| {
            let labels = [&flavour[..], &[("gen_ai_token_modality", modality)]].concat();
            self.add(&format!("{base}_{what}_tokens_total"), &labels, n);
        };
        let side = |side: &str| -> f64 {
            let kinds = TokenType::ALL.into_iter().filter(|kind| kind.name().starts_with(side));
            kinds.map(|kind| record.tokens.of(kind) as f64).sum()
        };
        let (input, output) = (side("input"), side("output"));
        let by_server = |known: Provenance| known == Provenance::Engine || known == Provenance::Reported;
        let (asked, answered) =
            (by_server(record.tokens.input_provenance), by_server(record.tokens.output_provenance));
        if asked && !embeds {
            let written = [TokenType::InputCacheWrite, TokenType::InputCacheWrite1h];
            let stated = count(&[TokenType::InputCachedAudio, TokenType::InputCachedImage]);
            let is_stated = stated > 0.0 && count(&[TokenType::InputVideo]) == 0.0;
            let cached = if is_stated { 0.0 } else { count(&[TokenType::InputCached]) };
            let unknown = cached + count(&written);
            let audio = count(&[TokenType::InputAudio, TokenType::InputCachedAudio]);
            let image = count(&[TokenType::InputImage, TokenType::InputCachedImage]);
            modalities(&mut add, "input", input, unknown, [audio, image, count(&[TokenType::InputVideo])]);
            let read = [TokenType::InputCached, TokenType::InputCachedAudio, TokenType::InputCachedImage];
            add("cache_read_input", "unknown", count(&read));
            add("cache_write_input", "unknown", count(&written));
        }
        if answered && !embeds {
            add("reasoning_output", "unknown", count(&[TokenType::OutputReasoning]));
            let reported = [TokenType::OutputAudio, TokenType::OutputImage, TokenType::OutputVideo];
            modalities(&mut add, "output", output, 0.0, reported.map(|kind| count(&[kind])));
        }
        let directions = [
            (asked, Metric::OperationInput, "input", input),
            (answered, Metric::OperationOutput, "output", output),
        ];
        let failed = [&flavour[..], &[("error_type", error)]].concat();
        if embeds {
            self.observe(Metric::EmbeddingsInput, &failed, if asked { input } else { 0.0 });
        }
        for (reported, metric, direction, n) in directions {
            if !embeds {
                self.observe(metric, &failed, if reported { n } else { 0.0 });
            }
            if reported {
                let labels = [&flavour[..], &[("gen_ai_token_type", direction)]].concat();
                self.observe(Metric::ClientTokenUsage, &labels, n);
            }
        }
    }

    fn moment(&mut self, metric: Metric, labels: &[(&str, &str)], ns: Option<u64>) {
        if let Some(ns) = ns {
            self.observe(metric, labels, seconds(ns));
        }
    }

    fn rate(&mut self, metric: Metric, labels: &[(&str, &str)], rate: Option<f64>) {
        if let Some(rate) = rate.filter(|rate| rate.is_finite()) {
            self.observe(metric, labels, rate);
        }
    }

    /// Asserts that a page has the same values, to a millionth; a series that is absent counts as 0.
    pub(crate) fn agrees(&self, page: &Page) {
        let compared =
            |series: &&Series| series.name.starts_with("tokenmeter_") || series.name.starts_with("gen_ai_");
        let all = self.samples.keys().chain(page.samples.keys().filter(compared));
        for series in all.filter(|series| series.name != "tokenmeter_build_info") {
            let on_page = page.samples.get(series).copied().unwrap_or_default();
            let expected = self.samples.get(series).copied().unwrap_or_default();
            let near = (on_page - expected).abs() <= 1e-6 * expected.abs().max(1.0);
            assert!(near, "{series:?}: the page says {on_page}, the twin {expected}");
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Returns the concurrency bucket.
fn concurrency(mean: f64) -> &'static str {
    let at = match mean.round() as u64 {
        0..=1 => 0,
        2..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        65..=128 => 6,
        129.. => 7,
    };
    CONCURRENCY_NAMES[at]
}

/// Adds one direction's tokens by modality: if the server reports any, the rest except cached tokens is text.
fn modalities(add: &mut impl FnMut(&str, &str, f64), side: &str, all: f64, cached: f64, reported: [f64; 3]) {
    let [audio, image, video] = reported;
    let is_reported = reported.iter().any(|n| *n > 0.0);
    let (text, unknown) =
        if is_reported { (all - cached - audio - image - video, cached + video) } else { (0.0, all) };
    for (modality, n) in [("unknown", unknown), ("text", text), ("audio", audio), ("image", image)] {
        if n > 0.0 || modality == "unknown" {
            add(side, modality, n);
        }
    }
}
