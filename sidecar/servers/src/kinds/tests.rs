//! Values of a page of each server. The pages of vLLM and llama.cpp are recordings of real servers; the others are
//! written from the names in the servers' sources.

use metrics::ServerKind;

use super::{KNOWN, of};
use crate::detect::by_names;
use crate::vocabulary::{Counters, PageValues};
use scrape::Page;

fn values(kind: ServerKind, text: &str) -> PageValues {
    let page = Page::read(text);
    assert_eq!(page.skipped, 0, "{kind:?}");
    assert_eq!(by_names(&page), Some(kind));
    of(kind).expect("it has a page").read(&page)
}

#[test]
fn recorded_pages_of_vllm() {
    let after = values(ServerKind::Vllm, include_str!("../../tests/pages/vllm-0.32.0-after.txt"));
    assert_eq!((after.running, after.waiting, after.kv_cache), (Some(0.0), Some(0.0), Some(0.0)));
    let counters = Counters {
        cache_hits: Some(9600.0),
        cache_lookups: Some(20398.0),
        prompt_tokens: Some(20435.0),
        generation_tokens: Some(8614.0),
        preemptions: Some(0.0),
        prompt_sources: [Some(10835.0), Some(9600.0), Some(0.0)],
        admission_rejections: Some(0.0),
    };
    assert_eq!(after.counters, counters);
    assert_eq!((after.started, after.cache_hit_ratio), (Some(1.79522046995e9), None));
    let before = values(ServerKind::Vllm, include_str!("../../tests/pages/vllm-0.32.0-before.txt"));
    assert_eq!(before.counters.generation_tokens, Some(0.0), "every counter is present from the start");
}

#[test]
fn recorded_pages_of_llamacpp() {
    let after = values(ServerKind::LlamaCpp, include_str!("../../tests/pages/llamacpp-0.7.0-after.txt"));
    assert_eq!((after.running, after.waiting, after.kv_cache), (Some(0.0), Some(0.0), None));
    let counters = Counters {
        cache_hits: Some(10039.0),
        cache_lookups: Some(18081.0),
        prompt_tokens: Some(18081.0),
        generation_tokens: Some(6098.0),
        preemptions: None,
        prompt_sources: [Some(8042.0), Some(10039.0), None],
        admission_rejections: None,
    };
    assert_eq!(after.counters, counters, "8042 computed and 10039 cached");
    let speculative = include_str!("../../tests/pages/llamacpp-0.7.0-speculative-after.txt");
    assert!(values(ServerKind::LlamaCpp, speculative).counters.generation_tokens > Some(0.0));
}

#[test]
fn prompt_sources_and_rejections_are_read() {
    for (kind, text, sources, rejected) in [
        (
            ServerKind::Vllm,
            "vllm:prompt_tokens_by_source_total{engine=\"0\",source=\"local_compute\"} 10\n\
             vllm:prompt_tokens_by_source_total{engine=\"1\",source=\"local_compute\"} 5\n\
             vllm:prompt_tokens_by_source_total{engine=\"0\",source=\"local_cache_hit\"} 6\n\
             vllm:prompt_tokens_by_source_total{engine=\"0\",source=\"external_kv_transfer\"} 3\n\
             vllm:admission_rejections_total{reason=\"max_num_queued_reqs\"} 2\n\
             vllm:admission_rejections_total{reason=\"max_num_queued_tokens\"} 1\n",
            [Some(15.0), Some(6.0), Some(3.0)],
            Some(3.0),
        ),
        (
            ServerKind::Sglang,
            "sglang:cached_tokens_total{cache_source=\"device\"} 7\nsglang:cached_tokens_total{cache_source=\"host\"} 2\n",
            [None, Some(9.0), None],
            None,
        ),
        (ServerKind::Lmdeploy, "lmdeploy:cached_tokens_total 4\n", [None, Some(4.0), None], None),
        (ServerKind::TensorrtLlm, "trtllm_prompt_cached_tokens_total 4\n", [None, Some(4.0), None], None),
    ] {
        let counters = values(kind, text).counters;
        assert_eq!((counters.prompt_sources, counters.admission_rejections), (sources, rejected), "{kind:?}");
    }
}

/// A short page, and its expected values: running, waiting, KV, reported hit ratio, prompt, generated.
type Case = (ServerKind, &'static str, [Option<f64>; 6]);

#[test]
fn pages_written_from_sources() {
    const CASES: &[Case] = &[
        (
            // Two engines, the names of an older version.
            ServerKind::Vllm,
            "vllm:num_requests_running{engine=\"0\"} 2\nvllm:num_requests_running{engine=\"1\"} 3\n\
             vllm:num_requests_waiting{engine=\"0\"} 1\nvllm:num_requests_waiting_by_reason{reason=\"capacity\"} 9\n\
             vllm:gpu_cache_usage_perc{engine=\"0\"} 0.25\nvllm:gpu_cache_usage_perc{engine=\"1\"} 0.75\n\
             vllm:prompt_tokens_total{engine=\"0\"} 10\nvllm:prompt_tokens_total{engine=\"1\"} 20\n\
             vllm:generation_tokens_total{engine=\"0\"} 5\nvllm:iteration_tokens_total_sum 99\n",
            [Some(5.0), Some(1.0), Some(0.5), None, Some(30.0), Some(5.0)],
        ),
        (
            ServerKind::Tgi,
            "tgi_queue_size 4\ntgi_batch_current_size 7\ntgi_request_input_length_sum 120\n\
             tgi_request_input_length_count 3\ntgi_request_generated_tokens_sum 45\n\
             tgi_request_generated_tokens_bucket{le=\"+Inf\"} 3\n",
            [Some(7.0), Some(4.0), None, None, Some(120.0), Some(45.0)],
        ),
        (ServerKind::Tgi, "tgi_queue_size 0\n", [None, Some(0.0), None, None, None, None]),
        (
            // A version without the cached counter, with the gauge.
            ServerKind::LlamaCpp,
            "llamacpp:prompt_tokens_total 11\nllamacpp:tokens_predicted_total 12\nllamacpp:kv_cache_usage_ratio 0.5\n\
             llamacpp:requests_processing 1\nllamacpp:requests_deferred 2\n",
            [Some(1.0), Some(2.0), Some(0.5), None, Some(11.0), Some(12.0)],
        ),
        (
            ServerKind::Sglang,
            "sglang:num_running_reqs{model_name=\"m\",tp_rank=\"0\"} 3\nsglang:num_queue_reqs 1\n\
             sglang:token_usage 0.28\nsglang:cache_hit_rate 0.007\nsglang:prompt_tokens_total 8128902\n\
             sglang:generation_tokens_total 7557572\nsglang:prompt_tokens_histogram_sum 1\n",
            [Some(3.0), Some(1.0), Some(0.28), Some(0.007), Some(8128902.0), Some(7557572.0)],
        ),
        (
            ServerKind::TensorrtLlm,
            "trtllm_num_requests_running 3\ntrtllm_num_requests_waiting 1\ntrtllm_kv_cache_utilization 0.5\n\
             trtllm_kv_cache_hit_rate 0.25\ntrtllm_prompt_tokens_total 10\ntrtllm_generation_tokens_total 20\n",
            [Some(3.0), Some(1.0), Some(0.5), Some(0.25), Some(10.0), Some(20.0)],
        ),
        (
            ServerKind::Triton,
            "nv_inference_request_success{model=\"m\"} 3\nnv_inference_pending_request_count{model=\"m\"} 8\n\
             nv_trt_llm_request_metrics{request_type=\"waiting\"} 1\nnv_trt_llm_request_metrics{request_type=\"scheduled\"} 2\n\
             nv_trt_llm_request_metrics{request_type=\"max\"} 512\n\
             nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\"} 0.125\n\
             nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"tokens_per\"} 64\n",
            [Some(2.0), Some(1.0), Some(0.125), None, None, None],
        ),
        (
            ServerKind::Triton,
            "nv_inference_pending_request_count{model=\"a\"} 8\nnv_inference_pending_request_count{model=\"b\"} 1\n",
            [None, Some(9.0), None, None, None, None],
        ),
        (
            ServerKind::Lmdeploy,
            "lmdeploy:num_requests_running 3\nlmdeploy:num_requests_waiting 1\nlmdeploy:gpu_cache_usage_perc 0.5\n\
             lmdeploy:prefix_cache_hit_rate 0.25\nlmdeploy:prompt_tokens_total 10\nlmdeploy:generation_tokens_total 20\n\
             lmdeploy:iteration_tokens_total_sum 30\n",
            [Some(3.0), Some(1.0), Some(0.5), Some(0.25), Some(10.0), Some(20.0)],
        ),
        (
            ServerKind::MistralRs,
            "mistralrs_time_to_first_token_seconds_count 3\nhttp_requests_in_flight 1\n",
            [None, None, None, None, None, None],
        ),
        (
            ServerKind::Dynamo,
            "dynamo_frontend_inflight_requests{model=\"m\"} 3\ndynamo_frontend_queued_requests{model=\"m\"} 1\n\
             dynamo_frontend_input_sequence_tokens_sum{model=\"m\"} 10\ndynamo_frontend_output_sequence_tokens_sum 19\n\
             dynamo_frontend_output_tokens_total{model=\"m\"} 20\nvllm:generation_tokens_total 20\n",
            [Some(3.0), Some(1.0), None, None, Some(10.0), Some(20.0)],
        ),
    ];
    for (kind, text, expected) in CASES {
        let values = values(*kind, text);
        let Counters { prompt_tokens, generation_tokens, .. } = values.counters;
        let (kv, hits) = (values.kv_cache, values.cache_hit_ratio);
        assert_eq!(
            [values.running, values.waiting, kv, hits, prompt_tokens, generation_tokens],
            *expected,
            "{text}"
        );
    }
    for vocabulary in KNOWN {
        let tested = CASES.iter().any(|(kind, ..)| *kind == vocabulary.kind);
        assert!(tested, "no page of {:?} has values", vocabulary.kind);
    }
}

#[test]
fn each_kind_has_at_most_one_vocabulary() {
    for kind in ServerKind::ALL {
        assert!(KNOWN.iter().filter(|vocabulary| vocabulary.kind == kind).count() <= 1, "{kind:?}");
    }
    let without: Vec<_> = ServerKind::ALL.into_iter().filter(|kind| of(*kind).is_none()).collect();
    let hosted = [
        ServerKind::Openai,
        ServerKind::Anthropic,
        ServerKind::Gemini,
        ServerKind::AzureOpenai,
        ServerKind::Openrouter,
    ];
    assert_eq!(without, [&[ServerKind::Ollama][..], &hosted].concat());
}
