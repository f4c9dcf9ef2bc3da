//! The live counter: an overcount is subtracted from later tokens, so that the counter never decreases and does not
//! stay ahead.

use meter::Observer;
use metrics::{Metrics, Options};

use crate::openmetrics;

#[test]
fn overcount_delays_next_increase() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let (ahead, beside) = (worker.model("ahead"), worker.model("beside"));
    let live = |model| {
        let page = openmetrics::read(&metrics.text());
        page.get("tokenmeter_live_output_tokens_total", &[("model", model)]).unwrap()
    };
    assert_eq!(live("ahead"), 0.0, "the series begins at zero, so that the first rate is right");

    worker.live(ahead, 10, 0);
    worker.live(ahead, 0, 4); // the exchange had 6
    assert_eq!(live("ahead"), 10.0);
    worker.live(ahead, 3, 0);
    assert_eq!(live("ahead"), 10.0, "three of four are skipped");
    worker.live(beside, 5, 0);
    assert_eq!(live("beside"), 5.0, "another model has no overcount");
    worker.live(ahead, 3, 0);
    assert_eq!(live("ahead"), 12.0, "6 + 3 + 3");
    worker.live(ahead, 5, 2);
    assert_eq!(live("ahead"), 15.0, "the tokens of the same call are skipped too");
}
