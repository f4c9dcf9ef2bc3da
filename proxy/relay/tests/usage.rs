//! The usage policy on the wire: the server's request, the client's response, and the upstream's profile.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use meter::{Ending, Provenance, Record};
use relay::{Dropped, ServerKind, UsageStep};
use usage::Policy;

use crate::support::{DEADLINE, PROMPT, Peer, Proxy, TestPlan, Upstream, eventually, now, upstream_body};
use crate::tenants::{in_force, keys};

crate::support::wires::table! {
    (all):
        injected_usage_is_removed_from_the_response,
        usage_requested_by_the_client_stays,
        observe_changes_nothing,
        torn_usage_event_is_removed,
        bytes_are_held_up_to_the_limit,
        held_bytes_precede_a_cut,
        server_that_rejects_gets_the_original,
        both_attempts_need_one_place,
        running_usage_is_dropped_first,
        invalid_request_is_answered_once,
        usage_sent_without_request_stays,
        timings_are_no_usage_without_request,
        running_usage_is_removed_from_each_frame,
        rust_front_end_gets_no_running_option,
        always_counting_servers_get_no_option,
        signed_or_compressed_request_is_unchanged,
        content_length_of_an_edited_body_is_removed,
        error_keeps_its_length,
        signed_answer_is_not_edited,
        failed_meter_releases_held_bytes,
        trailers_follow_held_bytes,
        unreadable_request_leaves_the_profile_unchanged,
        odd_stream_options_leave_the_profile_unchanged,
        stream_of_unclear_type_is_edited,
        response_without_inference_leaves_no_record,
        rejection_is_forwarded_if_the_original_fails,
        one_clients_odd_request_affects_no_others;
    (http1_clients, "interim responses reach HTTP/1.1 clients only"):
        early_hints_of_both_requests_arrive_once;
}

pub(crate) const ASKED: &str = r#"{"model":"m","stream": true,"stream_options":{"include_usage":true}}"#;
const ASKED_MORE: &str =
    r#"{"model":"m","stream": true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#;
pub(crate) const PLAIN: &str = r#"{"model":"m","stream": true}"#;
pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const REFUSAL: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"error\":\"what\"}";
pub(crate) const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";
pub(crate) const FINISH: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A server that records its requests.
pub(crate) struct Server {
    pub(crate) upstream: Upstream,
    pub(crate) heads: Arc<Mutex<Vec<String>>>,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers each request with the result of `answer` for its body.
    pub(crate) fn start(answer: impl Fn(&mut Peer, &str) + Send + Sync + 'static) -> Self {
        let (heads, bodies) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (noted, noted_bodies) = (Arc::clone(&heads), Arc::clone(&bodies));
        let upstream = Upstream::start(move |peer, _| {
            while let Some(head) = peer.head() {
                let body = String::from_utf8(upstream_body(peer, &head)).unwrap();
                noted.lock().unwrap().push(head);
                noted_bodies.lock().unwrap().push(body.clone());
                answer(peer, &body);
            }
        });
        Self { upstream, heads, bodies }
    }

    /// Streams an answer, with usage if it is requested.
    pub(crate) fn streaming() -> Self {
        Self::start(|peer, body| {
            peer.send(HEAD);
            peer.send(chunk(&delta("a")));
            peer.send(chunk(&delta("b")));
            let usage = if body.contains("include_usage") { USAGE } else { "" };
            peer.send(chunk(&format!("{FINISH}{usage}{DONE}")));
            peer.send("0\r\n\r\n");
        })
    }

    /// Answers 400 to a body that contains `word`, and names it.
    fn refusing(word: &'static str) -> Self {
        Self::start(move |peer, body| {
            if body.contains(word) {
                let refusal = format!("{{\"error\":\"unknown {word}\"}}");
                let length = refusal.len();
                peer.send(format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {length}\r\n\r\n{refusal}"));
            } else {
                peer.send(HEAD);
                peer.send(chunk(&format!("{}{FINISH}{DONE}", delta("a"))));
                peer.send("0\r\n\r\n");
            }
        })
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }

    pub(crate) fn proxy(&self, usage: Policy) -> Proxy {
        Proxy::with(self.upstream.address, policy(usage))
    }
}

pub(crate) fn policy(usage: Policy) -> impl FnOnce(&mut TestPlan) {
    move |plan| {
        plan.upstreams[0].usage = usage;
        plan.upstreams[0].kind = Some(ServerKind::Sglang);
    }
}

pub(crate) fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

pub(crate) fn delta(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

pub(crate) fn request(body: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends a request on a connection of its own; returns the response without chunk framing.
pub(crate) fn ask(address: SocketAddr, request: &str) -> (String, String) {
    let mut client = Peer::connect(address);
    client.send(request);
    let head = client.head().unwrap();
    let body = upstream_body(&mut client, &head);
    (head, String::from_utf8(body).unwrap())
}

pub(crate) fn record(proxy: &Proxy) -> Record {
    Arc::unwrap_or_clone(proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record)
}

pub(crate) fn steps(proxy: &Proxy) -> Vec<UsageStep> {
    proxy.seen().usage.clone()
}

fn injected_usage_is_removed_from_the_response() {
    let server = Server::streaming();
    let proxy = server.proxy(Policy::Inject);
    let (_, body) = ask(proxy.address(), &request(PLAIN));
    assert_eq!(body, format!("{}{}{FINISH}{DONE}", delta("a"), delta("b")));
    assert_eq!(server.bodies(), [ASKED]);
    let head = server.heads.lock().unwrap()[0].to_ascii_lowercase();
    assert!(head.contains(&format!("content-length: {}\r\n", ASKED.len())), "{head}");
    assert!(head.contains("accept-encoding: identity\r\n") && !head.contains("gzip"), "{head}");
    let record = record(&proxy);
    assert_eq!((record.tokens.input(), record.tokens.output()), (7, 2));
    assert_eq!(record.tokens.output_provenance, Provenance::Reported);
    assert_eq!(steps(&proxy), [UsageStep::Injected]);
    assert_eq!(proxy.seen().lost, []);
}

fn usage_requested_by_the_client_stays() {
    let server = Server::streaming();
    let proxy = server.proxy(Policy::Inject);
    for (sent, step) in [
        (ASKED, UsageStep::ClientAsked),
        (r#"{"model":"m","stream":false,"stream_options":null}"#, UsageStep::NotStreamed),
        (r#"{"model":"m"}"#, UsageStep::NotStreamed),
        ("stream: true", UsageStep::Unreadable),
        (r#"{"stream":true,"stream_options":"yes"}"#, UsageStep::Unreadable),
    ] {
        let (_, body) = ask(proxy.address(), &request(sent));
        assert_eq!(body.contains("usage"), sent.contains("include_usage"), "{sent}");
        assert_eq!(server.bodies().last().map(String::as_str), Some(sent));
        assert_eq!(steps(&proxy).last(), Some(&step), "{sent}");
    }
}

fn observe_changes_nothing() {
    let server = Server::streaming();
    let proxy = server.proxy(Policy::Observe);
    let (_, body) = ask(proxy.address(), &request(PLAIN));
    assert!(!body.contains("usage"));
    assert_eq!(server.bodies(), [PLAIN]);
    assert!(server.heads.lock().unwrap()[0].contains("gzip"));
    assert_eq!(record(&proxy).tokens.output_provenance, Provenance::Frames);
    assert_eq!(steps(&proxy), [UsageStep::Observed]);
}

fn torn_usage_event_is_removed() {
    for at in 1..USAGE.len() {
        let server = Server::start(move |peer, _| {
            peer.send(HEAD);
            // One write: two chunks are two slices, independent of timing.
            let first = chunk(&format!("{}{FINISH}{}", delta("a"), &USAGE[..at]));
            let second = chunk(&format!("{}{DONE}", &USAGE[at..]));
            peer.send(format!("{first}{second}0\r\n\r\n"));
        });
        let proxy = server.proxy(Policy::Inject);
        let (_, body) = ask(proxy.address(), &request(PLAIN));
        assert_eq!(body, format!("{}{FINISH}{DONE}", delta("a")), "cut at {at}");
    }
}

fn bytes_are_held_up_to_the_limit() {
    let server = Server::start(|peer, _| {
        peer.send(HEAD);
        peer.send(chunk(&format!("{}{FINISH}{}", delta("a"), &USAGE[..20])));
        peer.closed_after(now());
    });
    let proxy = server.proxy(Policy::Inject);
    let mut client = proxy.connect();
    client.send(request(PLAIN));
    client.head();
    client.until(FINISH);
    let begun = now();
    client.until(&USAGE[..20]);
    assert!(begun.elapsed() < PROMPT, "held for {:?}", begun.elapsed());
    assert_eq!(proxy.seen().lost, []);
    drop(client);
    assert_eq!(record(&proxy).ending, Ending::ClientAbort);
}

fn held_bytes_precede_a_cut() {
    let server = Server::start(|peer, _| {
        peer.send(HEAD);
        peer.send(chunk(&format!("{}{FINISH}{}", delta("a"), &USAGE[..20])));
    });
    let upstream = Upstream::start({
        let address = server.upstream.address;
        move |peer, _| {
            // One exchange, then the connection fails.
            let mut inner = Peer::connect(address);
            let head = peer.head().unwrap();
            let body = upstream_body(peer, &head);
            inner.send(head);
            inner.send(body);
            peer.send(inner.until(&USAGE[..20]));
        }
    });
    let proxy = Proxy::with(upstream.address, policy(Policy::Inject));
    let mut client = proxy.connect();
    client.send(request(PLAIN));
    client.head();
    assert!(client.rest().contains(&USAGE[..20]));
    assert_eq!(record(&proxy).ending, Ending::UpstreamCut);
}

fn server_that_rejects_gets_the_original() {
    let server = Server::refusing("stream_options");
    let proxy = server.proxy(Policy::Inject);
    let (head, body) = ask(proxy.address(), &request(PLAIN));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(body, format!("{}{FINISH}{DONE}", delta("a")));
    assert_eq!(server.bodies(), [ASKED, PLAIN]);
    assert!(server.heads.lock().unwrap()[1].contains("gzip"), "the original head too");

    // The profile remembers it.
    ask(proxy.address(), &request(PLAIN));
    assert_eq!(server.bodies(), [ASKED, PLAIN, PLAIN]);
    assert_eq!(steps(&proxy), [UsageStep::Injected, UsageStep::Refused]);
    assert_eq!((record(&proxy).status, record(&proxy).status), (200, 200), "two exchanges, two records");
}

/// The second attempt of a request does not wait for the place of the first.
fn both_attempts_need_one_place() {
    let server = Server::refusing("stream_options");
    let proxy = Proxy::with(server.upstream.address, |plan| {
        policy(Policy::Inject)(plan);
        plan.shares.upstream_connections = 1;
    });
    let (head, _) = ask(proxy.address(), &request(PLAIN));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(server.bodies(), [ASKED, PLAIN]);
    eventually("its place is free", || proxy.running.reader()().upstream_connections[0].taken == 0);
}

fn running_usage_is_dropped_first() {
    let server = Server::refusing("continuous_usage_stats");
    let proxy = server.proxy(Policy::Continuous);
    ask(proxy.address(), &request(PLAIN));
    ask(proxy.address(), &request(PLAIN));
    assert_eq!(server.bodies(), [ASKED_MORE, PLAIN, ASKED]);
}

fn early_hints_of_both_requests_arrive_once() {
    const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    const MORE: &str = "HTTP/1.1 103 Early Hints\r\nlink: </b>\r\n\r\n";
    let server = Server::start(|peer, body| {
        peer.send(HINTS);
        if body.contains("include_usage") {
            peer.send(REFUSAL);
        } else {
            peer.send(MORE);
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
        }
    });
    let proxy = server.proxy(Policy::Inject);
    let mut client = Peer::connect(proxy.address());
    client.send(request(PLAIN));
    assert_eq!((client.head().unwrap(), client.head().unwrap()), (HINTS.to_owned(), MORE.to_owned()));
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(server.bodies(), [ASKED, PLAIN]);
}

fn invalid_request_is_answered_once() {
    let server = Server::start(|peer, _| peer.send(REFUSAL));
    let proxy = server.proxy(Policy::Inject);
    for _ in 0..2 {
        let (head, body) = ask(proxy.address(), &request(PLAIN));
        assert!(head.starts_with("HTTP/1.1 400"), "{head}");
        assert_eq!(body, "{\"error\":\"what\"}");
    }
    assert_eq!(server.bodies(), [ASKED, PLAIN, ASKED, PLAIN]);
    assert_eq!(record(&proxy).ending, Ending::ErrorStatus);
}

fn usage_sent_without_request_stays() {
    let member = r#","usage":{"prompt_tokens":7,"completion_tokens":1}}"#;
    let counted = delta("a").replace("}]}\n\n", &format!("}}]{member}\n\n"));
    let stream = format!("{counted}{FINISH}{USAGE}{DONE}");
    let sent = stream.clone();
    let server = Server::start(move |peer, _| {
        peer.send(HEAD);
        peer.send(chunk(&sent));
        peer.send("0\r\n\r\n");
    });
    let proxy = server.proxy(Policy::Inject);
    for _ in 0..2 {
        assert_eq!(ask(proxy.address(), &request(PLAIN)).1, stream);
        assert_eq!(record(&proxy).tokens.output(), 2);
    }
    assert_eq!(server.bodies(), [ASKED, PLAIN]);
    assert_eq!(steps(&proxy), [UsageStep::Injected, UsageStep::SentUnasked]);
}

/// llama.cpp counts in `timings`, and if a stop string was held back, in a frame with text before the one with the
/// finish.
fn timings_are_no_usage_without_request() {
    const TIMINGS: &str =
        r#","timings":{"cache_n":0,"prompt_n":7,"prompt_ms":1.0,"predicted_n":2,"predicted_ms":2.0}}"#;
    let timed = |frame: &str| frame.replace("}\n\n", &format!("{TIMINGS}\n\n"));
    let (text, usage) = (timed(&delta("a")), timed(USAGE));
    let sent = format!("{text}{FINISH}{usage}{DONE}");
    let server = Server::start(move |peer, _| {
        peer.send(HEAD);
        peer.send(chunk(&sent));
        peer.send("0\r\n\r\n");
    });
    let proxy = server.proxy(Policy::Inject);
    for _ in 0..2 {
        assert_eq!(ask(proxy.address(), &request(PLAIN)).1, format!("{text}{FINISH}{DONE}"));
        assert_eq!(record(&proxy).tokens.output(), 2);
    }
    assert_eq!(server.bodies(), [ASKED, ASKED]);
    assert_eq!(steps(&proxy), [UsageStep::Injected, UsageStep::Injected]);
}

fn running_usage_is_removed_from_each_frame() {
    let counted = |text: &str, tokens: u32| {
        let member = format!(r#","usage":{{"prompt_tokens":7,"completion_tokens":{tokens}}}"#);
        delta(text).replace("}]}\n\n", &format!("}}]{member}}}\n\n"))
    };
    let (a, b) = (counted("a", 1), counted("b", 3));
    let server = Server::start(move |peer, _| {
        peer.send(HEAD);
        let (first, second) = b.split_at(40);
        peer.send(chunk(&format!("{a}{first}")));
        peer.send(chunk(second));
        peer.closed_after(now());
    });
    let proxy = server.proxy(Policy::Continuous);
    let mut client = proxy.connect();
    client.send(request(PLAIN));
    client.head();
    let mut seen = client.until("\"b\"");
    seen += &client.until("\n\n");
    drop(client);
    assert!(
        seen.contains(&delta("a")) && seen.ends_with(&delta("b")[delta("b").find("\"b\"").unwrap() + 3..])
    );
    assert!(!seen.contains("usage"));
    assert_eq!(server.bodies(), [ASKED_MORE]);
    let record = record(&proxy);
    assert_eq!(record.ending, Ending::ClientAbort);
    assert_eq!(record.tokens.output(), 3, "the server's last count");
    assert_eq!(record.tokens.output_provenance, Provenance::Running);
}

fn rust_front_end_gets_no_running_option() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, |plan| {
        plan.upstreams[0].usage = Policy::Continuous;
        plan.upstreams[0].kind = Some(ServerKind::Vllm);
    });
    proxy.running.profiles()[0].front_end(true);
    ask(proxy.address(), &request(PLAIN));
    assert_eq!(server.bodies(), [ASKED]);
}

fn always_counting_servers_get_no_option() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, |plan| plan.upstreams[0].usage = Policy::Inject);
    proxy.running.profiles()[0].kind(ServerKind::LlamaCpp);
    let completions = request(PLAIN).replace("/chat/completions", "/completions");
    ask(proxy.address(), &completions);
    assert_eq!(server.bodies(), [PLAIN]);
}

fn signed_or_compressed_request_is_unchanged() {
    let server = Server::streaming();
    let proxy = server.proxy(Policy::Inject);
    let opaque = "\u{1}\u{2}gz";
    for (field, body) in [("Content-Encoding: gzip", opaque), ("Content-Digest: sha-256=:AA==:", PLAIN)] {
        ask(proxy.address(), &request(body).replace("Host: h", &format!("Host: h\r\n{field}")));
    }
    assert_eq!(server.bodies(), [opaque, PLAIN]);
    assert_eq!(steps(&proxy), [UsageStep::Unreadable, UsageStep::Unreadable]);
}

fn content_length_of_an_edited_body_is_removed() {
    let server = Server::start(|peer, _| {
        let body = format!("{}{FINISH}{USAGE}{DONE}", delta("a"));
        let length = body.len();
        peer.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
    });
    let proxy = server.proxy(Policy::Inject);
    let (head, body) = ask(proxy.address(), &request(PLAIN));
    assert!(!head.to_ascii_lowercase().contains("content-length"), "{head}");
    assert_eq!(body, format!("{}{FINISH}{DONE}", delta("a")));
}

/// transformers serve: a request that it cannot read fails as plain text, with or without the option.
fn error_keeps_its_length() {
    let server = Server::start(|peer, _| {
        peer.send(
            "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 21\r\n\
             content-type: text/plain; charset=utf-8\r\n\r\nInternal Server Error",
        );
    });
    let proxy = server.proxy(Policy::Inject);
    let (head, body) = ask(proxy.address(), &request(PLAIN));
    assert_eq!((server.bodies(), &*body), (vec![ASKED.to_owned()], "Internal Server Error"));
    assert!(head.contains("content-length: 21\r\n"), "{head}");
    assert_eq!(proxy.seen().lost, []);
}

fn signed_answer_is_not_edited() {
    let stream = format!("{}{FINISH}{USAGE}{DONE}", delta("a"));
    let sent = stream.clone();
    let server = Server::start(move |peer, _| {
        peer.send(HEAD.replace("\r\n\r\n", "\r\nRepr-Digest: sha-256=:AA==:\r\n\r\n"));
        peer.send(chunk(&sent));
        peer.send("0\r\n\r\n");
    });
    let proxy = server.proxy(Policy::Inject);
    assert_eq!(ask(proxy.address(), &request(PLAIN)).1, stream);
    eventually("it is counted", || proxy.seen().lost == [Dropped::UsageEdit]);
}

fn failed_meter_releases_held_bytes() {
    let server = Server::start(|peer, _| {
        peer.send(HEAD);
        peer.send(chunk(&format!("{}{FINISH}{}", delta("a"), &USAGE[..20])));
        peer.send(chunk(&format!("{}{DONE}", &USAGE[20..])));
        peer.send("0\r\n\r\n");
    });
    let proxy = server.proxy(Policy::Inject);
    proxy.seen().meter_panics = true;
    let (_, body) = ask(proxy.address(), &request(PLAIN));
    assert_eq!(body, format!("{}{FINISH}{USAGE}{DONE}", delta("a")), "nothing is lost");
    eventually("it is counted", || proxy.seen().lost == [Dropped::Panic]);
}

fn trailers_follow_held_bytes() {
    let tail = "data: [DONE]\n";
    let server = Server::start(move |peer, _| {
        peer.send(HEAD);
        peer.send(format!("{}{}0\r\nX-T: 1\r\n\r\n", chunk(&format!("{}{FINISH}", delta("a"))), chunk(tail)));
    });
    let proxy = server.proxy(Policy::Inject);
    let (_, body) = ask(proxy.address(), &request(PLAIN));
    assert_eq!(body, format!("{}{FINISH}{tail}", delta("a")));
}

fn unreadable_request_leaves_the_profile_unchanged() {
    let server = Server::start(|peer, _| {
        peer.send(HEAD);
        peer.send(chunk(&format!("{}{FINISH}{USAGE}{DONE}", delta("a"))));
        peer.send("0\r\n\r\n");
    });
    let proxy = server.proxy(Policy::Inject);
    // A request with a content coding that requests usage itself, here opaque bytes.
    let opaque = "\u{1}\u{2}gz";
    ask(proxy.address(), &request(opaque).replace("Host: h", "Host: h\r\nContent-Encoding: gzip"));
    ask(proxy.address(), &request(PLAIN));
    assert_eq!(steps(&proxy), [UsageStep::Unreadable, UsageStep::Injected]);
}

fn odd_stream_options_leave_the_profile_unchanged() {
    let server = Server::streaming();
    let proxy = server.proxy(Policy::Inject);
    for (flag, step) in [("1", UsageStep::ClientAsked), ("\"maybe\"", UsageStep::Unreadable)] {
        let body = format!(r#"{{"model":"m","stream":true,"stream_options":{{"include_usage":{flag}}}}}"#);
        assert!(ask(proxy.address(), &request(&body)).1.contains("usage"), "{flag}");
        ask(proxy.address(), &request(PLAIN));
        assert_eq!(steps(&proxy).split_off(steps(&proxy).len() - 2), [step, UsageStep::Injected]);
    }
}

fn stream_of_unclear_type_is_edited() {
    let server = Server::start(|peer, _| {
        peer.send(HEAD.replace("text/event-stream", "text/plain"));
        peer.send(chunk(&format!("{}{FINISH}{USAGE}{DONE}", delta("a"))));
        peer.send("0\r\n\r\n");
    });
    let proxy = server.proxy(Policy::Inject);
    let (_, body) = ask(proxy.address(), &request(PLAIN));
    assert_eq!(body, format!("{}{FINISH}{DONE}", delta("a")));
    assert_eq!(record(&proxy).tokens.output(), 2);
}

fn response_without_inference_leaves_no_record() {
    let server = Server::start(|peer, _| {
        peer.closed_after(now());
    });
    let proxy = server.proxy(Policy::Inject);
    let mut client = proxy.connect();
    client.send("POST /admin/reload HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
    eventually("the request came", || server.bodies().len() == 1);
    drop(client);
    eventually("the in-flight gauge is zero", || proxy.seen().seated == 0);
    assert!(proxy.inbox.recv_timeout(Duration::from_millis(100)).is_err(), "no inference, no record");
}

/// The rejection is the answer if the original cannot be sent any more.
fn rejection_is_forwarded_if_the_original_fails() {
    let upstream = Upstream::start(|peer, number| {
        if let Some(head) = peer.head().filter(|_| number == 0) {
            upstream_body(peer, &head);
            peer.send(REFUSAL);
            // Holds the connection, so that the next request needs another one.
            peer.closed_after(now());
        }
    });
    let proxy = Proxy::with(upstream.address, policy(Policy::Inject));
    let (head, body) = ask(proxy.address(), &request(PLAIN));
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    assert_eq!(body, "{\"error\":\"what\"}");
    assert_eq!(record(&proxy).ending, Ending::ErrorStatus);
}

/// Requests whose edited form is rejected and whose original is accepted must not cost other clients their counts:
/// an image that its host serves only the second time can cause one.
fn one_clients_odd_request_affects_no_others() {
    let server = Server::start(|peer, body| {
        if body.contains("odd") && body.contains("stream_options") {
            peer.send(REFUSAL);
        } else {
            peer.send(HEAD);
            let usage = if body.contains("include_usage") { USAGE } else { "" };
            peer.send(chunk(&format!("{}{FINISH}{usage}{DONE}", delta("a"))));
            peer.send("0\r\n\r\n");
        }
    });
    let proxy = Proxy::with(server.upstream.address, |plan| {
        policy(Policy::Inject)(plan);
        in_force(keys())(plan);
    });
    let of = |tenant: &str, body: &str| {
        let request = request(body).replace("Host: h", &format!("Host: h\r\nX-Api-Key: {tenant}"));
        ask(proxy.address(), &request);
        record(&proxy).tokens.input_provenance
    };
    let odd = r#"{"odd":1,"stream":true}"#;
    // Of several tenants, because a tenant's name may be free. The rejection does not name the option.
    of("key-a", odd);
    of("key-b", odd);
    of("key-a", odd);
    assert_eq!([of("key-b", PLAIN), of("none", PLAIN)], [Provenance::Reported; 2]);
    assert_eq!(steps(&proxy), [UsageStep::Injected; 5]);
}
