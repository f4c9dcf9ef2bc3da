//! A scrape while a worker writes: the page is whole, a histogram's count is the sum of its buckets
//! (the reader checks it), no counter steps back, and nothing is missing in the end.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use metrics::{Metrics, Options};
use relay::Observer;

use crate::openmetrics::{self, Page};
use crate::records::plain;

#[test]
fn scrapes_during_writes_are_whole_and_monotonic() {
    const EXCHANGES: u64 = 20_000;
    let metrics = Metrics::new(Options::default());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut cells = metrics.worker();
        let done = &done;
        scope.spawn(move || {
            for at in 0..EXCHANGES {
                let model = cells.model(&format!("model-{}", at % 3));
                let unknown = cells.unknown_model();
                cells.begin(unknown);
                cells.admit(unknown, model);
                cells.live(model, 11, 0);
                let mut record = plain("");
                record.timing.first_token_ns = Some(at * 10_000);
                cells.end(model, &record);
            }
            done.store(true, Relaxed);
        });
        let mut before = Page::default();
        while !done.load(Relaxed) {
            let page = openmetrics::read(&metrics.text());
            for (series, earlier) in before.samples.iter().filter(|(series, _)| grows(&series.name)) {
                assert!(page.samples[series] >= *earlier, "{series:?} stepped back");
            }
            before = page;
        }
    });
    let page = openmetrics::read(&metrics.text());
    assert_eq!(page.sum("tokenmeter_exchanges_total"), EXCHANGES as f64);
    assert_eq!(page.sum("tokenmeter_live_output_tokens_total"), (EXCHANGES * 11) as f64);
    assert_eq!(page.sum("tokenmeter_inter_token_seconds_count"), (EXCHANGES * 10) as f64);
    assert_eq!(page.sum("tokenmeter_exchanges_in_flight"), 0.0);
}

fn grows(name: &str) -> bool {
    ["_total", "_bucket", "_count", "_sum"].iter().any(|suffix| name.ends_with(suffix))
}
