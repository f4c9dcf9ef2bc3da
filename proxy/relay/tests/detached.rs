//! Work that continues after its client left: rejected where it could not be counted.

use relay::{Refusal, ServerKind};
use usage::Policy;

use crate::support::Proxy;
use crate::usage::{PLAIN, Server, ask, request};

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
    for body in [r#"{"model":"m","background":true}"#, r#"{"stream":true,"background":"yes"}"#] {
        let (status, answer) = of(body);
        assert_eq!(status, "HTTP/1.1 403 Forbidden", "{body}");
        assert!(answer.contains(r#""code":"background_refused""#), "{answer}");
    }
    assert_eq!(server.bodies().len(), 0, "nothing was sent");
    assert_eq!(of(r#"{"model":"m","background":false}"#).0, "HTTP/1.1 200 OK");
    assert_eq!(server.bodies().len(), 1);
    assert_eq!(proxy.seen().refused, [Refusal::Detached; 2]);
}
