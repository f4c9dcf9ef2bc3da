//! Faulty servers: a reading without values, followed by a normal one.

use std::time::Duration;

use metrics::EngineReading;
use metrics::ServerKind;
use servers::Scrape;

use crate::fake::{Fake, Reply};
use crate::watched::Watched;

#[test]
fn unreadable_page_is_reading_without_values() {
    for says in [
        Reply::Status(404, "not here".to_owned()),
        Reply::Status(401, "vllm:num_requests_running 1\n".to_owned()),
        Reply::Status(501, String::new()),
        Reply::Status(500, String::new()),
        Reply::Status(301, "vllm:num_requests_running 1\n".to_owned()),
        Reply::Cut,
        Reply::Endless,
        Reply::Noise,
        Reply::Page("", "[{\"iter\": 1, \"gpuMemUsage\": 2}]".to_owned()),
        Reply::Page("", "<html>\n<body>It works</body>\n</html>\n".to_owned()),
        Reply::Page("", "sglang:token_usage 0.5\n".to_owned()),
    ] {
        let fake = Fake::start();
        fake.set("/metrics", says.clone());
        let watched = Watched::start(&fake, Some(ServerKind::Vllm), Scrape::Auto);
        let none =
            EngineReading { up: Some(false), kind: Some(ServerKind::Vllm), ..EngineReading::default() };
        assert_eq!(watched.reading(), none, "{says:?}");
    }
}

#[test]
fn silent_server_times_out_and_is_retried() {
    let fake = Fake::start();
    fake.set("/metrics", Reply::Nothing);
    let watched = Watched::start(&fake, Some(ServerKind::Vllm), Scrape::Auto);
    assert_eq!(watched.reading().up, Some(false));
    fake.page("vllm:num_requests_running 3\n");
    let reading = watched.reading_when("the page", |reading| reading.up == Some(true));
    assert_eq!(reading.running_requests, Some(3.0));
}

#[test]
fn failure_is_retried_and_denial_is_not() {
    for (status, repeats) in [(404, false), (501, false), (401, false), (503, true), (500, true)] {
        let fake = Fake::start();
        fake.set("/metrics", Reply::Status(status, String::new()));
        let watched = Watched::start(&fake, Some(ServerKind::Tgi), Scrape::Auto);
        assert_eq!(watched.reading().up, Some(false));
        if repeats {
            assert_eq!(watched.reading().up, Some(false), "{status} is asked again");
            continue;
        }
        // Ten times the usual interval.
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(fake.requests(), ["/metrics"], "{status} is not asked again");
        // Only a restart can change the reply, and it is noticed.
        fake.page("tgi_queue_size 1\n");
        watched.reach.note(0, false);
        watched.reach.note(0, true);
        watched.reading_when("the page", |reading| reading.waiting_requests == Some(1.0));
    }
}

#[test]
fn invalid_lines_affect_no_other() {
    let fake = Fake::start();
    fake.page(
        "vllm:num_requests_running{engine=\"0\"} 1\r\nvllm:num_requests_waiting{engine=\"0} 5\r\n\
         vllm:kv_cache_usage_perc NaN\nvllm:generation_tokens_total one\nvllm:prompt_tokens_total 5 # {} 1\n\u{1b}[31m\n",
    );
    let watched = Watched::start(&fake, Some(ServerKind::Vllm), Scrape::Auto);
    let reading = watched.reading();
    assert_eq!((reading.up, reading.running_requests), (Some(true), Some(1.0)));
    assert_eq!((reading.waiting_requests, reading.kv_cache_usage_ratio), (None, None));
    assert_eq!((reading.prompt_tokens, reading.generation_tokens), (Some(0.0), None));
}

#[test]
fn page_of_another_kind_restarts_detection() {
    let fake = Fake::start();
    fake.set("/v1/models", Reply::Page("", "{\"owned_by\":\"vllm\"}".to_owned()));
    fake.page("vllm:num_requests_running 1\n");
    let watched = Watched::start(&fake, None, Scrape::Auto);
    assert_eq!(watched.detected().kind, ServerKind::Vllm);
    watched.reading_when("the page", |reading| reading.up == Some(true));
    // Replaced behind a proxy, so that it was always reachable.
    fake.set("/v1/models", Reply::Page("", "{\"owned_by\":\"lmdeploy\"}".to_owned()));
    fake.page("lmdeploy:num_requests_running 2\n");
    assert_eq!(watched.detected().kind, ServerKind::Lmdeploy);
    watched.reading_when("its page", |reading| reading.running_requests == Some(2.0));
}
