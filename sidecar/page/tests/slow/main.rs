//! Memory of scrapers that request a large page and do not read it, in a process of its own, because it measures
//! memory; and a wait that is longer than other connections may last.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report; clippy knows only #[test] functions"
)]

#[path = "../../../metrics/tests/page/resident.rs"]
mod resident;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use live::{History, Now, Readiness, Step};
use page::{AllowedHosts, Content, Drained, Source};

use resident::resident_kib;

const SCRAPERS: u64 = 20;
const LINES: u64 = 60_000;

/// A page of more than four megabytes, as large as one of fifty busy models; it reports each rendering.
struct Large(Sender<()>);

impl Source for Large {
    fn metrics(&self, _: &str) -> Content {
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
        Content { content_type: "text/plain", write: Box::new(write) }
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

#[test]
fn stalled_scraper_holds_less_than_a_megabyte() {
    let (rendered, pages): (_, Receiver<()>) = channel();
    let hosts = AllowedHosts::new([]);
    let running = page::start(
        SocketAddr::from(([127, 0, 0, 1], 0)).into(),
        hosts,
        page::CONNECTIONS,
        Box::new(Large(rendered)),
    )
    .unwrap();
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

/// A process that drains for longer than a connection may last otherwise.
struct Draining;

impl Source for Draining {
    fn metrics(&self, _: &str) -> Content {
        Content { content_type: "text/plain", write: Box::new(|_| Ok(())) }
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

    fn drained(&self) -> Option<Drained> {
        Some(Box::pin(tokio::time::sleep(Duration::from_secs(32))))
    }
}

#[test]
fn wait_for_the_drain_has_no_time_limit() {
    let hosts = AllowedHosts::default();
    let running = page::start(
        SocketAddr::from(([127, 0, 0, 1], 0)).into(),
        hosts,
        page::CONNECTIONS,
        Box::new(Draining),
    )
    .unwrap();
    let mut stream = TcpStream::connect(running.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"GET /drained HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
