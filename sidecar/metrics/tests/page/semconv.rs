//! Which vintage of the GenAI convention's token metrics is on the page.

use metrics::{Metric, Metrics, Options, Semconv};
use relay::Observer;

use crate::openmetrics::{self, Page};
use crate::records::{plain, refused};

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
    assert_eq!(read, printed, "every way out has the same families");
    page
}

#[test]
fn a_vintage_that_is_switched_off_is_nowhere() {
    for (semconv, inference, usage) in
        [(Semconv::Latest, 7, 0), (Semconv::Legacy, 0, 1), (Semconv::Both, 7, 1)]
    {
        let page = page(semconv);
        let count = |prefix: &str| page.families.iter().filter(|one| one.name.starts_with(prefix)).count();
        assert_eq!(count("gen_ai_client_inference_"), inference, "{semconv:?}");
        assert_eq!(count("gen_ai_client_token_usage"), usage, "{semconv:?}");
        assert_eq!(count("gen_ai_server_"), 3, "{semconv:?}");
        assert_eq!(page.families.len(), Metric::ALL.len() - (7 - inference) - (1 - usage), "{semconv:?}");
    }
}

#[test]
fn usage_is_of_reported_counts_and_zero_without() {
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
    assert_eq!(zeros, 5, "a failed operation shows zeros and not nothing");
    worker.begin(model);
    worker.end(model, &plain("m"));
    assert_eq!(sum(), [20.0, 5.0, 11.0, 3.0]);
}
