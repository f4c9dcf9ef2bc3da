//! Detection of each server, without requests that change its state.

use std::time::{Duration, SystemTime};

use metrics::EngineReading;
use metrics::ServerKind;
use servers::{Detected, FrontEnd, Scrape};

use crate::fake::{Fake, Reply};
use crate::watched::Watched;

const MODELS: &str = "/v1/models";

fn models(fields: &'static str, owner: &str) -> Reply {
    Reply::Page(
        fields,
        format!("{{\"object\":\"list\",\"data\":[{{\"id\":\"m\",\"owned_by\":\"{owner}\"}}]}}"),
    )
}

fn text(page: &str) -> Reply {
    Reply::Page("", page.to_owned())
}

#[test]
fn each_server_is_detected() {
    let uvicorn = "server: uvicorn\r\n";
    for (script, kind, front_end) in [
        (vec![(MODELS, models(uvicorn, "vllm"))], ServerKind::Vllm, Some(FrontEnd::Python)),
        (vec![(MODELS, models("", "vllm"))], ServerKind::Vllm, Some(FrontEnd::Rust)),
        (vec![(MODELS, models("Server: nginx\r\n", "vllm"))], ServerKind::Vllm, None),
        (
            // Its models require a key, its page does not.
            vec![
                (MODELS, Reply::Status(401, "{}".to_owned())),
                ("/metrics", text("vllm:num_requests_running 0\n")),
            ],
            ServerKind::Vllm,
            Some(FrontEnd::Rust),
        ),
        (vec![(MODELS, models("Server: llama.cpp\r\n", "llamacpp"))], ServerKind::LlamaCpp, None),
        (
            vec![(MODELS, Reply::Page("Server: llama.cpp\r\n", "loading".to_owned()))],
            ServerKind::LlamaCpp,
            None,
        ),
        (vec![(MODELS, models("", "llamacpp"))], ServerKind::LlamaCpp, None),
        (vec![(MODELS, models(uvicorn, "sglang"))], ServerKind::Sglang, None),
        (vec![(MODELS, models(uvicorn, "lmdeploy"))], ServerKind::Lmdeploy, None),
        (vec![(MODELS, models(uvicorn, "tensorrt_llm"))], ServerKind::TensorrtLlm, None),
        (
            vec![("/prometheus/metrics", text("trtllm_num_requests_running 0\n"))],
            ServerKind::TensorrtLlm,
            None,
        ),
        (
            vec![(MODELS, models("", "nobody")), ("/metrics", text("tgi_queue_size 0\n"))],
            ServerKind::Tgi,
            None,
        ),
        (vec![("/metrics", text("")), ("/info", text("{\"max_best_of\": 2}"))], ServerKind::Tgi, None),
        (vec![("/metrics", text("nv_inference_count 0\n"))], ServerKind::Triton, None),
        (vec![("/v2", text("{\"name\": \"triton\", \"version\": \"2\"}"))], ServerKind::Triton, None),
        (vec![("/metrics", text("dynamo_frontend_inflight_requests 0\n"))], ServerKind::Dynamo, None),
        (
            vec![("/metrics", text("mistralrs_inter_token_latency_seconds_sum 0\n"))],
            ServerKind::MistralRs,
            None,
        ),
        (
            vec![(MODELS, models("", "library")), ("/api/version", text("{\"version\":\"0.13.5\"}"))],
            ServerKind::Ollama,
            None,
        ),
    ] {
        let fake = Fake::start();
        for (path, reply) in script.clone() {
            fake.set(path, reply);
        }
        let watched = Watched::start(&fake, None, Scrape::Auto);
        assert_eq!(watched.detected(), Detected { kind, front_end }, "{script:?}");
        let reading = watched.reading_when("the kind", |reading| reading.kind.is_some());
        assert_eq!(reading.kind, Some(kind));
        for path in fake.requests() {
            assert!(!path.contains("health"), "SGLang generates a token for it: {path}");
        }
    }
}

/// Returns the reading after which the requests are complete.
fn settled(watched: &Watched) -> EngineReading {
    watched.reading()
}

#[test]
fn llamacpp_page_is_read_only_if_configured() {
    let page = include_str!("../pages/llamacpp-0.7.0-after.txt");
    for kind in [None, Some(ServerKind::LlamaCpp)] {
        for (scrape, reads) in [(Scrape::Auto, false), (Scrape::On, true), (Scrape::Off, false)] {
            let fake = Fake::start();
            fake.page(page).set(MODELS, models("Server: llama.cpp\r\n", "llamacpp"));
            let watched = Watched::start(&fake, kind, scrape);
            assert_eq!(watched.detected().kind, ServerKind::LlamaCpp);
            let reading = settled(&watched);
            assert_eq!(reading.up, reads.then_some(true), "{kind:?} {scrape:?}");
            assert_eq!(fake.requests().iter().any(|path| path == "/metrics"), reads, "{kind:?} {scrape:?}");
        }
    }
}

#[test]
fn configured_kind_without_scrape_gets_no_request() {
    for kind in [ServerKind::Vllm, ServerKind::Openai] {
        let fake = Fake::start();
        let watched = Watched::start(&fake, Some(kind), Scrape::Off);
        assert_eq!(watched.detected(), Detected { kind, front_end: None });
        assert_eq!(settled(&watched), EngineReading { kind: Some(kind), ..EngineReading::default() });
        assert!(fake.requests().is_empty(), "{:?}", fake.requests());
    }
}

#[test]
fn kind_without_page_gets_no_page_request() {
    for kind in [ServerKind::Ollama, ServerKind::Openai, ServerKind::Anthropic, ServerKind::Gemini] {
        let fake = Fake::start();
        let watched = Watched::start(&fake, Some(kind), Scrape::On);
        assert_eq!(settled(&watched), EngineReading { kind: Some(kind), ..EngineReading::default() });
        assert!(fake.requests().is_empty(), "{:?}", fake.requests());
    }
}

#[test]
fn unknown_server_is_reading_without_values() {
    let fake = Fake::start();
    let watched = Watched::start(&fake, None, Scrape::Auto);
    assert_eq!(settled(&watched), EngineReading { up: Some(false), ..EngineReading::default() });
    let asked = ["/v1/models", "/prometheus/metrics", "/metrics", "/info", "/v2", "/api/version"];
    assert_eq!(fake.requests(), asked, "each once");
    assert!(!watched.has_detected());
}

#[test]
fn no_request_before_server_is_reachable() {
    let fake = Fake::start();
    fake.set(MODELS, models("", "vllm")).page("vllm:num_requests_running 1\n");
    let watched = Watched::unreached(&fake, None, Scrape::Auto);
    watched.reach.note(0, false);
    watched.reach.note(7, true);
    assert!(!watched.has_detected() && fake.requests().is_empty());
    watched.reach.note(0, true);
    assert_eq!(watched.detected().kind, ServerKind::Vllm);
}

#[test]
fn server_is_detected_again_after_outage() {
    let fake = Fake::start();
    fake.set(MODELS, models("", "vllm")).page("vllm:num_requests_running 1\n");
    let watched = Watched::start(&fake, None, Scrape::Auto);
    assert_eq!(watched.detected(), Detected { kind: ServerKind::Vllm, front_end: Some(FrontEnd::Rust) });
    let began = SystemTime::now() - Duration::from_secs(60);
    let read = watched.reading_when("the page", |reading| reading.running_requests == Some(1.0));
    assert!(read.read_at.is_some_and(|at| at > began), "its age is known: {read:?}");

    fake.set(MODELS, models("", "sglang")).page("sglang:num_running_reqs 2\n");
    watched.reach.note(0, false);
    let gone = watched.reading_when("its absence", |reading| reading.up == Some(false));
    assert_eq!(
        gone,
        EngineReading { up: Some(false), kind: Some(ServerKind::Vllm), ..EngineReading::default() }
    );
    watched.reach.note(0, true);
    assert_eq!(watched.detected(), Detected { kind: ServerKind::Sglang, front_end: None });
    watched.reading_when("the page", |reading| reading.running_requests == Some(2.0));
}

#[test]
fn short_outage_is_noticed() {
    let fake = Fake::start();
    fake.set(MODELS, models("", "vllm")).page("vllm:num_requests_running 1\n");
    let watched = Watched::start(&fake, None, Scrape::Auto);
    watched.detected();
    watched.reading_when("the page", |reading| reading.up == Some(true));
    watched.reach.note(0, false);
    watched.reach.note(0, true);
    assert_eq!(watched.detected().kind, ServerKind::Vllm, "asked again");
}

#[test]
fn prefix_of_url_is_part_of_every_path() {
    let fake = Fake::start();
    fake.set("/base/v1/models", models("", "sglang")).set("/base/metrics", text("sglang:token_usage 0.5\n"));
    let watched = Watched::below(&fake, "/base", None, Scrape::Auto);
    watched.reach.note(0, true);
    assert_eq!(watched.detected().kind, ServerKind::Sglang);
    watched.reading_when("the page", |reading| reading.kv_cache_usage_ratio == Some(0.5));
}
