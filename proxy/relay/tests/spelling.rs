//! A request is metered in any spelling of its path and body that the server understands.

use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use meter::Provenance;
use relay::{Passthrough, Refusal, ServerKind};
use scan::Dialect;

use crate::support::http2::{connect, run};
use crate::support::{CANCEL, Proxy, Upstream, eventually, upstream_body};
use crate::tenants::{answer, exchange, post};
use crate::usage::{Server, record};

const ANSWER: &str = r#"{"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"content":"ab"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":5,"total_tokens":1005}}"#;

#[test]
fn path_with_a_line_feed_is_metered() {
    let server = Server::start(|peer, _| answer(peer, ANSWER));
    let proxy = Proxy::new(server.upstream.address);
    let mut client = proxy.connect();
    for path in [
        "/v1/chat/completions%0a",
        "/v1/chat/completions%0A",
        "/v1/chat/completions/%0a",
        "/v1/chat/completions%0a/",
        "/openai/v1//chat%2Fcomplet%69ons%0A",
        "/V1/Chat/Completions",
    ] {
        let body = r#"{"model":"served-model","messages":[]}"#;
        let (head, answer) = exchange(&mut client, post(path, "content-type: application/json\r\n", body));
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        assert_eq!(answer, ANSWER);
        let record = record(&proxy);
        assert_eq!(record.identity.dialect, Dialect::OpenaiChat, "{path}");
        assert_eq!(&*record.identity.model, "served-model", "{path}");
        assert_eq!((record.tokens.input(), record.tokens.output()), (1000, 5), "{path}");
        let asked = server.heads.lock().unwrap().pop().unwrap();
        assert!(
            asked.starts_with(&format!("POST {path} HTTP/1.1\r\n")),
            "the path is forwarded unchanged: {asked}"
        );
    }
    assert!(proxy.seen().passed.is_empty());
}

#[test]
fn asterisk_under_http2_belongs_to_options() {
    let server = Server::start(|peer, _| answer(peer, "{}"));
    let proxy = Proxy::new(server.upstream.address);
    let address = proxy.address();
    run(async move {
        let mut client = connect(address).await;
        for (method, status) in [("POST", 400), ("GET", 400), ("OPTIONS", 200)] {
            let target =
                hyper::Uri::builder().scheme("http").authority("h").path_and_query("*").build().unwrap();
            let request = Request::builder().method(method).uri(target).body(Empty::<Bytes>::new()).unwrap();
            let response = client.send_request(request).await.unwrap();
            assert_eq!(response.status(), status, "{method}");
            response.into_body().collect().await.unwrap();
        }
    });
    assert_eq!(proxy.seen().refused, [Refusal::Target; 2]);
    let heads = server.heads.lock().unwrap();
    assert_eq!(heads.len(), 1);
    assert!(heads[0].starts_with("OPTIONS * HTTP/1.1\r\n"), "{heads:?}");
}

#[test]
fn plain_text_of_a_transcription_is_no_usage() {
    let text = r#"{"text":"x","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let server = Server::start(move |peer, _| {
        let length = text.len();
        peer.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{text}"
        ));
    });
    let proxy = Proxy::new(server.upstream.address);
    let (_, answer) = exchange(&mut proxy.connect(), post("/v1/audio/transcriptions", "", "{}"));
    assert_eq!(answer, text);
    let record = record(&proxy);
    assert_eq!(record.tokens.output_provenance, Provenance::None);
    assert_eq!((record.tokens.input(), record.tokens.output()), (0, 0));
}

#[test]
fn structured_decisions_are_metered() {
    let server = Server::start(|peer, _| {
        answer(
            peer,
            r#"{"id":"d1","model":"m","decision":"a","usage":{"input_tokens":31,"output_tokens":3,"total_tokens":34}}"#,
        );
    });
    let proxy = Proxy::new(server.upstream.address);
    exchange(&mut proxy.connect(), post("/v1/systemone", "", r#"{"model":"m","input":"a or b"}"#));
    let record = record(&proxy);
    assert_eq!((record.tokens.input(), record.tokens.output()), (31, 3));
    assert_eq!(record.tokens.output_provenance, Provenance::Reported);
    assert!(proxy.inbox.recv_timeout(CANCEL).is_err());
    eventually("the in-flight gauge is zero", || proxy.seen().seated == 0);
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A body in every encoding that Python's `json.loads` accepts.
fn encodings(text: &str) -> Vec<Vec<u8>> {
    let utf32 = |order: fn(u32) -> [u8; 4]| text.chars().map(u32::from).flat_map(order).collect::<Vec<u8>>();
    vec![
        text.as_bytes().to_vec(),
        [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
        utf16(text),
        [&b"\xFF\xFE"[..], &utf16(text)].concat(),
        text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        utf32(u32::to_le_bytes),
        utf32(u32::to_be_bytes),
    ]
}

fn post_bytes(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A server that answers with any bytes.
fn answering(body: &'static str) -> Upstream {
    Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            upstream_body(peer, &head);
            answer(peer, body);
        }
    })
}

#[test]
fn body_in_any_encoding_is_metered() {
    let upstream = answering(ANSWER);
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    for body in encodings(r#"{"model":"served-model","messages":[]}"#) {
        for path in ["/v1/chat/completions", "/invocations"] {
            exchange(&mut client, post_bytes(path, &body));
            let record = record(&proxy);
            assert_eq!(&*record.identity.model, "served-model", "{path} {:?}", &body[..8]);
            assert_eq!(record.identity.dialect, Dialect::OpenaiChat, "{path} {:?}", &body[..8]);
            assert_eq!((record.tokens.input(), record.tokens.output()), (1000, 5));
        }
    }
}

/// The server can read a body that the proxy cannot: its answer shows what was requested.
#[test]
fn unreadable_body_is_metered_by_its_answer() {
    for (path, body, answer, dialect, tokens) in [
        ("/invocations", &b"\x1f\x8b gzip"[..], ANSWER, Dialect::OpenaiChat, (1000, 5)),
        (
            "/invocations",
            b"\x1f\x8b gzip",
            r#"{"object":"list","data":[],"model":"m","usage":{"prompt_tokens":9,"total_tokens":9,"completion_tokens":0}}"#,
            Dialect::Embeddings,
            (9, 0),
        ),
        (
            "/invocations",
            b"no JSON",
            r#"{"id":"r","model":"m","results":[],"usage":{"total_tokens":9}}"#,
            Dialect::Rerank,
            (9, 0),
        ),
        (
            "/v9/dream",
            b"{}",
            r#"{"model":"m","usage":{"input_tokens":9,"output_tokens":2}}"#,
            Dialect::Unknown,
            (9, 2),
        ),
        ("/v9/dream", br#"{"messages":[]}"#, ANSWER, Dialect::OpenaiChat, (1000, 5)),
    ] {
        let upstream = answering(answer);
        let proxy = Proxy::new(upstream.address);
        let (_, received) = exchange(&mut proxy.connect(), post_bytes(path, body));
        assert_eq!(received, answer);
        let record = record(&proxy);
        assert_eq!(record.identity.dialect, dialect, "{path} {answer}");
        assert_eq!((record.tokens.input(), record.tokens.output()), tokens, "{path} {answer}");
        assert_eq!(record.tokens.input_provenance, Provenance::Reported, "{path} {answer}");
        assert_eq!(&*record.identity.model, "m");
        assert!(proxy.seen().passed.is_empty());
        eventually("the in-flight gauge is zero", || proxy.seen().seated == 0);
    }
}

#[test]
fn answer_without_tokens_makes_no_record() {
    for answer in [r#"{"done":true}"#, "[]", "null", r#"{"object":"list","data":[]}"#] {
        let upstream = answering(answer);
        let proxy = Proxy::new(upstream.address);
        for path in ["/invocations", "/v9/dream"] {
            exchange(&mut proxy.connect(), post_bytes(path, b"{}"));
        }
        eventually("both pass", || proxy.seen().passed == [Passthrough::Path; 2]);
        eventually("the in-flight gauge is zero", || proxy.seen().seated == 0);
        assert!(proxy.inbox.try_recv().is_err(), "{answer}");
    }
}

#[test]
fn rankings_and_scores_are_metered_at_invocations() {
    let answer = r#"{"id":"r","model":"m","results":[],"usage":{"total_tokens":9}}"#;
    let upstream = answering(answer);
    let proxy = Proxy::new(upstream.address);
    for body in [
        r#"{"model":"m","query":"a","documents":["b"]}"#,
        r#"{"model":"m","text_1":"a","text_2":["b"]}"#,
        r#"{"model":"m","queries":"a","items":["b"]}"#,
        r#"{"model":"m","data_1":"a","data_2":"b"}"#,
    ] {
        exchange(&mut proxy.connect(), post_bytes("/invocations", body.as_bytes()));
        let record = record(&proxy);
        assert_eq!((record.identity.dialect, record.tokens.input()), (Dialect::Rerank, 9), "{body}");
    }
}

/// If two model names are possible, the answer shows which one the server read.
#[test]
fn answer_decides_between_two_readings() {
    for (kind, answered, model) in [
        (None, "a", "a"),
        (None, "b", "b"),
        (None, "other", "a"),
        (Some(ServerKind::Ollama), "b", "b"),
        (Some(ServerKind::Vllm), "b", "a"),
    ] {
        let answer = format!(
            r#"{{"model":"{answered}","choices":[],"usage":{{"prompt_tokens":7,"completion_tokens":2}}}}"#
        );
        let upstream = answering(answer.leak());
        let proxy = Proxy::with(upstream.address, |plan| plan.upstreams[0].kind = kind);
        exchange(&mut proxy.connect(), post("/v1/chat/completions", "", r#"{"model":"a","MODEL":"b"}"#));
        assert_eq!(&*record(&proxy).identity.model, model, "{kind:?} {answered}");
    }
}

/// `_unknown` means no name and `_other` all names beyond a cap: no client's model takes their series.
#[test]
fn models_take_no_reserved_name() {
    let server = Server::start(|peer, body| {
        let answered = ["_unknown", "_other"].into_iter().find(|name| body.contains(name));
        answer(peer, &ANSWER.replace(r#""m""#, &format!("{:?}", answered.unwrap_or("m"))));
    });
    let proxy = Proxy::new(server.upstream.address);
    let mut client = proxy.connect();
    for (body, model, response) in [
        (r#"{"model":"_unknown"}"#, "\u{fffd}unknown", "\u{fffd}unknown"),
        (r#"{"model":"_other"}"#, "\u{fffd}other", "\u{fffd}other"),
        (r#"{"model":"\u005fother","also":"_other"}"#, "\u{fffd}other", "\u{fffd}other"),
        (r#"{"model":"_others"}"#, "_others", "\u{fffd}other"),
        (r#"{"messages":[]}"#, "m", "m"),
    ] {
        exchange(&mut client, post("/v1/chat/completions", "", body));
        let identity = record(&proxy).identity;
        assert_eq!((&*identity.model, identity.response_model.as_deref()), (model, Some(response)), "{body}");
    }
    let refusing = Upstream::answering("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::new(refusing.address);
    exchange(&mut proxy.connect(), post("/v1/chat/completions", "", r#"{"messages":[]}"#));
    assert_eq!(&*record(&proxy).identity.model, "_unknown", "no name");
}
