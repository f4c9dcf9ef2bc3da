//! The counts of the metrics page equal those of the server, for every shape and endpoint, for streams, and for
//! clients that disconnect.

use faults::{Counts, Options, Server, Shape};
use simulator::load::Load;
use simulator::params::Endpoint;
use simulator::speed::Model;

use crate::meter_page::Page;
use crate::proxy::{DEADLINE, Proxy};

/// Runs `load` through a proxy in front of a simulated server.
async fn run(options: Options, change: impl FnOnce(&mut Load)) -> (Counts, Page, simulator::load::Report) {
    run_with(&[], options, change).await
}

/// The same with more flags.
async fn run_with(
    flags: &[&str],
    options: Options,
    change: impl FnOnce(&mut Load),
) -> (Counts, Page, simulator::load::Report) {
    let server = Server::bind("127.0.0.1:0".parse().expect("an address"), options).await.expect("it listens");
    let proxy = Proxy::start(server.addr(), flags);
    let mut load = Load::new(proxy.data);
    load.requests = 60;
    load.concurrency = 6;
    load.model = Some("sim".to_owned());
    change(&mut load);
    let requests = load.requests as f64;
    let report = simulator::load::run(&load).await.expect("the load can run");
    let page = proxy.page_when("every exchange has ended", |page| {
        page.sum("tokenmeter_exchanges_total", &[]) == requests
            && page.sum("tokenmeter_exchanges_in_flight", &[]) == 0.0
    });
    let idle = server.until(DEADLINE, |counts| counts.running == 0).await;
    (idle.expect("the server stops with its clients"), page, report)
}

fn tokens(page: &Page, kind: &str, provenance: &str) -> f64 {
    page.sum("tokenmeter_tokens_total", &[("type", kind), ("provenance", provenance)])
}

#[tokio::test]
async fn reported_counts_equal_the_servers() {
    for (shape, endpoint) in [
        (Shape::Vllm, Endpoint::Chat),
        (Shape::Vllm, Endpoint::Completion),
        (Shape::LlamaCpp, Endpoint::Chat),
        (Shape::LlamaCpp, Endpoint::Completion),
        (Shape::LlamaCpp, Endpoint::Native),
    ] {
        let (counts, page, report) = run(Options::instant(shape), |load| load.endpoint = endpoint).await;
        assert_eq!(report.completed, 60, "{shape:?} {endpoint:?}: {report:?}");
        assert_eq!(
            tokens(&page, "output", "reported"),
            counts.generated_tokens as f64,
            "{shape:?} {endpoint:?}"
        );
        assert_eq!(tokens(&page, "input", "reported"), counts.prompt_tokens as f64, "{shape:?} {endpoint:?}");
        assert_eq!(tokens(&page, "input_cached", "reported"), counts.cached_tokens as f64);
        assert_eq!(
            page.sum("tokenmeter_tokens_total", &[]),
            (counts.generated_tokens + counts.prompt_tokens + counts.cached_tokens) as f64,
            "no tokens under another provenance"
        );
        assert_eq!(
            page.sum("tokenmeter_live_output_tokens_total", &[("model", "sim")]),
            counts.generated_tokens as f64,
            "the live counter reaches the final count"
        );
        assert_eq!(page.sum("gen_ai_server_time_to_first_token_seconds_count", &[]), 60.0);
    }
}

#[tokio::test]
async fn usage_is_requested_if_the_client_did_not() {
    for shape in [Shape::Vllm, Shape::LlamaCpp] {
        let (counts, page, report) = run(Options::instant(shape), |load| load.usage = false).await;
        assert_eq!(report.completed, 60, "{shape:?}: {report:?}");
        assert_eq!(tokens(&page, "output", "reported"), counts.generated_tokens as f64, "{shape:?}");
        assert_eq!(page.sum("tokenmeter_usage_steps_total", &[("step", "injected")]), 60.0, "{shape:?}");
        assert_eq!(page.sum("tokenmeter_dropped_total", &[]), 0.0, "{shape:?}");
    }
}

#[tokio::test]
async fn count_without_usage_is_marked_as_estimate() {
    let observe = ["--usage", "observe"];
    let (counts, page, _) =
        run_with(&observe, Options::instant(Shape::Vllm), |load| load.usage = false).await;
    assert_eq!(tokens(&page, "output", "reported"), 0.0);
    // One token a frame in this stream, so the estimate equals the count.
    assert_eq!(tokens(&page, "output", "frames"), counts.generated_tokens as f64);
    assert_eq!(
        page.sum("tokenmeter_usage_provenance_total", &[("direction", "input"), ("provenance", "none")]),
        60.0
    );
}

#[tokio::test]
async fn aborted_stream_is_counted_until_the_abort() {
    let slow = Options {
        shape: Shape::Vllm,
        speed: Model { factor: 4.0, ..Model::default() },
        ..Options::default()
    };
    let (counts, page, report) = run(slow, |load| {
        load.leave_after = Some(5);
        load.output_tokens = 4_000;
        load.fields.push((
            "stream_options".to_owned(),
            serde_json::json!({
                "include_usage": true, "continuous_usage_stats": true,
            }),
        ));
    })
    .await;
    assert_eq!(report.left, 60);
    assert_eq!(page.sum("tokenmeter_exchanges_total", &[("ending", "client_abort")]), 60.0);
    let metered = tokens(&page, "output", "running");
    assert!(metered >= 5.0 * 60.0, "{metered}");
    assert!(metered <= counts.generated_tokens as f64, "{metered} of {}", counts.generated_tokens);
    let left = [("error_type", "client_disconnect")];
    assert_eq!(page.sum("gen_ai_server_request_duration_seconds_count", &left), 60.0);
    assert_eq!(page.sum("gen_ai_server_request_duration_seconds_count", &[]), 60.0);
    assert_eq!(page.sum("gen_ai_server_time_to_first_token_seconds_count", &[]), 0.0, "successes only");
}
