//! Memory of scrapers that request a large page and do not read it. It runs in a process of its own, because it
//! measures memory.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report; clippy knows only #[test] functions"
)]

#[path = "../../../metrics/tests/page/resident.rs"]
mod resident;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use page::{AllowedHosts, Readiness, Scrape, Source, View};

use resident::resident_kib;

const SCRAPERS: u64 = 20;
const LINES: u64 = 60_000;

/// A page of more than four megabytes, as large as one of fifty busy models; it reports each rendering.
struct Large(Sender<()>);

impl Source for Large {
    fn metrics(&self, _: &str) -> Scrape {
        let rendered = self.0.clone();
        let write = move |out: &mut dyn Write| {
            for at in 0..LINES {
                let (model, edge, n) = (at / 1200, at % 20, at.wrapping_mul(2_654_435_761) % 100_000);
                writeln!(
                    out,
                    "tokenmeter_of_something_seconds_bucket{{le=\"{edge}.0\",model=\"model-{model}\"}} {n}"
                )?;
            }
            rendered.send(()).map_err(std::io::Error::other)
        };
        Scrape { content_type: "text/plain", write: Box::new(write) }
    }

    fn ready(&self) -> Readiness {
        Readiness::Ready
    }

    fn view(&self) -> View {
        View::default()
    }
}

#[test]
fn stalled_scraper_holds_less_than_a_megabyte() {
    let (rendered, pages): (_, Receiver<()>) = channel();
    let hosts = AllowedHosts::new([]);
    let running =
        page::start(([127, 0, 0, 1], 0).into(), hosts, page::CONNECTIONS, Box::new(Large(rendered))).unwrap();
    let ask = || {
        let mut stream = TcpStream::connect(running.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        // The head has arrived, so the page is being sent.
        pages.recv_timeout(Duration::from_secs(60)).unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        stream
    };
    // One complete read, so that lazy allocations have happened.
    let mut whole = Vec::new();
    ask().read_to_end(&mut whole).unwrap();
    assert!(whole.len() > 4_000_000, "{} B", whole.len());
    whole = Vec::new();
    drop(whole);

    let before = resident_kib();
    let silent: Vec<_> = (0..SCRAPERS).map(|_| ask()).collect();
    let grown = resident_kib().saturating_sub(before);
    println!("{} KiB for each of {SCRAPERS}", grown / SCRAPERS);
    assert!(grown < SCRAPERS * 1024, "{grown} KiB");
    drop(silent);
}
