//! Pages that give no curve, and pages that give an empty one.

use curve::{Curves, Reading, ReadingError, Window, json, svg, table};
use metrics::{Metrics, Options};

#[test]
fn other_programs_pages_are_rejected() {
    for page in [
        "",
        "<html><body>hello</body></html>",
        "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n",
        "{\"object\": \"list\"}",
    ] {
        assert_eq!(Reading::of(page), Err(ReadingError::NotTokenmeter), "{page}");
    }
}

#[test]
fn truncated_page_is_rejected() {
    let page = "tokenmeter_build_info{version=\"1.0.0\"} 1\ntokenmeter_request_output_token_rate_per_sec";
    assert_eq!(Reading::of(page), Err(ReadingError::TooLong));
}

#[test]
fn other_start_time_is_a_restart() {
    let page = |start: u64| {
        format!("tokenmeter_build_info{{version=\"1\"}} 1\nprocess_start_time_seconds {start}\n")
    };
    let (one, other) = (Reading::of(&page(1)).unwrap(), Reading::of(&page(2)).unwrap());
    assert_eq!(other.less(&one), Err(ReadingError::Restarted));
    assert!(one.less(&one).is_ok());
}

#[test]
fn new_process_gives_empty_output_in_every_format() {
    let metrics = Metrics::new(Options::default());
    let _worker = metrics.worker();
    let reading = Reading::of(&metrics.text()).unwrap();
    assert_eq!(reading.models().count(), 0);
    let curves = Curves::of(&reading, Window::SinceStart, None);
    assert!(curves.models.is_empty());
    assert!(table(&curves).contains("an estimate") && json(&curves).contains("\"models\": []"));
    assert!(svg(&curves).unwrap().ends_with("</svg>\n"));
}

#[test]
fn unknown_labels_are_skipped() {
    let page = "tokenmeter_build_info{version=\"1\"} 1\n\
        tokenmeter_output_position_tokens_total{model=\"m\",position=\"9-10\"} 5\n\
        tokenmeter_output_position_tokens_total{position=\"1-64\"} 5\n\
        tokenmeter_output_position_tokens_total{model=\"m\",position=\"1-64\"} 5\n\
        tokenmeter_request_output_token_rate_per_second_bucket{model=\"m\",concurrency=\"many\",le=\"1\"} 5\n\
        tokenmeter_request_output_token_rate_per_second_bucket{model=\"m\",concurrency=\"1\",le=\"one\"} 5\n";
    let curves = Curves::of(&Reading::of(page).unwrap(), Window::SinceStart, None);
    assert!(curves.models[0].by_concurrency.is_empty());
    assert_eq!(curves.models[0].positions.len(), 1);
    assert_eq!(curves.models[0].upstream, None, "an older page without upstreams");
    assert!(table(&curves).starts_with("m: "));
    // Tokens without a duration.
    assert!(json(&curves).contains("\"tokens_per_second\": null"));
    table(&curves);
    svg(&curves).unwrap();
}
