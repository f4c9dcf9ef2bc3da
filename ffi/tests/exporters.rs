//! A C program whose library has exporters: what scrapers, the ledger and a collector get is what the records say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use collector::faithful::{Collector, said};

use crate::programs::SANITIZE;
use crate::toolchain::Language::C11;
use crate::toolchain::{compile, run, temporary};

/// The exchanges that end while exporters run: two rounds of four threads with 25 each, and one after a restart.
const BEFORE_RESTART: usize = 200;
const IN_LEDGER: u64 = 300;

fn get(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).expect("it listens");
    connection.set_read_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
    write!(connection, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")
        .expect("it reads");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("it is text");
    answer
}

fn has_line(page: &str, begin: &str, end: &str) -> bool {
    page.lines().any(|line| line.starts_with(begin) && line.ends_with(end))
}

fn run_exporters(name: &str, flags: &[&str]) {
    let collector = Collector::new();
    let folder = temporary(&format!("exporters-{name}"));
    let ledger = folder.join("ledger.db");
    let mut child = Command::new(compile("exporters", C11, flags))
        .arg(&ledger)
        .arg(format!("http://{}", collector.address))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was compiled");
    let mut printed = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let mut address = String::new();
    printed.read_line(&mut address).expect("it is text");
    let address = address.trim();
    assert!(!address.is_empty(), "the program failed: {:?}", child.wait());

    let page = get(address, "/metrics");
    assert!(has_line(&page, "tokenmeter_exchanges_total{", " 200"), "{page}");
    // 100 exchanges at 0.000011 and 100 at 0.000022.
    assert!(has_line(&page, "tokenmeter_tenant_spend_usd_total{", " 0.0033"), "{page}");
    assert!(get(address, "/readyz").contains(" 200 "), "nothing is wrong");
    assert!(get(address, "/drained").contains(" 403 "), "there is no drain to wait for");
    assert!(get(address, "/").contains("<title>tokenmeter</title>"), "there is a live page");
    assert!(has_model(address), "its numbers have the model");

    child.stdin.take().expect("it is a pipe").write_all(b"\n").expect("it reads");
    let mut rest = String::new();
    printed.read_to_string(&mut rest).expect("it is text");
    assert!(child.wait().expect("it was started").success() && rest.contains("ok"), "{rest}");

    let files = ledger::overview(&ledger).expect("there is a ledger").files;
    let facts = files.iter().map(|file| file.facts.as_ref().expect("it can be read"));
    let (rows, gaps) = facts.fold((0, 0), |(rows, gaps), facts| (rows + facts.rows, gaps + facts.gaps));
    assert_eq!((rows, gaps), (IN_LEDGER, 0));

    let seen = collector.seen();
    let records = seen.log_records();
    assert_eq!(records.len() as u64, IN_LEDGER, "one log record for each exchange");
    let costs: Vec<_> = records
        .iter()
        .map(|record| said(&record.attributes, "tokenmeter.cost").expect("it has a cost"))
        .collect();
    assert_eq!(costs.iter().filter(|cost| *cost == "0.000011").count(), BEFORE_RESTART / 2, "{costs:?}");
    assert!(!seen.metrics().is_empty(), "the last metrics are sent at the shutdown");
    assert!(seen.spans().is_empty());
}

/// Waits until a sample of the live page has the model.
fn has_model(address: &str) -> bool {
    (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        get(address, "/api/now").contains(r#""name":"tiny""#)
    })
}

#[test]
fn exporters_have_what_records_have() {
    run_exporters("plain", &["-D_GNU_SOURCE"]);
}

#[test]
fn exporters_use_memory_well() {
    run_exporters("sanitized", &[&SANITIZE[..], &["-D_GNU_SOURCE"]].concat());
}

#[test]
fn clients_that_leave_send_no_signal() {
    let ledger = temporary("clients").join("ledger.db");
    let variables = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9";
    let program = compile("clients", C11, &["-D_GNU_SOURCE"]);
    assert!(run(Command::new(program).arg(ledger).arg(variables)).contains("ok"));
}
