//! Spellings by which a client could pay less: each is read as its server reads it.

use meter::Provenance;
use relay::UsageStep;
use usage::Policy;

use crate::support::eventually;
use crate::tenants::{answer, exchange, post};
use crate::usage::{DONE, FINISH, HEAD, PLAIN, Server, USAGE, ask, chunk, delta, record, request, steps};

const CHAT: &str = "/v1/chat/completions";

/// A server that names the model of its answer. A request with no valid name gets the server's own model.
#[test]
fn model_is_the_one_the_server_reads() {
    let server = Server::start(|peer, _| {
        answer(peer, r#"{"model":"dear","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#);
    });
    let proxy = server.proxy(Policy::Inject);
    let mut client = proxy.connect();
    let gemini = "/v1beta/models/dear:generateContent";
    for (path, body, model) in [
        (CHAT, r#"{"model":"cheap"}"#, "cheap"),
        (CHAT, r#"{"model":"cheap","model":"dear"}"#, "dear"),
        (CHAT, r#"{"model":"cheap","model":null}"#, "dear"),
        (CHAT, r#"{"model":"cheap","model":["x"]}"#, "dear"),
        (CHAT, r#"{"messages":[]}"#, "dear"),
        // The path names the model.
        (gemini, r#"{"model":"cheap"}"#, "dear"),
    ] {
        exchange(&mut client, post(path, "", body));
        assert_eq!(&*record(&proxy).identity.model, model, "{path} {body}");
    }
}

/// A server in Python: it streams if `stream` is any true value, and reports usage if that is requested with plain
/// booleans.
fn lax() -> Server {
    Server::start(|peer, body| {
        peer.send(HEAD);
        peer.send(chunk(&delta("a")));
        let usage = if body.contains(r#""include_usage":true"#) { USAGE } else { "" };
        peer.send(chunk(&format!("{FINISH}{usage}{DONE}")));
        peer.send("0\r\n\r\n");
    })
}

/// Each of these requests streams without usage, so its prompt would be free.
#[test]
fn no_spelling_makes_a_prompt_free() {
    let server = lax();
    let proxy = server.proxy(Policy::Inject);
    for (field, body) in [
        ("Content-Encoding: identity", PLAIN),
        ("Content-Encoding: ", PLAIN),
        // Servers that ignore the field take the body unchanged.
        ("Content-Encoding: gzip", PLAIN),
        ("X: y", "\u{FEFF}{\"model\":\"m\",\"stream\":true}"),
        ("X: y", r#"{"model":"m","stream":true,"x":NaN}"#),
        ("X: y", r#"{"model":"m","stream":1}"#),
        ("X: y", r#"{"model":"m","stream":1.0}"#),
        ("X: y", r#"{"model":"m","stream":"true"}"#),
        ("X: y", r#"{"model":"m","stream":"Y"}"#),
        ("X: y", r#"{"model":"m","stream":false,"stream":"on"}"#),
        ("X: y", r#"{"model":"m","stream":true,"stream_options":{"include_usage":0}}"#),
        ("X: y", r#"{"model":"m","stream":"yes","stream_options":{"include_usage":"off"}}"#),
    ] {
        let head = format!("Host: h\r\n{field}");
        let (_, answer) = ask(proxy.address(), &request(body).replace("Host: h", &head));
        assert_eq!(answer, format!("{}{FINISH}{DONE}", delta("a")), "{field} {body}");
        let record = record(&proxy);
        assert_eq!((record.tokens.input(), record.tokens.output()), (7, 2), "{field} {body}");
        assert_eq!(record.tokens.output_provenance, Provenance::Reported, "{field} {body}");
        assert_eq!(steps(&proxy).last(), Some(&UsageStep::Injected), "{field} {body}");
    }
    assert_eq!(proxy.seen().lost, []);
}

/// Other servers reject such a flag or read it as false: the answer is unchanged, and the profile learns nothing.
#[test]
fn lax_flags_change_nothing_on_strict_servers() {
    let whole = r#"{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#;
    let server = Server::start(move |peer, _| answer(peer, whole));
    let proxy = server.proxy(Policy::Inject);
    let sent = r#"{"model":"m","stream":1}"#;
    assert_eq!(ask(proxy.address(), &request(sent)).1, whole);
    assert_eq!(record(&proxy).tokens.input(), 5);
    assert_eq!(proxy.seen().lost, []);

    // It answers 400 to the option where it does not stream, and accepts only `true`.
    let strict = Server::start(move |peer, body| {
        let streams = body.contains(r#""stream": true"#);
        if streams {
            peer.send(HEAD);
            peer.send(chunk(&format!("{}{FINISH}{USAGE}{DONE}", delta("a"))));
            peer.send("0\r\n\r\n");
        } else if body.contains("stream_options") {
            peer.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}");
        } else {
            answer(peer, whole);
        }
    });
    let proxy = strict.proxy(Policy::Inject);
    for _ in 0..2 {
        assert_eq!(ask(proxy.address(), &request(sent)).1, whole);
        assert_eq!(record(&proxy).tokens.input(), 5);
        assert_eq!(ask(proxy.address(), &request(PLAIN)).1, format!("{}{FINISH}{DONE}", delta("a")));
        assert_eq!(record(&proxy).tokens.input(), 7);
    }
    eventually("all are asked", || steps(&proxy) == [UsageStep::Injected; 4]);
}
