//! The server's counters against the proxy's totals, also over a restart.

use metrics::ServerKind;
use servers::Scrape;

use crate::fake::{Fake, Reply};
use crate::watched::Watched;

fn vllm(prompt: u64, generated: u64) -> String {
    format!(
        "# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total{{engine=\"0\"}} {prompt}.0\n\
         vllm:generation_tokens_total{{engine=\"0\"}} {generated}.0\n"
    )
}

#[test]
fn bypassing_work_drifts_and_restart_resets_it() {
    let fake = Fake::start();
    fake.page(&vllm(1000, 100));
    let watched = Watched::start(&fake, Some(ServerKind::Vllm), Scrape::Auto);
    let drift = |what: &str, input: f64, output: f64| {
        watched.reading_when(what, |reading| {
            (reading.drift_input_tokens, reading.drift_output_tokens) == (Some(input), Some(output))
        })
    };
    let first = drift("the baseline", 0.0, 0.0);
    assert_eq!((first.prompt_tokens, first.generation_tokens), (Some(0.0), Some(0.0)));

    // Thirty and ten through the proxy, twelve and four past it.
    watched.set_totals(30, 10);
    fake.page(&vllm(1042, 114));
    let reading = drift("somebody beside us", 12.0, 4.0);
    assert_eq!((reading.prompt_tokens, reading.generation_tokens), (Some(42.0), Some(14.0)));

    fake.page(&vllm(7, 3));
    let reading = drift("a new baseline", 0.0, 0.0);
    assert_eq!((reading.prompt_tokens, reading.generation_tokens), (Some(0.0), Some(0.0)));
    watched.set_totals(35, 11);
    fake.page(&vllm(12, 4));
    watched.reading_when("five tokens through us", |reading| {
        reading.prompt_tokens == Some(5.0) && reading.drift_input_tokens == Some(0.0)
    });
}

#[test]
fn start_time_reveals_restart_that_counters_hide() {
    let fake = Fake::start();
    let started = |fields, prompt: u64| {
        fake.set("/metrics", Reply::Page(fields, format!("llamacpp:prompt_tokens_total {prompt}\n")));
    };
    started("Process-Start-Time-Unix: 1795221617\r\n", 10);
    let watched = Watched::start(&fake, Some(ServerKind::LlamaCpp), Scrape::On);
    watched.reading_when("the baseline", |reading| reading.prompt_tokens == Some(0.0));
    started("Process-Start-Time-Unix: 1795221617\r\n", 15);
    watched.reading_when("five tokens", |reading| reading.prompt_tokens == Some(5.0));
    started("Process-Start-Time-Unix: 1795221999\r\n", 20);
    watched.reading_when("another process", |reading| reading.prompt_tokens == Some(0.0));
}

#[test]
fn cached_tokens_of_llamacpp_are_counted() {
    let fake = Fake::start();
    let page = |computed: u64, cached: u64| {
        fake.page(&format!(
            "llamacpp:prompt_tokens_total {computed}\nllamacpp:prompt_tokens_cached_total {cached}\n\
             llamacpp:tokens_predicted_total 0\n"
        ));
    };
    page(100, 0);
    let watched = Watched::start(&fake, Some(ServerKind::LlamaCpp), Scrape::On);
    watched.reading_when("the baseline", |reading| reading.prompt_tokens == Some(0.0));
    page(110, 30);
    let reading = watched.reading_when("both", |reading| reading.prompt_tokens == Some(40.0));
    assert_eq!(reading.prefix_cache_hit_ratio, Some(0.75));
    let reading = watched.reading();
    assert_eq!((reading.prompt_tokens, reading.prefix_cache_hit_ratio), (Some(40.0), None), "idle since");
}

#[test]
fn baseline_survives_network_outage() {
    let fake = Fake::start();
    fake.page(&vllm(10, 1));
    let watched = Watched::start(&fake, Some(ServerKind::Vllm), Scrape::Auto);
    watched.reading_when("the baseline", |reading| reading.up == Some(true));
    watched.reach.note(0, false);
    watched.reading_when("the outage", |reading| reading.up == Some(false));
    fake.page(&vllm(16, 2));
    watched.reach.note(0, true);
    let reading = watched.reading_when("the page", |reading| reading.up == Some(true));
    assert_eq!((reading.drift_input_tokens, reading.drift_output_tokens), (Some(6.0), Some(1.0)));
}

/// vLLM without `--enable-prompt-tokens-details`: its page shows cache hits, its usage none.
#[test]
fn cache_hits_without_cached_usage_are_hidden() {
    let page = |prompt: u64, cached: u64| {
        let (computed, with) = (prompt - cached, vllm(prompt, 10));
        format!(
            "{with}vllm:prompt_tokens_by_source_total{{source=\"local_compute\"}} {computed}.0\n\
             vllm:prompt_tokens_by_source_total{{source=\"local_cache_hit\"}} {cached}.0\n"
        )
    };
    let fake = Fake::start();
    fake.page(&page(0, 0));
    let watched = Watched::start(&fake, Some(ServerKind::Vllm), Scrape::Auto);
    let first = watched.reading_when("the baseline", |reading| reading.prompt_tokens == Some(0.0));
    assert!(!first.hides_cached_tokens());
    watched.set_totals(1000, 10);
    fake.page(&page(1000, 600));
    let hidden = watched.reading_when("hidden", |reading| reading.hidden_cached_tokens == Some(600.0));
    assert!(hidden.hides_cached_tokens());
    assert_eq!(hidden.prompt_source_tokens, [Some(400.0), Some(600.0), None]);
    watched.cached(600);
    let told = watched.reading_when("reported", |reading| reading.hidden_cached_tokens == Some(0.0));
    assert!(!told.hides_cached_tokens());
}
