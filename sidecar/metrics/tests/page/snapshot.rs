//! The snapshot for the live page.

use meter::Ending;
use meter::{Observer, Passthrough, Refusal};
use metrics::{Metrics, Options};

use crate::records::{plain, refused};

#[test]
fn snapshot_sums_workers_and_interpolates_quantiles() {
    let metrics = Metrics::new(Options::default());
    metrics.set_upstream_up("gpu-1", true);
    let mut workers = [metrics.worker(), metrics.worker()];
    for (at, worker) in workers.iter_mut().enumerate() {
        let model = worker.model("qwen3-8b");
        for ms in 1..=50u64 {
            worker.begin(model);
            let mut record = plain("qwen3-8b");
            // 1 to 100 ms over both workers, 1 to 100 tokens per second.
            record.timing.first_token_ns = Some((ms + 50 * at as u64) * 1_000_000);
            record.timing.output_rate = Some((ms + 50 * at as u64) as f64);
            record.timing.concurrency = ms as f64;
            worker.live(model, 11, 0);
            worker.end(model, &record);
        }
        worker.begin(model);
        worker.end(model, &refused("qwen3-8b"));
        worker.begin(model);
        worker.end(model, &meter::Record { ending: Ending::ClientAbort, ..refused("qwen3-8b") });
        worker.begin(model);
        worker.passthrough(Passthrough::Path);
        worker.refuse(Refusal::Host);
    }

    let snapshot = metrics.snapshot();
    assert_eq!((snapshot.passthrough, snapshot.refused, snapshot.dropped), (2, 2, 0));
    assert_eq!(snapshot.upstreams, [("gpu-1".into(), true)]);
    let names: Vec<_> = snapshot.models.iter().map(|model| &*model.model).collect();
    assert_eq!(names, ["_unknown", "qwen3-8b"]);
    let model = &snapshot.models[1];
    assert_eq!((model.exchanges, model.errors, model.aborts, model.in_flight), (104, 2, 2, 2));
    assert_eq!((model.input_tokens, model.output_tokens, model.live_output_tokens), (2000, 1100, 1100));
    // 50 ms is the middle of the bucket from 40 to 60 ms, in which the observations are evenly distributed.
    assert!((model.first_token_p50_s.unwrap() - 0.050).abs() < 1e-9);
    assert!((model.first_token_p99_s.unwrap() - 0.099).abs() < 1e-9);
    assert!((model.output_rate_p50.unwrap() - 50.0).abs() < 1e-9);
    let unknown = &snapshot.models[0];
    assert_eq!((unknown.exchanges, unknown.first_token_p50_s, unknown.output_rate_p50), (0, None, None));
}
