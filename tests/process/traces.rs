//! One exchange at a collector: nested spans in the caller's trace, the right parent sent to the upstream, and a log
//! record and exemplars with the same ids. The request is slow, so that times from its end differ from those from its head.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use collector::faithful::{Collector, said};
use faults::{Handle, Options, Server, Shape};
use simulator::speed::Model;

use crate::proxy::Proxy;
use crate::tap::Tap;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
const STATE: &str = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";
/// The pause between the two halves of the body.
const PAUSE: Duration = Duration::from_millis(300);
const TOKENS: u64 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_slow_upload_over_http() {
    let server = server().await;
    tokio::task::block_in_place(|| arrives("http/protobuf", &server));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_slow_upload_over_grpc() {
    let server = server().await;
    tokio::task::block_in_place(|| arrives("grpc", &server));
}

async fn server() -> Handle {
    let speed = Model { step_base: Duration::from_millis(20), jitter: 0.0, ..Model::default() };
    let options = Options { shape: Shape::Vllm, speed, ..Options::default() };
    Server::bind("127.0.0.1:0".parse().expect("an address"), options).await.expect("it listens")
}

fn arrives(protocol: &str, server: &Handle) {
    let tap = Tap::before(server.addr());
    let collector = Collector::new();
    let endpoint = format!("http://{}", collector.address);
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
        ("OTEL_METRIC_EXPORT_INTERVAL", "100"),
    ];
    let signals = ["--otlp-signals", "metrics,traces,logs", "--drain-delay-ms", "0"];
    let mut proxy = Proxy::start_with(tap.address, &signals, &environment);
    ask_slowly(&proxy);
    let page = proxy.page_when("it ended", |page| page.sum("tokenmeter_exchanges_total", &[]) == 1.0);
    drop(collector.once(|seen| !seen.metrics.is_empty()));
    // The last flush sends the rest.
    proxy.terminate();
    assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());

    let seen = collector.seen();
    let [server, client] = &seen.spans()[..] else { panic!("two spans: {:?}", seen.spans()) };
    for span in [server, client] {
        assert_eq!((hex(&span.trace_id), &*span.trace_state), (TRACE.to_owned(), STATE));
    }
    assert_eq!((server.kind, client.kind), (SERVER, CLIENT));
    assert_eq!(hex(&server.parent_span_id), CALLER);
    assert_eq!(client.parent_span_id, server.span_id);
    let told = format!("\r\ntraceparent: 00-{TRACE}-{}-01\r\n", hex(&client.span_id));
    let sent = tap.sent();
    assert!(sent.contains(&told), "not {told:?} but {sent}");
    assert!(sent.contains(&format!("\r\ntracestate: {STATE}\r\n")), "{sent}");

    // The upload took its time; the inference began after it.
    let begins = Duration::from_nanos(client.start_time_unix_nano - server.start_time_unix_nano);
    assert!(begins >= PAUSE, "the inference began {begins:?} after the request's head");
    assert!(client.start_time_unix_nano < client.end_time_unix_nano);
    assert!(client.end_time_unix_nano <= server.end_time_unix_nano);
    let first = client.events.iter().find(|event| event.name == "tokenmeter.first_token").expect("a token");
    let answering = client.start_time_unix_nano..=client.end_time_unix_nano;
    assert!(answering.contains(&first.time_unix_nano), "{first:?} within {answering:?}");

    // The same count in every signal.
    let output = page.sum("tokenmeter_tokens_total", &[("type", "output"), ("provenance", "reported")]);
    assert_eq!(output, TOKENS as f64);
    let [log] = &seen.log_records()[..] else { panic!("one log record: {:?}", seen.log_records()) };
    for (place, attributes) in [("span", &client.attributes), ("log record", &log.attributes)] {
        let told = said(attributes, "gen_ai.usage.output_tokens");
        assert_eq!(told, Some(TOKENS.to_string()), "the {place}");
    }
    assert_eq!((&log.trace_id, &log.span_id), (&client.trace_id, &client.span_id));
    assert_eq!(log.time_unix_nano, server.end_time_unix_nano);
    let seconds = |key| said(&log.attributes, key).and_then(|text| text.parse::<f64>().ok()).expect(key);
    let lasted = (client.end_time_unix_nano - client.start_time_unix_nano) as f64 / 1e9;
    assert!((seconds("tokenmeter.duration") - lasted).abs() < 1e-6, "{lasted}");
    assert!((seconds("tokenmeter.upload") - begins.as_secs_f64()).abs() < 1e-6, "{begins:?}");

    let metrics = seen.metrics();
    let exchanges = metrics.iter().any(|metric| metric.name == "tokenmeter.exchanges");
    assert!(exchanges, "{:?}", metrics.iter().map(|metric| &metric.name).collect::<Vec<_>>());
    let exemplars: Vec<_> = metrics.iter().flat_map(exemplars).collect();
    assert!(!exemplars.is_empty());
    for (trace, span, at) in exemplars {
        assert_eq!((&trace, &span, at), (&server.trace_id, &server.span_id, server.end_time_unix_nano));
    }
}

/// Sends the second half of the body long after the proxy forwarded the first.
fn ask_slowly(proxy: &Proxy) {
    let body = format!(
        r#"{{"model":"sim","stream":true,"max_tokens":{TOKENS},"ignore_eos":true,"messages":[{{"role":"user","content":"hi"}}]}}"#
    );
    let (one, two) = body.split_at(body.len() / 2);
    let mut stream = TcpStream::connect(proxy.data).expect("the data port is open");
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: sim\r\nConnection: close\r\nContent-Length: {}\r\n\
         traceparent: 00-{TRACE}-{CALLER}-01\r\ntracestate: {STATE}\r\n\r\n{one}",
        body.len()
    )
    .expect("it reads");
    proxy.page_when("it has begun", |page| page.sum("tokenmeter_exchanges_in_flight", &[]) == 1.0);
    // Not a wait for an event: the spans must show this slow upload.
    std::thread::sleep(PAUSE);
    stream.write_all(two.as_bytes()).expect("it reads on");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.contains("[DONE]"), "{answer}");
}

/// Trace, span and time of each exemplar.
fn exemplars(metric: &collector::faithful::Metric) -> Vec<(Vec<u8>, Vec<u8>, u64)> {
    use collector::faithful::Data;
    let of = |list: &[collector::faithful::Exemplar]| {
        list.iter().map(|e| (e.trace_id.clone(), e.span_id.clone(), e.time_unix_nano)).collect::<Vec<_>>()
    };
    match &metric.data {
        Some(Data::Histogram(data)) => {
            data.data_points.iter().flat_map(|point| of(&point.exemplars)).collect()
        }
        Some(Data::ExponentialHistogram(data)) => {
            data.data_points.iter().flat_map(|point| of(&point.exemplars)).collect()
        }
        _ => Vec::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `SPAN_KIND_SERVER` and `SPAN_KIND_CLIENT`.
const SERVER: i32 = 2;
const CLIENT: i32 = 3;
