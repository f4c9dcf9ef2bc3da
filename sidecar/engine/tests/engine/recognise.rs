//! Each server is recognised by what it says, with no question that would change anything there.

use engine::{Detected, FrontEnd, Scrape};
use metrics::EngineReading;
use relay::Kind;

use crate::fake::{Fake, Says};
use crate::watched::Watched;

const MODELS: &str = "/v1/models";

fn models(fields: &'static str, owner: &str) -> Says {
    Says::Page(
        fields,
        format!("{{\"object\":\"list\",\"data\":[{{\"id\":\"m\",\"owned_by\":\"{owner}\"}}]}}"),
    )
}

fn text(page: &str) -> Says {
    Says::Page("", page.to_owned())
}

#[test]
fn each_server_is_known_by_what_it_says() {
    let uvicorn = "server: uvicorn\r\n";
    for (script, kind, front_end) in [
        (vec![(MODELS, models(uvicorn, "vllm"))], Kind::Vllm, Some(FrontEnd::Python)),
        (vec![(MODELS, models("", "vllm"))], Kind::Vllm, Some(FrontEnd::Rust)),
        (vec![(MODELS, models("Server: nginx\r\n", "vllm"))], Kind::Vllm, None),
        (
            // Its models are for those with a key, its page is for all.
            vec![
                (MODELS, Says::Status(401, "{}".to_owned())),
                ("/metrics", text("vllm:num_requests_running 0\n")),
            ],
            Kind::Vllm,
            Some(FrontEnd::Rust),
        ),
        (vec![(MODELS, models("Server: llama.cpp\r\n", "llamacpp"))], Kind::LlamaCpp, None),
        (vec![(MODELS, Says::Page("Server: llama.cpp\r\n", "loading".to_owned()))], Kind::LlamaCpp, None),
        (vec![(MODELS, models("", "llamacpp"))], Kind::LlamaCpp, None),
        (vec![(MODELS, models(uvicorn, "sglang"))], Kind::Sglang, None),
        (vec![(MODELS, models(uvicorn, "lmdeploy"))], Kind::Lmdeploy, None),
        (vec![(MODELS, models(uvicorn, "tensorrt_llm"))], Kind::TensorrtLlm, None),
        (vec![("/prometheus/metrics", text("trtllm_num_requests_running 0\n"))], Kind::TensorrtLlm, None),
        (vec![(MODELS, models("", "nobody")), ("/metrics", text("tgi_queue_size 0\n"))], Kind::Tgi, None),
        (vec![("/metrics", text("")), ("/info", text("{\"max_best_of\": 2}"))], Kind::Tgi, None),
        (vec![("/metrics", text("nv_inference_count 0\n"))], Kind::Triton, None),
        (vec![("/v2", text("{\"name\": \"triton\", \"version\": \"2\"}"))], Kind::Triton, None),
        (vec![("/metrics", text("dynamo_frontend_inflight_requests 0\n"))], Kind::Dynamo, None),
        (vec![("/metrics", text("mistralrs_inter_token_latency_seconds_sum 0\n"))], Kind::MistralRs, None),
        (
            vec![(MODELS, models("", "library")), ("/api/version", text("{\"version\":\"0.13.5\"}"))],
            Kind::Ollama,
            None,
        ),
    ] {
        let fake = Fake::start();
        for (path, says) in script.clone() {
            fake.says(path, says);
        }
        let watched = Watched::start(&fake, None, Scrape::Auto);
        assert_eq!(watched.detected(), Detected { kind, front_end }, "{script:?}");
        let reading = watched.reading_when("the kind", |reading| reading.kind.is_some());
        assert_eq!(reading.kind, Some(kind));
        for path in fake.asked() {
            assert!(!path.contains("health"), "SGLang generates a token for it: {path}");
        }
    }
}

/// The reading after which a test looks at what was asked: the upstream has been dealt with.
fn settled(watched: &Watched) -> EngineReading {
    watched.reading()
}

#[test]
fn reading_llamacpps_page_is_for_a_person_to_decide() {
    let page = include_str!("../pages/llamacpp-0.7.0-after.txt");
    for kind in [None, Some(Kind::LlamaCpp)] {
        for (scrape, reads) in [(Scrape::Auto, false), (Scrape::On, true), (Scrape::Off, false)] {
            let fake = Fake::start();
            fake.page(page).says(MODELS, models("Server: llama.cpp\r\n", "llamacpp"));
            let watched = Watched::start(&fake, kind, scrape);
            assert_eq!(watched.detected().kind, Kind::LlamaCpp);
            let reading = settled(&watched);
            assert_eq!(reading.up, reads.then_some(true), "{kind:?} {scrape:?}");
            assert_eq!(fake.asked().iter().any(|path| path == "/metrics"), reads, "{kind:?} {scrape:?}");
        }
    }
}

#[test]
fn a_named_kind_that_is_not_read_is_never_asked() {
    for kind in [Kind::Vllm, Kind::Openai] {
        let fake = Fake::start();
        let watched = Watched::start(&fake, Some(kind), Scrape::Off);
        assert_eq!(watched.detected(), Detected { kind, front_end: None });
        assert_eq!(settled(&watched), EngineReading { kind: Some(kind), ..EngineReading::default() });
        assert!(fake.asked().is_empty(), "{:?}", fake.asked());
    }
}

#[test]
fn a_kind_without_a_page_is_not_asked_for_one() {
    for kind in [Kind::Ollama, Kind::Openai, Kind::Anthropic, Kind::Gemini] {
        let fake = Fake::start();
        let watched = Watched::start(&fake, Some(kind), Scrape::On);
        assert_eq!(settled(&watched), EngineReading { kind: Some(kind), ..EngineReading::default() });
        assert!(fake.asked().is_empty(), "{:?}", fake.asked());
    }
}

#[test]
fn an_unknown_server_costs_nothing_but_a_zero() {
    let fake = Fake::start();
    let watched = Watched::start(&fake, None, Scrape::Auto);
    assert_eq!(settled(&watched), EngineReading { up: Some(false), ..EngineReading::default() });
    let asked = ["/v1/models", "/prometheus/metrics", "/metrics", "/info", "/v2", "/api/version"];
    assert_eq!(fake.asked(), asked, "each once");
    assert!(!watched.has_detected());
}

#[test]
fn nothing_is_asked_until_somebody_says_that_it_is_there() {
    let fake = Fake::start();
    fake.says(MODELS, models("", "vllm")).page("vllm:num_requests_running 1\n");
    let watched = Watched::unreached(&fake, None, Scrape::Auto);
    watched.reach.note(0, false);
    watched.reach.note(7, true);
    assert!(!watched.has_detected() && fake.asked().is_empty());
    watched.reach.note(0, true);
    assert_eq!(watched.detected().kind, Kind::Vllm);
}

#[test]
fn it_is_recognised_anew_after_it_was_gone() {
    let fake = Fake::start();
    fake.says(MODELS, models("", "vllm")).page("vllm:num_requests_running 1\n");
    let watched = Watched::start(&fake, None, Scrape::Auto);
    assert_eq!(watched.detected(), Detected { kind: Kind::Vllm, front_end: Some(FrontEnd::Rust) });
    watched.reading_when("the page", |reading| reading.running_requests == Some(1.0));

    fake.says(MODELS, models("", "sglang")).page("sglang:num_running_reqs 2\n");
    watched.reach.note(0, false);
    let gone = watched.reading_when("its absence", |reading| reading.up == Some(false));
    assert_eq!(gone, EngineReading { up: Some(false), kind: Some(Kind::Vllm), ..EngineReading::default() });
    watched.reach.note(0, true);
    assert_eq!(watched.detected(), Detected { kind: Kind::Sglang, front_end: None });
    watched.reading_when("the page", |reading| reading.running_requests == Some(2.0));
}

#[test]
fn an_outage_too_short_to_be_met_counts() {
    let fake = Fake::start();
    fake.says(MODELS, models("", "vllm")).page("vllm:num_requests_running 1\n");
    let watched = Watched::start(&fake, None, Scrape::Auto);
    watched.detected();
    watched.reading_when("the page", |reading| reading.up == Some(true));
    watched.reach.note(0, false);
    watched.reach.note(0, true);
    assert_eq!(watched.detected().kind, Kind::Vllm, "asked again");
}

#[test]
fn the_prefix_of_its_url_is_asked_below() {
    let fake = Fake::start();
    fake.says("/base/v1/models", models("", "sglang"))
        .says("/base/metrics", text("sglang:token_usage 0.5\n"));
    let watched = Watched::below(&fake, "/base", None, Scrape::Auto);
    watched.reach.note(0, true);
    assert_eq!(watched.detected().kind, Kind::Sglang);
    watched.reading_when("the page", |reading| reading.kv_cache_usage_ratio == Some(0.5));
}
