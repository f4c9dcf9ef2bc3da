//! Work that continues after its client left: rejected where it could not be counted.

use std::sync::Arc;

use meter::Ending;
use relay::{Gate, Refusal, ServerKind, Terms};
use usage::Policy;

use crate::support::{CANCEL, Proxy, Upstream, upstream_body};
use crate::tenants::{answer, exchange, in_force, keys, post};
use crate::terms::Under;
use crate::usage::{PLAIN, Server, ask, record, request};

fn refusing_detached(server: &Server, kind: Option<ServerKind>) -> Proxy {
    Proxy::with(server.upstream.address, |plan| {
        plan.upstreams[0].kind = kind;
        plan.refuse_detached = true;
    })
}

/// Its answer can be fetched by a GET, which is not metered, while the row has the ending of a client that left.
#[test]
fn conversation_id_is_removed() {
    let named = request(PLAIN).replace("Host: h", "Host: h\r\nX-Conversation-Id: mallory1");
    for (kind, passes) in [(None, false), (Some(ServerKind::LlamaCpp), false), (Some(ServerKind::Vllm), true)]
    {
        let server = Server::streaming();
        let proxy = refusing_detached(&server, kind);
        ask(proxy.address(), &named);
        let head = server.heads.lock().unwrap()[0].to_ascii_lowercase();
        assert_eq!(head.contains("x-conversation-id"), passes, "{kind:?}: {head}");
    }
    let server = Server::streaming();
    ask(server.proxy(Policy::Inject).address(), &named);
    assert!(server.heads.lock().unwrap()[0].to_ascii_lowercase().contains("x-conversation-id: mallory1"));
}

/// The results of a batch are fetched later, by requests that are not metered.
#[test]
fn batch_is_rejected() {
    let ask_at = |proxy: &Proxy, path: &str| {
        let (head, answer) = ask(proxy.address(), &request("{}").replace("/v1/chat/completions", path));
        (head[9..12].to_owned(), answer)
    };
    let server = Server::streaming();
    let proxy = refusing_detached(&server, None);
    let batches = [
        "/v1/batches",
        "/batches",
        "/v1/threads/t1/runs",
        "/v1beta/models/m:asyncBatchEmbedContent",
        "/async-invoke",
        "/model-invocation-job",
        "/v1/batch/jobs",
        "/v1/embed-jobs",
        "/async/chat/completions",
        "/v1/projects/p/locations/l/batchPredictionJobs",
        "/v1/threads/t1/runs/r1/submit_tool_outputs",
        "/openai//V1/Batches/",
        "/v1/batche%73",
        "/openai%2Fv1%2Fbatches",
        "/v1/messages/batches?x=y",
        "/v1beta/models/m:batchGenerateContent",
        "/v1beta/models/m%3AbatchGenerateContent",
    ];
    for path in batches {
        let (status, answer) = ask_at(&proxy, path);
        assert_eq!(status, "403", "{path}");
        assert!(answer.contains(r#""code":"background_refused""#), "{path}: {answer}");
    }
    assert_eq!(proxy.seen().refused, vec![Refusal::Detached; batches.len()]);
    assert_eq!(server.bodies().len(), 0, "nothing was sent");
    for path in ["/v1/batches/b1/cancel", "/v1/mybatches", "/v1beta/models/m:generateContent"] {
        assert_eq!(ask_at(&proxy, path).0, "200", "{path}");
    }
    let allowing = server.proxy(Policy::Inject);
    for path in batches {
        assert_eq!(ask_at(&allowing, path).0, "200", "{path}");
    }
    // Listing batches creates none.
    let listing = "GET /v1/batches HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(&ask(proxy.address(), listing).0[9..12], "200");
}

#[test]
fn background_response_is_rejected() {
    let server = Server::streaming();
    let proxy = refusing_detached(&server, None);
    let of = |body: &str| {
        let (head, body) = ask(proxy.address(), &request(body).replace("/chat/completions", "/responses"));
        (head.lines().next().unwrap().to_owned(), body)
    };
    let bodies = [
        r#"{"model":"m","background":true}"#,
        r#"{"stream":true,"background":"yes"}"#,
        r#"{"model":"m","deferred":true,"background":false}"#,
    ];
    for body in bodies {
        let (status, answer) = of(body);
        assert_eq!(status, "HTTP/1.1 403 Forbidden", "{body}");
        assert!(answer.contains(r#""code":"background_refused""#), "{answer}");
    }
    assert_eq!(server.bodies().len(), 0, "nothing was sent");
    assert_eq!(of(r#"{"model":"m","background":false}"#).0, "HTTP/1.1 200 OK");
    assert_eq!(server.bodies().len(), 1);
    assert_eq!(proxy.seen().refused, [Refusal::Detached; 3]);
}

/// xAI takes the member at its chat.
#[test]
fn deferred_chat_is_rejected_unless_the_server_is_known_not_to_defer() {
    let server = Server::streaming();
    for (kind, status) in [(None, "403"), (Some(ServerKind::Openai), "403"), (Some(ServerKind::Vllm), "200")]
    {
        let proxy = refusing_detached(&server, kind);
        let deferred = request(r#"{"model":"m","messages":[],"deferred":true}"#);
        assert_eq!(&ask(proxy.address(), &deferred).0[9..12], status, "{kind:?}");
    }
}

/// A provider that accepts work in a form that is not known, and gives the result to a GET.
fn accepting() -> Upstream {
    const RESULT: &str = r#"{"id":"chatcmpl-9","model":"m","choices":[{"index":0,"message":{"content":"hi"}}],
        "usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    Upstream::start(|peer, _| {
        while let Some(head) = peer.head() {
            upstream_body(peer, &head);
            match head {
                _ if head.starts_with("GET /v1/late/pending") => answer(peer, r#"{"status":"running"}"#),
                _ if head.starts_with("GET ") => answer(peer, RESULT),
                _ => answer(peer, r#"{"request_id":"job-1"}"#),
            }
        }
    })
}

/// The answer alone shows it: a success with an id, without output and without usage.
#[test]
fn accepted_work_has_a_row_and_its_result_is_metered_once() {
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    for path in ["/v1/chat/completions", "/v9/late/answers"] {
        let upstream = accepting();
        let proxy = Proxy::with(upstream.address, in_force(keys()));
        let mut client = proxy.connect();
        let own = get("/v1/late/job-1");
        exchange(&mut client, &own);
        assert!(proxy.inbox.recv_timeout(CANCEL).is_err(), "{path}: it is not known yet");
        exchange(&mut client, post(path, "", r#"{"model":"m","messages":[]}"#));
        let started = record(&proxy);
        assert_eq!((started.ending, started.tokens.is_counted()), (Ending::Detached, false), "{path}");
        exchange(&mut client, get("/v1/late/pending?id=job-1"));
        exchange(&mut client, &own);
        let fetched = record(&proxy);
        assert_eq!((fetched.tokens.input(), fetched.tokens.output()), (7, 2), "{path}");
        assert_eq!(&*fetched.identity.model, "m");
        exchange(&mut client, &own);
        assert!(proxy.inbox.recv_timeout(CANCEL).is_err(), "{path}: it counts once");
    }
    // A POST may fetch it, too, and its answer may have the id of the work. Another process does not count it.
    let own = Upstream::start(|peer, _| {
        while let Some(head) = peer.head() {
            upstream_body(peer, &head);
            let is_done = head.starts_with("POST /v1/late/fetch");
            answer(
                peer,
                if is_done { r#"{"id":"job-1","usage":{"total_tokens":7}}"# } else { r#"{"id":"job-1"}"# },
            );
        }
    });
    let proxy = Proxy::with(own.address, in_force(keys()));
    let mut client = proxy.connect();
    let fetch = || post("/v1/late/fetch", "", r#"{"id":"job-1"}"#);
    exchange(&mut client, post("/v9/late/answers", "", r#"{"model":"m","messages":[]}"#));
    assert_eq!(record(&proxy).ending, Ending::Detached);
    exchange(&mut client, fetch());
    assert_eq!(record(&proxy).tokens.input(), 7);
    exchange(&mut client, fetch());
    assert!(proxy.inbox.recv_timeout(CANCEL).is_err(), "it counts once");
    let restarted = Proxy::with(own.address, in_force(keys()));
    exchange(&mut restarted.connect(), fetch());
    assert!(restarted.inbox.recv_timeout(CANCEL).is_err(), "it is unknown");
    // An empty answer is not work.
    let empty = Upstream::start(|peer, _| {
        while let Some(head) = peer.head() {
            upstream_body(peer, &head);
            answer(peer, r#"{"id":"c","choices":[{"index":0,"message":{}}]}"#);
        }
    });
    let proxy = Proxy::new(empty.address);
    exchange(&mut proxy.connect(), post("/v1/chat/completions", "", r#"{"model":"m","messages":[]}"#));
    assert_eq!(record(&proxy).ending, Ending::NoOutput);
}

#[test]
fn more_work_is_rejected_where_some_was_accepted() {
    let upstream = accepting();
    let terms = Terms { refuse_uncountable: true, ..Terms::default() };
    let proxy = Proxy::with(upstream.address, |plan| {
        in_force(keys())(plan);
        plan.upstreams[0].usage = Policy::Inject;
        plan.control.gate = Some(Arc::new(Gate::with_models(Box::new(Under { terms, restricts: false }))));
    });
    let of = |path: &str, key: &str| {
        let fields = format!("x-api-key: {key}\r\n");
        let (head, _) = exchange(&mut proxy.connect(), post(path, &fields, r#"{"model":"m","messages":[]}"#));
        head[9..12].to_owned()
    };
    let chat = "/v1/chat/completions";
    assert_eq!(of(chat, "key-a"), "200");
    record(&proxy);
    assert_eq!(of(chat, "key-a"), "403");
    assert_eq!(proxy.seen().refused, [Refusal::Uncountable]);
    // Neither another path nor another tenant is concerned.
    assert_eq!([of("/v1/responses", "key-a"), of(chat, "key-b")], ["200", "200"]);
}
