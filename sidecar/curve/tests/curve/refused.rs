//! Pages that give no curve, and ones that give an empty one.

use curve::{Curves, Reading, Unreadable, Window, json, svg, table};
use metrics::{Metrics, Options};

#[test]
fn another_programs_page_is_refused() {
    for page in [
        "",
        "<html><body>hello</body></html>",
        "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n",
        "{\"object\": \"list\"}",
    ] {
        assert_eq!(Reading::of(page), Err(Unreadable::NotOurs), "{page}");
    }
}

#[test]
fn a_page_that_is_cut_is_refused() {
    let page = "tokenmeter_build_info{version=\"1.0.0\"} 1\ntokenmeter_request_output_token_rate_per_sec";
    assert_eq!(Reading::of(page), Err(Unreadable::TooLong));
}

#[test]
fn another_process_has_another_start() {
    let page = |start: u64| {
        format!("tokenmeter_build_info{{version=\"1\"}} 1\nprocess_start_time_seconds {start}\n")
    };
    let (one, other) = (Reading::of(&page(1)).unwrap(), Reading::of(&page(2)).unwrap());
    assert_eq!(other.less(&one), Err(Unreadable::Restarted));
    assert!(one.less(&one).is_ok());
}

#[test]
fn a_new_process_has_no_curve_and_no_way_to_say_so_panics() {
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
fn labels_nobody_knows_are_left_out() {
    let page = "tokenmeter_build_info{version=\"1\"} 1\n\
        tokenmeter_output_position_tokens_total{model=\"m\",position=\"9-10\"} 5\n\
        tokenmeter_output_position_tokens_total{position=\"1-64\"} 5\n\
        tokenmeter_output_position_tokens_total{model=\"m\",position=\"1-64\"} 5\n\
        tokenmeter_request_output_token_rate_per_second_bucket{model=\"m\",concurrency=\"many\",le=\"1\"} 5\n\
        tokenmeter_request_output_token_rate_per_second_bucket{model=\"m\",concurrency=\"1\",le=\"one\"} 5\n";
    let curves = Curves::of(&Reading::of(page).unwrap(), Window::SinceStart, None);
    assert!(curves.models[0].crowds.is_empty());
    assert_eq!(curves.models[0].positions.len(), 1);
    assert_eq!(curves.models[0].upstream, None, "a page from before upstreams were named");
    assert!(table(&curves).starts_with("m: "));
    // Tokens without a time.
    assert!(json(&curves).contains("\"tokens_per_second\": null"));
    table(&curves);
    svg(&curves).unwrap();
}
