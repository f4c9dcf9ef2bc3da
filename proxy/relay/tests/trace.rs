//! The position of an exchange in a trace: the fields that the upstream receives, byte for byte, and the record.
//! Unchanged fields are compared with the sent ones.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use meter::{Record, Trace};
use relay::{Draw, Sampler, ServerKind, Tracing};
use usage::Policy;

use crate::support::{DEADLINE, Peer, Proxy, TestPlan, Upstream, upstream_body};
use crate::support::{http2, tls};
use crate::usage as asking;

const BODY: &str = r#"{"model":"m","prompt":"a"}"#;
const ANSWER: &str = r#"{"id":"chatcmpl-7","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;

const KEPT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const DROPPED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// A server that records its requests' heads, with a proxy before it.
struct Bench {
    heads: Arc<Mutex<Vec<String>>>,
    proxy: Proxy,
}

impl Bench {
    fn new(change: impl FnOnce(&mut TestPlan)) -> Self {
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&heads);
        let upstream = Upstream::start(move |peer, _| {
            while let Some(head) = peer.head() {
                upstream_body(peer, &head);
                noted.lock().unwrap().push(head);
                peer.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{ANSWER}",
                    ANSWER.len()
                ));
            }
        });
        Self { heads, proxy: Proxy::with(upstream.address, change) }
    }

    fn tracing(tracing: Tracing) -> Self {
        Self::new(|plan| plan.trace = Some(tracing))
    }

    /// Sends a request; returns the head that the upstream got.
    fn send(&self, head: &str, body: &str) -> String {
        let mut client = Peer::connect(self.proxy.address());
        client.send(format!("{head}{body}"));
        assert!(client.head().unwrap().contains(" 200 OK\r\n"));
        client.exactly(ANSWER.len());
        self.heads.lock().unwrap().pop().unwrap()
    }

    fn record(&self) -> Record {
        Arc::unwrap_or_clone(self.proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record)
    }

    fn trace(&self) -> Trace {
        *self.record().identity.trace.unwrap()
    }
}

fn sampler(heeds_caller: bool, draw: Draw) -> Tracing {
    Tracing { sampler: Sampler { heeds_caller, draw }, ..Tracing::default() }
}

/// A request head that contains these lines.
fn chat(lines: &str) -> String {
    head("POST /v1/chat/completions", lines)
}

fn head(target: &str, lines: &str) -> String {
    format!("{target} HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n{lines}X-B: 2\r\nContent-Length: 13\r\n\r\n")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The `traceparent` line of a head: name, and the four parts of its value.
fn traceparent(head: &str) -> Option<(String, [String; 4])> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let (name, value) = lines.find(|(name, _)| name.eq_ignore_ascii_case("traceparent"))?;
    let parts: Vec<String> = value.split('-').map(str::to_owned).collect();
    Some((name.to_owned(), parts.try_into().unwrap()))
}

#[test]
fn new_trace_is_the_last_field() {
    let bench = Bench::tracing(Tracing::default());
    let mut seen = Vec::new();
    for _ in 0..3 {
        let got = bench.send(&chat(""), BODY);
        let trace = bench.trace();
        let spans = trace.spans.unwrap();
        let line = format!("traceparent: 00-{}-{}-03\r\n", hex(&trace.trace_id), hex(&spans.client));
        assert_eq!(got, chat("").replace("13\r\n", &format!("13\r\n{line}")));
        assert_eq!((trace.parent, trace.sampled, &*trace.state), (None, true, ""));
        assert_ne!(spans.server, spans.client);
        assert_eq!((spans.method, spans.is_tls), ("POST", tls::is_expected_at(bench.proxy.address())));
        seen.extend([trace.trace_id[..8].to_vec(), spans.server.to_vec(), spans.client.to_vec()]);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 9, "all ids differ");
}

#[test]
fn trace_is_continued_in_place() {
    let bench = Bench::tracing(Tracing::default());
    for (name, flags, onward) in [
        ("traceparent", "01", "01"),
        ("TraceParent", "03", "03"),
        // Undefined flags are not propagated (W3C Trace Context, "other flags").
        ("TRACEPARENT", "fd", "01"),
    ] {
        let sent = |value: &str| {
            chat(&format!("{name}: {value}\r\ntracestate: a=1\r\nbaggage: k=v\r\nTraceState: b=2, c=3\r\n"))
        };
        let got = bench.send(&sent(&KEPT.replace("-01", &format!("-{flags}"))), BODY);
        let trace = bench.trace();
        let client = hex(&trace.spans.unwrap().client);
        let expected = sent(&format!("00-0af7651916cd43dd8448eb211c80319c-{client}-{onward}"));
        // Fields of one name are adjacent, as in any request.
        let lines = |head: &str| {
            let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(&got), lines(&expected));
        assert!(got.starts_with(&expected[..expected.find("tracestate").unwrap()]), "{got}");
        assert_eq!(hex(&trace.trace_id), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(hex(&trace.parent.unwrap()), "b7ad6b7169203331");
        assert_eq!((trace.sampled, &*trace.state), (true, "a=1,b=2,c=3"));
    }
}

#[test]
fn trace_of_later_version_becomes_version_00() {
    let bench = Bench::tracing(Tracing::default());
    let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
    let got = bench.send(&chat(&format!("traceparent: {later}\r\n")), BODY);
    let client = hex(&bench.trace().spans.unwrap().client);
    let ours = format!("00-0af7651916cd43dd8448eb211c80319c-{client}-01");
    assert_eq!(got, chat(&format!("traceparent: {ours}\r\n")));
}

#[test]
fn unsampled_trace_is_forwarded_unchanged() {
    let bench = Bench::tracing(Tracing::default());
    for value in [DROPPED, "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more"] {
        let sent = chat(&format!("Traceparent: {value}\r\ntracestate: a=1\r\n"));
        assert_eq!(bench.send(&sent, BODY), sent);
        let trace = bench.trace();
        assert_eq!((hex(&trace.parent.unwrap()).as_str(), trace.sampled), ("b7ad6b7169203331", false));
        assert_eq!((trace.spans, &*trace.state), (None, "a=1"));
    }
    // A trace that the caller samples and the proxy does not.
    let bench = Bench::tracing(sampler(false, Draw::Never));
    let sent = chat(&format!("traceparent: {KEPT}\r\n"));
    assert_eq!(bench.send(&sent, BODY), sent);
    let trace = bench.trace();
    assert_eq!((trace.sampled, trace.spans), (true, None));
}

#[test]
fn trace_kept_against_its_caller_is_sampled() {
    let bench = Bench::tracing(sampler(false, Draw::Always));
    let sent = |value: &str| chat(&format!("traceparent: {value}\r\n"));
    let got = bench.send(&sent(DROPPED), BODY);
    let trace = bench.trace();
    let client = hex(&trace.spans.unwrap().client);
    assert_eq!(got, sent(&format!("00-0af7651916cd43dd8448eb211c80319c-{client}-01")));
    assert!(trace.sampled);
}

#[test]
fn unsampled_new_trace_is_propagated() {
    let bench = Bench::tracing(sampler(true, Draw::Never));
    let got = bench.send(&chat(""), BODY);
    let trace = bench.trace();
    let (name, [version, trace_id, span, flags]) = traceparent(&got).unwrap();
    assert_eq!((&*name, &*version, &*flags), ("traceparent", "00", "02"));
    assert_eq!(trace_id, hex(&trace.trace_id));
    assert_ne!(span, "0000000000000000");
    assert_eq!((trace.parent, trace.sampled, trace.spans), (None, false, None));
}

#[test]
fn ratio_samples_by_the_trace_id() {
    let half = Tracing { sampler: Sampler { heeds_caller: false, draw: Draw::Ratio(0.5) }, propagate: true };
    let bench = Bench::tracing(half);
    for (trace_id, kept) in
        [("ffffffffffffffff7fffffffffffffff", true), ("00000000000000008000000000000000", false)]
    {
        for flags in ["00", "01"] {
            let value = format!("00-{trace_id}-b7ad6b7169203331-{flags}");
            let got = bench.send(&chat(&format!("traceparent: {value}\r\n")), BODY);
            let spans = bench.trace().spans;
            assert_eq!(spans.is_some(), kept, "{value}");
            let span = spans.map_or("b7ad6b7169203331".to_owned(), |spans| hex(&spans.client));
            let flags = if kept { "01" } else { flags };
            assert_eq!(traceparent(&got).unwrap().1, ["00", trace_id, &span, flags].map(str::to_owned));
        }
    }
}

#[test]
fn invalid_traceparent_and_its_state_are_replaced() {
    let bench = Bench::tracing(Tracing::default());
    for lines in [
        "traceparent: 00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01\r\n".to_owned(),
        "traceparent: \r\n".to_owned(),
        format!("traceparent: {KEPT}, {KEPT}\r\n"),
        format!("traceparent: {KEPT}\r\ntraceparent: {KEPT}\r\n"),
    ] {
        let got = bench.send(&chat(&format!("{lines}tracestate: a=1\r\nbaggage: k=v\r\n")), BODY);
        let trace = bench.trace();
        let client = hex(&trace.spans.unwrap().client);
        let value = format!("00-{}-{client}-03", hex(&trace.trace_id));
        assert_eq!(got, chat(&format!("traceparent: {value}\r\nbaggage: k=v\r\n")), "{lines}");
        assert_ne!(hex(&trace.trace_id), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((trace.parent, &*trace.state), (None, ""));
    }
    // A `tracestate` without a `traceparent` is invalid.
    let got = bench.send(&chat("tracestate: a=1\r\n"), BODY);
    assert!(traceparent(&got).is_some() && !got.contains("tracestate"), "{got}");
}

#[test]
fn without_propagation_fields_are_unchanged() {
    let bench = Bench::tracing(Tracing { propagate: false, ..Tracing::default() });
    for lines in
        ["".to_owned(), format!("traceparent: {KEPT}\r\ntracestate: a=1\r\n"), "traceparent: x\r\n".into()]
    {
        let sent = chat(&lines);
        assert_eq!(bench.send(&sent, BODY), sent);
        assert!(bench.trace().spans.is_some());
    }
}

#[test]
fn unmetered_request_has_no_trace() {
    let bench = Bench::tracing(sampler(false, Draw::Always));
    for target in ["POST /tokenize", "POST /v1/models", "POST /upload", "POST /", "PUT /v1/models"] {
        for lines in [
            "".to_owned(),
            format!("traceparent: {KEPT}\r\n"),
            "traceparent: x\r\ntracestate: a=1\r\n".into(),
        ] {
            let sent = head(target, &lines);
            assert_eq!(bench.send(&sent, BODY), sent);
        }
    }
    // An answer at an unknown path, or to an unusual method, that reports token counts is metered.
    for _ in 0..12 {
        bench.record();
    }
    assert!(bench.proxy.inbox.try_recv().is_err());
}

#[test]
fn without_tracing_no_byte_is_added() {
    let bench = Bench::new(|plan| plan.trace = None);
    for (lines, noted) in [
        ("".to_owned(), false),
        (format!("Traceparent: {KEPT}\r\ntracestate: a=1\r\nbaggage: k=v\r\n"), true),
        (format!("traceparent: {DROPPED}\r\n"), false),
        (format!("traceparent: {KEPT}\r\ntraceparent: {KEPT}\r\n"), false),
        ("traceparent: x\r\ntracestate: a=1\r\n".to_owned(), false),
    ] {
        let sent = chat(&lines);
        assert_eq!(bench.send(&sent, BODY), sent);
        let trace = bench.record().identity.trace;
        assert_eq!(trace.is_some(), noted, "{lines}");
        let Some(trace) = trace else { continue };
        assert_eq!(hex(&trace.trace_id), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((hex(&trace.parent.unwrap()).as_str(), &*trace.state), ("b7ad6b7169203331", "a=1"));
        assert_eq!((trace.sampled, trace.spans), (true, None));
    }
}

#[test]
fn traceparent_named_by_connection_is_replaced() {
    let bench = Bench::tracing(Tracing::default());
    let sent = chat(&format!("Connection: traceparent\r\ntraceparent: {KEPT}\r\n"));
    let got = bench.send(&sent, BODY);
    let client = hex(&bench.trace().spans.unwrap().client);
    let line = format!("13\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-{client}-01\r\n");
    assert_eq!(got, chat("").replace("13\r\n", &line));
}

#[test]
fn http10_client_is_traced() {
    let bench = Bench::tracing(Tracing::default());
    let got = bench.send(&chat(&format!("traceparent: {KEPT}\r\n")).replace("HTTP/1.1", "HTTP/1.0"), BODY);
    let client = hex(&bench.trace().spans.unwrap().client);
    assert_eq!(traceparent(&got).unwrap().1[2], client);
}

#[test]
fn http2_client_is_traced() {
    let bench = Bench::tracing(Tracing::default());
    let address = bench.proxy.address();
    for (value, parent) in [(Some(KEPT), Some("b7ad6b7169203331")), (None, None)] {
        http2::run(async move {
            let mut client = http2::connect(address).await;
            let mut request = Request::post(format!("http://{address}/v1/chat/completions"));
            if let Some(value) = value {
                request = request.header("traceparent", value).header("tracestate", "a=1");
            }
            let request = request.body(Full::new(Bytes::from_static(BODY.as_bytes()))).unwrap();
            let response = client.send_request(request).await.unwrap();
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), ANSWER);
        });
        let (got, trace) = (bench.heads.lock().unwrap().pop().unwrap(), bench.trace());
        let flags = if value.is_some() { "01" } else { "03" };
        let expected = ["00", &hex(&trace.trace_id), &hex(&trace.spans.unwrap().client), flags];
        assert_eq!(traceparent(&got).unwrap().1, expected.map(str::to_owned));
        assert_eq!(trace.parent.map(|span| hex(&span)).as_deref(), parent);
        assert_eq!(got.contains("tracestate: a=1\r\n"), value.is_some());
    }
}

#[test]
fn second_attempt_has_the_same_span() {
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&heads);
    let upstream = Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            let asked = String::from_utf8(upstream_body(peer, &head)).unwrap();
            noted.lock().unwrap().push(head);
            match asked.contains("include_usage") {
                true => peer.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
                false => peer.send(format!(
                    "{}{}0\r\n\r\n",
                    asking::HEAD,
                    asking::chunk(&format!("{}{}", asking::FINISH, asking::DONE))
                )),
            }
        }
    });
    let proxy = Proxy::with(upstream.address, |plan| {
        plan.upstreams[0].usage = Policy::Inject;
        plan.upstreams[0].kind = Some(ServerKind::Sglang);
        plan.trace = Some(Tracing::default());
    });
    let (head, _) = asking::ask(proxy.address(), &asking::request(asking::PLAIN));
    assert!(head.contains(" 200 OK\r\n"), "{head}");
    let trace = asking::record(&proxy).identity.trace.unwrap();
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 2, "a refusal, and the original");
    for head in &*heads {
        let (_, parts) = traceparent(head).unwrap();
        let expected = ["00", &hex(&trace.trace_id), &hex(&trace.spans.unwrap().client), "03"];
        assert_eq!(parts, expected.map(str::to_owned));
    }
}

/// A stream of unknown shape is metered, but its server may be of any kind.
#[test]
fn stream_of_unknown_path_has_spans() {
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&heads);
    let upstream = Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            upstream_body(peer, &head);
            noted.lock().unwrap().push(head);
            peer.send(format!("{}{}0\r\n\r\n", asking::HEAD, asking::chunk("data: {\"a\":1}\n\n")));
        }
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.trace = Some(Tracing::default()));
    let sent = head("POST /my/model", &format!("traceparent: {KEPT}\r\n"));
    asking::ask(proxy.address(), &format!("{sent}{BODY}"));
    assert_eq!(heads.lock().unwrap()[0], sent);
    assert!(asking::record(&proxy).identity.trace.unwrap().spans.is_some());
}

#[test]
fn exchange_has_its_id_and_its_answers_id() {
    let bench = Bench::new(|_| {});
    let records: Vec<Record> = (0..3)
        .map(|_| {
            bench.send(&chat(""), BODY);
            bench.record()
        })
        .collect();
    for record in &records {
        let (id, identity) = (record.identity.exchange.0, &record.identity);
        assert_eq!((id[6] >> 4, id[8] >> 6), (7, 0b10), "a UUID of version 7");
        let milliseconds = id[..6].iter().fold(0_u64, |n, &byte| n << 8 | u64::from(byte));
        assert_eq!(milliseconds, identity.started_unix_ns / 1_000_000);
        assert_eq!((identity.response_id.as_deref(), &*identity.tenant), (Some("chatcmpl-7"), "default"));
        assert_eq!((record.answers, record.finishes[0]), (1, Some(scan::Finish::Length)));
    }
    let mut ids: Vec<_> = records.iter().map(|record| record.identity.exchange).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}
