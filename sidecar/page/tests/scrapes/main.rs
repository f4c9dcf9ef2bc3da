//! Concurrent scrapes while workers write: every page is complete and consistent, and the final numbers are exact.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report; clippy knows only #[test] functions"
)]

#[expect(dead_code, reason = "shared with the tests of the page's numbers")]
#[path = "../../../metrics/tests/page/openmetrics.rs"]
mod openmetrics;
#[expect(dead_code, reason = "shared with the tests of the page's numbers")]
#[path = "../../../metrics/tests/page/records.rs"]
mod records;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use flate2::read::GzDecoder;
use live::{History, Now, Readiness, Step};
use meter::Observer;
use metrics::{Format, Metrics, Options};
use page::{AllowedHosts, Content, Source};

use openmetrics::Page;
use records::plain;

const SCRAPERS: usize = 100;
const WORKERS: usize = 2;

struct Meter(Metrics);

impl Source for Meter {
    fn metrics(&self, accept: &str) -> Content {
        let (format, metrics) = (Format::accepted(accept), self.0.clone());
        let write = move |out: &mut dyn Write| metrics.scrape(format).write(format, out);
        Content { content_type: format.content_type(), write: Box::new(write) }
    }

    fn ready(&self) -> Readiness {
        Readiness::Ready
    }

    fn sample(&mut self) -> Now {
        Now::default()
    }

    fn history(&self, _: &str, _: Step) -> Option<History> {
        None
    }
}

/// Returns one page, with retries after 503.
fn scrape(address: SocketAddr, at: usize) -> Page {
    loop {
        if let Some(page) = ask(address, at) {
            return page;
        }
        thread::sleep(Duration::from_secs(1));
    }
}

/// Returns one response; every other scraper accepts gzip, and one in ten reads slowly.
fn ask(address: SocketAddr, at: usize) -> Option<Page> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let encoding = if at.is_multiple_of(2) { "gzip" } else { "identity" };
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAccept: application/openmetrics-text\r\n\
         Accept-Encoding: {encoding}\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    if at.is_multiple_of(10) {
        let mut few = [0; 1024];
        while let read @ 1.. = stream.read(&mut few).unwrap() {
            answer.extend_from_slice(&few[..read]);
            thread::yield_now();
        }
    } else {
        stream.read_to_end(&mut answer).unwrap();
    }
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&answer[..end]);
    if head.starts_with("HTTP/1.1 503 ") && head.contains("retry-after: 1\r\n") {
        return None;
    }
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let mut text = String::new();
    match encoding {
        "gzip" => _ = GzDecoder::new(&answer[end..]).read_to_string(&mut text).unwrap(),
        _ => text.push_str(std::str::from_utf8(&answer[end..]).unwrap()),
    }
    Some(openmetrics::read(&text))
}

#[test]
fn concurrent_scrapes_are_complete_while_workers_write() {
    let metrics = Metrics::new(Options::default());
    let hosts = AllowedHosts::new([]);
    let running = page::start(
        SocketAddr::from(([127, 0, 0, 1], 0)).into(),
        hosts,
        page::CONNECTIONS,
        Box::new(Meter(metrics.clone())),
    )
    .unwrap();
    let address = running.address();
    let (done, start) = (AtomicBool::new(false), Barrier::new(SCRAPERS));
    let written: u64 = thread::scope(|scope| {
        let (done, start) = (&done, &start);
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let mut cells = metrics.worker();
                scope.spawn(move || {
                    let mut written = 0;
                    while !done.load(Relaxed) {
                        let model = cells.model(&format!("model-{}", written % 5));
                        cells.begin(model);
                        cells.end(model, &plain(""));
                        written += 1;
                        // Yields the cores to the scrapers.
                        thread::yield_now();
                    }
                    written
                })
            })
            .collect();
        let scrapers: Vec<_> = (0..SCRAPERS)
            .map(|at| {
                scope.spawn(move || {
                    start.wait();
                    scrape(address, at)
                })
            })
            .collect();
        // The reader of the page checks buckets, count and sum.
        let pages: Vec<_> = scrapers.into_iter().map(|scraper| scraper.join()).collect();
        done.store(true, Relaxed);
        let written: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        for page in pages {
            let page = page.unwrap();
            // The cells of an exchange that is just ending may be partly written. They are read in the order in which
            // they are written, so that no other difference is possible.
            let ended = page.sum("tokenmeter_exchanges_total");
            let first = page.sum("tokenmeter_time_to_first_token_seconds_count");
            assert!(
                first + WORKERS as f64 >= ended && first <= written as f64,
                "{first} of {ended}, {written}"
            );
        }
        written
    });
    let page = scrape(address, 1);
    assert_eq!(page.sum("tokenmeter_exchanges_total"), written as f64);
    assert_eq!(page.sum("tokenmeter_tokens_total"), (written * 31) as f64);
    assert_eq!(page.sum("tokenmeter_time_to_first_token_seconds_count"), written as f64);
    assert_eq!(page.sum("tokenmeter_exchanges_in_flight"), 0.0);
    assert!(page.sum("tokenmeter_scrapes_total") >= SCRAPERS as f64);
}
