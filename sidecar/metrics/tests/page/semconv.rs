//! The families of the GenAI convention on the page.

use std::collections::BTreeMap;

use meter::Observer;
use meter::{Ending, Provenance, Record, TokenType, Tokens};
use metrics::{Metric, Metrics, Options, Semconv, Upstream};
use scan::Dialect;

use crate::openmetrics::{self, Page};
use crate::records::{plain, refused, types};

fn page(semconv: Semconv) -> Page {
    let metrics = Metrics::new(Options { semconv, ..Options::default() });
    let mut worker = metrics.worker();
    let model = worker.model("m");
    worker.begin(model);
    worker.end(model, &plain("m"));
    let families = metrics.reading().families;
    let page = openmetrics::read(&metrics.text());
    let read: Vec<_> = families.iter().map(|family| family.metric.entry().family()).collect();
    let printed: Vec<_> = page.families.iter().map(|family| family.name.as_str()).collect();
    assert_eq!(read, printed, "page and reading have the same families");
    page
}

#[test]
fn disabled_family_is_not_exported() {
    for (semconv, inference, usage) in
        [(Semconv::Latest, 7, 0), (Semconv::Client, 10, 0), (Semconv::Legacy, 0, 1), (Semconv::Both, 7, 1)]
    {
        let embeddings = if inference == 0 { 0 } else { 2 };
        let page = page(semconv);
        let count = |prefix: &str| page.families.iter().filter(|one| one.name.starts_with(prefix)).count();
        assert_eq!(count("gen_ai_client_inference_"), inference, "{semconv:?}");
        assert_eq!(count("gen_ai_client_token_usage"), usage, "{semconv:?}");
        assert_eq!(count("gen_ai_server_"), 3, "{semconv:?}");
        assert_eq!(count("gen_ai_client_embeddings_"), embeddings, "{semconv:?}");
        let all = Metric::ALL.len() - (10 - inference) - (2 - embeddings) - (1 - usage);
        assert_eq!(page.families.len(), all, "{semconv:?}");
    }
}

#[test]
fn usage_counts_only_totals_of_the_server() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let model = worker.model("m");
    let sum = || {
        let page = openmetrics::read(&metrics.text());
        ["input", "cache_read_input", "output", "reasoning_output"]
            .map(|what| page.sum(&format!("gen_ai_client_inference_usage_{what}_tokens_total")))
    };
    worker.begin(model);
    worker.end(model, &refused("m"));
    assert_eq!(sum(), [0.0; 4]);
    let page = openmetrics::read(&metrics.text());
    let zeros =
        page.samples.keys().filter(|one| one.name.starts_with("gen_ai_client_inference_usage_")).count();
    assert_eq!(zeros, 5, "a failed operation adds zeros");
    worker.begin(model);
    worker.end(model, &plain("m"));
    assert_eq!(sum(), [20.0, 5.0, 11.0, 3.0]);
    let of = |provenance| Record {
        tokens: Tokens { input_provenance: provenance, output_provenance: provenance, ..plain("m").tokens },
        ..plain("m")
    };
    for (provenance, times) in [(Provenance::Engine, 2.0), (Provenance::Running, 2.0), (Provenance::Ids, 2.0)]
    {
        worker.begin(model);
        worker.end(model, &of(provenance));
        assert_eq!(sum(), [20.0, 5.0, 11.0, 3.0].map(|tokens| times * tokens), "{provenance:?}");
    }
    let page = openmetrics::read(&metrics.text());
    let labels = [("model", "m"), ("type", "output"), ("provenance", "engine")];
    assert_eq!(page.get("tokenmeter_tokens_total", &labels), Some(8.0));
}

/// The tokens of a side on the page, by modality.
fn by_modality(page: &Page, side: &str) -> BTreeMap<String, u64> {
    let name = format!("gen_ai_client_inference_usage_{side}_tokens_total");
    let all = page.samples.iter().filter(|(series, _)| series.name == name);
    all.map(|(series, n)| (series.labels["gen_ai_token_modality"].clone(), *n as u64)).collect()
}

fn tokens(by_modality: &[(&str, u64)]) -> BTreeMap<String, u64> {
    by_modality.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

/// If the server states the modalities of cached tokens, the rest of them is text.
#[test]
fn cached_tokens_have_stated_modality() {
    let of = |unknown, text| [("unknown", unknown), ("text", text), ("audio", 27), ("image", 3)];
    for (video, expected) in [(0, of(0, 15)), (100, of(105, 10))] {
        let metrics = Metrics::new(Options::default());
        let mut worker = metrics.worker();
        let model = worker.model("m");
        let mut seen = plain("m");
        seen.tokens.by_type = types(&[
            (TokenType::Input, 10),
            (TokenType::InputCached, 5),
            (TokenType::InputAudio, 20),
            (TokenType::InputCachedAudio, 7),
            (TokenType::InputCachedImage, 3),
            (TokenType::InputVideo, video),
        ]);
        worker.begin(model);
        worker.end(model, &seen);
        let page = openmetrics::read(&metrics.text());
        assert_eq!(by_modality(&page, "input"), tokens(&expected), "{video} of video");
        assert_eq!(page.sum("gen_ai_client_inference_usage_cache_read_input_tokens_total"), 15.0);
    }
}

#[test]
fn modality_needs_report_of_server() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let model = worker.model("m");
    let mut seen = plain("m");
    seen.tokens.by_type = types(&[
        (TokenType::Input, 10),
        (TokenType::InputCached, 5),
        (TokenType::InputAudio, 20),
        (TokenType::InputImage, 1000),
        (TokenType::InputVideo, 100),
        (TokenType::Output, 7),
        (TokenType::OutputReasoning, 3),
        (TokenType::OutputImage, 1290),
    ]);
    worker.begin(model);
    worker.end(model, &seen);
    let page = openmetrics::read(&metrics.text());
    let input = [("unknown", 105), ("text", 10), ("audio", 20), ("image", 1000)];
    assert_eq!(by_modality(&page, "input"), tokens(&input));
    assert_eq!(by_modality(&page, "output"), tokens(&[("unknown", 0), ("text", 10), ("image", 1290)]));
}

/// The convention has one counter of cache writes, for all lifetimes.
#[test]
fn cache_writes_of_each_lifetime_are_counted() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let model = worker.model("m");
    let mut seen = plain("m");
    seen.tokens.by_type =
        types(&[(TokenType::Input, 10), (TokenType::InputCacheWrite, 5), (TokenType::InputCacheWrite1h, 7)]);
    worker.begin(model);
    worker.end(model, &seen);
    let page = openmetrics::read(&metrics.text());
    let name = "gen_ai_client_inference_usage_cache_write_input_tokens_total";
    let written: f64 = page.samples.iter().filter(|(series, _)| series.name == name).map(|(_, n)| *n).sum();
    assert_eq!(written, 12.0);
    let labels = [("model", "m"), ("type", "input_cache_write_1h"), ("provenance", "reported")];
    assert_eq!(page.get("tokenmeter_tokens_total", &labels), Some(7.0));
}

/// The share of failures: counts with an `error_type` over all counts.
#[test]
fn error_rate_follows_from_request_duration() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let model = worker.model("m");
    let mut cut = plain("m");
    cut.ending = Ending::UpstreamCut;
    let mut left = plain("m");
    left.ending = Ending::ClientAbort;
    for record in [plain("m"), refused("m"), cut, left] {
        worker.begin(model);
        worker.end(model, &record);
    }
    let page = openmetrics::read(&metrics.text());
    let counts = |name: &str| -> Vec<_> {
        let name = format!("{name}_count");
        let all = page.samples.iter().filter(|(series, _)| series.name == name);
        all.map(|(series, n)| (series.labels["error_type"].clone(), *n)).collect()
    };
    let expected = [("", 1.0), ("429", 1.0), ("client_disconnect", 1.0), ("stream_truncated", 1.0)];
    let expected: Vec<_> = expected.map(|(error, n)| (error.to_owned(), n)).to_vec();
    for name in [
        "gen_ai_server_request_duration_seconds",
        "gen_ai_client_inference_operation_input_tokens",
        "gen_ai_client_inference_operation_output_tokens",
    ] {
        assert_eq!(counts(name), expected, "{name}");
    }
    // The refused operation has no report, which is an observation of 0.
    let zero = page.samples.iter().find(|(series, _)| {
        series.name == "gen_ai_client_inference_operation_input_tokens_sum"
            && series.labels["error_type"] == "429"
    });
    assert_eq!(zero.map(|(_, sum)| *sum), Some(0.0));
    for name in ["gen_ai_server_time_to_first_token_seconds", "gen_ai_server_time_per_output_token_seconds"] {
        assert_eq!(page.sum(&format!("{name}_count")), 1.0, "{name}: successes only");
    }
}

#[test]
fn invented_statuses_share_one_error_type() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let model = worker.model("m");
    for status in 400..1000 {
        let mut record = refused("m");
        record.status = status;
        worker.begin(model);
        worker.end(model, &record);
    }
    let page = openmetrics::read(&metrics.text());
    let name = "gen_ai_server_request_duration_seconds_count";
    let series: Vec<_> = page.samples.iter().filter(|(series, _)| series.name == name).collect();
    assert_eq!(page.sum(name), 600.0);
    assert!(series.len() <= 25, "{}", series.len());
    let rest = series.iter().find(|(series, _)| series.labels["error_type"] == "_OTHER");
    assert!(rest.is_some_and(|(_, n)| **n >= 576.0), "{rest:?}");
}

#[test]
fn embeddings_have_families_of_their_own() {
    let metrics = Metrics::new(Options { semconv: Semconv::Client, ..Options::default() });
    let mut worker = metrics.worker();
    let model = worker.model("e");
    let mut embedding = plain("e");
    embedding.identity.dialect = Dialect::Embeddings;
    embedding.tokens.output_provenance = Provenance::None;
    embedding.tokens.by_type = types(&[(TokenType::Input, 20)]);
    let mut failed = refused("e");
    failed.identity.dialect = Dialect::Embeddings;
    for record in [embedding, failed] {
        worker.begin(model);
        worker.end(model, &record);
    }
    let page = openmetrics::read(&metrics.text());
    assert_eq!(page.sum("gen_ai_client_embeddings_operation_input_tokens_sum"), 20.0);
    assert_eq!(page.sum("gen_ai_client_embeddings_operation_input_tokens_count"), 2.0);
    assert_eq!(page.sum("gen_ai_client_embeddings_duration_seconds_count"), 2.0);
    assert_eq!(page.sum("gen_ai_server_request_duration_seconds_count"), 2.0);
    let inference = page.samples.keys().filter(|series| series.name.starts_with("gen_ai_client_inference_"));
    assert_eq!(inference.count(), 0, "an embedding is not an inference");
}

#[test]
fn client_times_are_those_of_the_stream() {
    let metrics = Metrics::new(Options { semconv: Semconv::Client, ..Options::default() });
    let mut worker = metrics.worker();
    let model = worker.model("m");
    let mut body = plain("m");
    body.streamed = false;
    for record in [plain("m"), body, refused("m")] {
        worker.begin(model);
        worker.end(model, &record);
    }
    let page = openmetrics::read(&metrics.text());
    let name = "gen_ai_client_inference";
    assert_eq!(page.sum(&format!("{name}_duration_seconds_count")), 3.0);
    assert_eq!(page.sum(&format!("{name}_time_to_first_chunk_seconds_count")), 1.0);
    assert_eq!(page.sum(&format!("{name}_time_to_first_chunk_seconds_sum")), 0.0495);
    assert_eq!(page.sum(&format!("{name}_time_per_output_chunk_seconds_count")), 12.0);
    assert_eq!(page.sum(&format!("{name}_time_per_output_chunk_seconds_sum")), 0.125);
}

#[test]
fn upstreams_with_one_address_share_series() {
    let upstreams = ["gpu-1", "gpu-0"].map(|name| Upstream {
        name: name.into(),
        host: "10.0.0.7".into(),
        port: Some(8000),
    });
    let metrics = Metrics::new(Options { upstreams: upstreams.to_vec(), ..Options::default() });
    let mut worker = metrics.worker();
    let model = worker.model("m");
    for upstream in ["gpu-1", "gpu-0", "unknown"] {
        let mut record = plain("m");
        record.identity.upstream = upstream.into();
        worker.begin(model);
        worker.end(model, &record);
    }
    let page = openmetrics::read(&metrics.text());
    let series: Vec<_> = page
        .samples
        .iter()
        .filter(|(series, _)| series.name == "gen_ai_server_time_to_first_token_seconds_count")
        .map(|(series, n)| (&*series.labels["server_address"], &*series.labels["server_port"], *n))
        .collect();
    assert_eq!(series, [("", "", 1.0), ("10.0.0.7", "8000", 2.0)], "two upstreams at one address");
}
