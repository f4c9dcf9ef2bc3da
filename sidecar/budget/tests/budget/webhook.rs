//! Webhook deliveries, also to receivers that misbehave.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use budget::{
    Endpoint, Notice, Period, Plan, QUEUE_MAX_ITEMS, RETRY_MAX_ITEMS, SIGNATURE, Secret, Threshold, Webhook,
    WebhookCounts,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use super::{UNIT, at, budget, dollars};

/// A receiver that answers each connection as scripted, and forwards the requests.
struct TestReceiver {
    url: String,
    requests: Receiver<String>,
}

/// The handling of a connection after its request.
type Answer = fn(&mut TcpStream);

fn receiver(answers: &'static [Answer]) -> TestReceiver {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/services/T0/key?token=secret", listener.local_addr().unwrap());
    let (seen, requests) = mpsc::channel();
    thread::spawn(move || {
        for (stream, at) in listener.incoming().zip(0..) {
            let mut stream = stream.unwrap();
            let answer = *answers.get(at).unwrap_or(answers.last().unwrap());
            let seen = seen.clone();
            thread::spawn(move || {
                if let Some(request) = request(&mut stream) {
                    let _ = seen.send(request);
                    answer(&mut stream);
                }
            });
        }
    });
    TestReceiver { url, requests }
}

/// Reads a whole request, head and body.
fn request(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some(text);
        }
    }
}

fn say(stream: &mut TcpStream, text: &str) {
    let _ = stream.write_all(text.as_bytes());
}

const OK: Answer =
    |stream| say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
const BUSY: Answer =
    |stream| say(stream, "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
const GONE: Answer =
    |stream| say(stream, "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
const ELSEWHERE: Answer = |stream| {
    say(
        stream,
        "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    );
};
const GARBAGE: Answer = |stream| say(stream, "\u{1}\u{2} no HTTP at all\r\n\r\n\r\n");
const CLOSE: Answer = |_| {};
const HANG: Answer = |stream| {
    // Until the client closes.
    let _ = stream.read(&mut [0; 16]);
};
/// 200 and then an endless body.
const FLOOD: Answer = |stream| {
    say(stream, "HTTP/1.1 200 OK\r\n\r\n");
    while stream.write_all(&[b'x'; 65_536]).is_ok() {}
};
/// An endless head.
const FLOOD_HEAD: Answer = |stream| {
    say(stream, "HTTP/1.1 200 OK\r\n");
    while stream.write_all(b"x-more: and more of the same, and more of the same\r\n").is_ok() {}
};

fn notice() -> Notice {
    let mut budgets = dollars(vec![budget("gold", "acme", Period::Month, None, Some(10))]);
    budgets.charge("acme", at(3, 0), 6 * UNIT);
    budgets.tick(at(3, 0)).remove(0)
}

fn quick(url: &str) -> Plan {
    Plan {
        attempt_timeout: Duration::from_millis(300),
        pause: Duration::from_millis(1),
        through_proxy: false,
        ..Plan::to(Endpoint::parse(url).unwrap(), None)
    }
}

/// Posts one notice and waits for its outcome.
fn post_one(plan: Plan) -> WebhookCounts {
    let webhook = Webhook::start(plan).unwrap();
    webhook.post(&notice());
    wait_for(&webhook, |sent| sent.sent + sent.failed == 1);
    webhook.shutdown(Duration::from_secs(20)).0
}

fn wait_for(webhook: &Webhook, what: impl Fn(WebhookCounts) -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !what(webhook.counts()) {
        assert!(Instant::now() < until, "{:?}", webhook.counts());
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn notice_arrives_complete_and_signed() {
    let receiver = receiver(&[OK]);
    let secret = Secret::new(b"0123456789abcdef\n").unwrap();
    let sent = post_one(Plan { secret: Some(secret), ..quick(&receiver.url) });
    assert_eq!(sent, WebhookCounts { sent: 1, failed: 0, dropped: 0 });
    let request = receiver.requests.recv().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /services/T0/key?token=secret HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(head.contains("\r\ncontent-type: application/json"), "{head}");
    assert!(head.contains("\r\nuser-agent: tokenmeter/"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), notice().json());
    let signature = head.lines().find_map(|line| line.strip_prefix(&format!("{SIGNATURE}: "))).unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"0123456789abcdef");
    let tag = ring::hmac::sign(&key, body.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(signature, format!("sha256={hex}"));
}

#[test]
fn documented_example_is_the_sent_body() {
    let document = include_str!("../../budgets.md");
    let shown = document.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(serde_json::from_str::<Value>(shown).unwrap(), notice().json());
}

#[test]
fn each_receiver_behaviour_has_its_outcome() {
    let one = |answers: &'static [Answer], attempts: usize, delivered: bool| {
        let receiver = receiver(answers);
        let sent = post_one(quick(&receiver.url));
        let expected = WebhookCounts { sent: delivered.into(), failed: (!delivered).into(), dropped: 0 };
        assert_eq!(sent, expected, "{attempts} {delivered}");
        assert_eq!(receiver.requests.try_iter().count(), attempts, "{delivered}");
    };
    one(&[BUSY, OK], 2, true);
    one(&[CLOSE, GARBAGE, BUSY, OK], 4, true);
    one(&[BUSY], 4, false);
    one(&[GARBAGE], 4, false);
    one(&[GONE], 1, false);
    one(&[ELSEWHERE, OK], 1, false);
    one(&[HANG, OK], 2, true);
    one(&[FLOOD], 1, true);
    one(&[FLOOD_HEAD, OK], 2, true);
}

#[test]
fn closed_port_is_a_failure() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(post_one(quick(&format!("http://{closed}/"))).failed, 1);
}

#[test]
fn undelivered_notices_arrive_after_recovery() {
    let pause_guard = |again| Plan { retry_interval: again, ..quick("http://127.0.0.1:9/") };
    // Down at first: four attempts for the first notice, then the timed retry succeeds.
    let down_first = receiver(&[BUSY, BUSY, BUSY, BUSY, BUSY, OK]);
    let endpoint = Endpoint::parse(&down_first.url).unwrap();
    let webhook = Webhook::start(Plan { endpoint, ..pause_guard(Duration::from_millis(5)) }).unwrap();
    webhook.post(&notice());
    wait_for(&webhook, |sent| sent.sent == 1);
    assert_eq!(
        webhook.shutdown(Duration::from_secs(20)),
        (WebhookCounts { sent: 1, failed: 1, dropped: 0 }, vec![])
    );
    assert_eq!(down_first.requests.try_iter().count(), 6);

    // Without a timed retry in this test, the next notice finds the receiver available.
    let down_first = receiver(&[BUSY, BUSY, BUSY, BUSY, OK]);
    let endpoint = Endpoint::parse(&down_first.url).unwrap();
    let webhook = Webhook::start(Plan { endpoint, ..pause_guard(Duration::from_secs(600)) }).unwrap();
    webhook.post(&notice());
    wait_for(&webhook, |sent| sent.failed == 1);
    assert_eq!(webhook.undelivered(), [notice()]);
    let next = Notice { used: 9 * i128::from(UNIT), threshold: Threshold::Most, ..notice() };
    webhook.post(&next);
    wait_for(&webhook, |sent| sent.sent == 2);
    assert_eq!(
        webhook.shutdown(Duration::from_secs(20)),
        (WebhookCounts { sent: 2, failed: 1, dropped: 0 }, vec![])
    );
    let ids = down_first.requests.try_iter().map(|request| {
        let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["id"].as_str().unwrap().to_owned()
    });
    let ids: Vec<_> = ids.collect();
    assert_eq!(ids[4..], [next.id(), notice().id()]);
}

#[test]
fn undelivered_notices_are_bounded_and_permanent_failures_dropped() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let at_once = Plan { pause: Duration::ZERO, ..quick(&format!("http://{closed}/")) };
    let webhook = Webhook::start(at_once).unwrap();
    for number in 0..=RETRY_MAX_ITEMS as u64 {
        webhook.post(&Notice { used: number.into(), ..notice() });
        wait_for(&webhook, |sent| sent.failed == number + 1);
    }
    let (sent, undelivered) = webhook.shutdown(Duration::from_secs(20));
    assert_eq!(sent, WebhookCounts { sent: 0, failed: RETRY_MAX_ITEMS as u64 + 1, dropped: 0 });
    assert_eq!((undelivered.len(), undelivered[0].used), (RETRY_MAX_ITEMS, 1), "the oldest was dropped");

    let gone = receiver(&[GONE]);
    let webhook = Webhook::start(quick(&gone.url)).unwrap();
    webhook.post(&notice());
    wait_for(&webhook, |sent| sent.failed == 1);
    assert_eq!(webhook.shutdown(Duration::from_secs(20)).1, []);
}

#[test]
fn full_queue_drops_and_counts() {
    let receiver = receiver(&[HANG]);
    let webhook =
        Webhook::start(Plan { attempt_timeout: Duration::from_secs(60), ..quick(&receiver.url) }).unwrap();
    let notice = notice();
    webhook.post(&notice);
    // The first is in delivery, so the queue is empty.
    receiver.requests.recv().unwrap();
    for _ in 0..QUEUE_MAX_ITEMS + 5 {
        webhook.post(&notice);
    }
    assert_eq!(webhook.counts(), WebhookCounts { sent: 0, failed: 0, dropped: 5 });
    // Shutdown does not wait for it, and counts the queued ones.
    let before = Instant::now();
    let (sent, undelivered) = webhook.shutdown(Duration::from_millis(50));
    assert_eq!(undelivered.len(), 1 + QUEUE_MAX_ITEMS, "the next process sends them");
    assert!(before.elapsed() < Duration::from_secs(30));
    assert_eq!(sent, WebhookCounts { sent: 0, failed: 0, dropped: 5 + 1 + QUEUE_MAX_ITEMS as u64 });
}

#[test]
fn shutdown_gives_each_notice_one_attempt() {
    let receiver = receiver(&[BUSY]);
    let webhook = Webhook::start(Plan { pause: Duration::from_secs(600), ..quick(&receiver.url) }).unwrap();
    let notice = notice();
    (0..3).for_each(|_| webhook.post(&notice));
    receiver.requests.recv().unwrap();
    let (sent, undelivered) = webhook.shutdown(Duration::from_secs(60));
    assert_eq!((sent, undelivered.len()), (WebhookCounts { sent: 0, failed: 3, dropped: 0 }, 3));
}

#[test]
fn only_trusted_certificates_are_accepted() {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/hook", listener.local_addr().unwrap());
    let config = Arc::new(config);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            if request(&mut stream).is_some() {
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
            }
        }
    });
    let patient = Plan { attempt_timeout: Duration::from_secs(10), ..quick(&url) };
    let trusted = Plan { roots: Some(vec![issuer.der().to_vec()]), ..patient.clone() };
    assert_eq!(post_one(trusted), WebhookCounts { sent: 1, failed: 0, dropped: 0 });
    assert_eq!(post_one(Plan { roots: Some(Vec::new()), ..patient.clone() }).failed, 1, "no root is trusted");
    assert_eq!(post_one(patient).failed, 1, "the system's roots do not include it");
}
