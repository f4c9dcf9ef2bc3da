//! Scrapes while a worker writes: the page is complete, a histogram's count is the sum of its buckets (the reader
//! checks it), no counter decreases, and no observation is lost.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use meter::Observer;
use metrics::{Format, Metrics, Options, WorkerCells};

use crate::control::Numbered;
use crate::openmetrics::{self, Page};
use crate::records::plain;

#[test]
fn scrapes_during_writes_are_complete_and_monotonic() {
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
                assert!(page.samples[series] >= *earlier, "{series:?} decreased");
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

/// A writer that acts as worker and as control plane at each write, on the rendering thread: a lock held during
/// rendering would deadlock.
struct ActingWriter {
    metrics: Metrics,
    worker: WorkerCells,
    pieces: u64,
}

impl Write for ActingWriter {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.pieces += 1;
        let model = self.worker.model(&format!("met while rendering {}", self.pieces % 60));
        self.worker.begin(model);
        self.worker.end(model, &plain(""));
        self.metrics.set_upstream_up("gpu-1", true);
        self.metrics.attribution([].into_iter(), [].into_iter(), Arc::new(Numbered(0)));
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn no_lock_is_held_while_page_is_rendered() {
    for format in Format::ALL {
        let metrics = Metrics::new(Options::default());
        let mut writer = ActingWriter { metrics: metrics.clone(), worker: metrics.worker(), pieces: 0 };
        metrics.scrape(format).write(format, &mut writer).unwrap();
        let page = openmetrics::read(&metrics.text());
        assert_eq!(page.sum("tokenmeter_exchanges_total"), writer.pieces as f64);
        assert!(writer.pieces > 60);
    }
}
