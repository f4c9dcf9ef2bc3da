//! Work that goes on after its client left: kept from the upstreams where it could not be counted.

use relay::{Kind, Refusal};
use usage::Policy;

use crate::support::Proxy;
use crate::usage::{PLAIN, Server, ask, request};

fn refusing_detached(server: &Server, kind: Option<Kind>) -> Proxy {
    Proxy::with(server.upstream.address, |plan| {
        plan.upstreams[0].kind = kind;
        plan.refuse_detached = true;
    })
}

/// Its answer can be fetched by a GET, which is not metered, while the row says that the client left.
#[test]
fn conversation_id_is_kept_from_the_server() {
    let named = request(PLAIN).replace("Host: h", "Host: h\r\nX-Conversation-Id: mallory1");
    for (kind, passes) in [(None, false), (Some(Kind::LlamaCpp), false), (Some(Kind::Vllm), true)] {
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

#[test]
fn response_in_the_background_is_refused() {
    let server = Server::streaming();
    let proxy = refusing_detached(&server, None);
    let of = |body: &str| {
        let (head, body) = ask(proxy.address(), &request(body).replace("/chat/completions", "/responses"));
        (head.lines().next().unwrap().to_owned(), body)
    };
    for body in [r#"{"model":"m","background":true}"#, r#"{"stream":true,"background":"yes"}"#] {
        let (status, told) = of(body);
        assert_eq!(status, "HTTP/1.1 403 Forbidden", "{body}");
        assert!(told.contains(r#""code":"background_refused""#), "{told}");
    }
    assert_eq!(server.bodies().len(), 0, "nothing was sent");
    assert_eq!(of(r#"{"model":"m","background":false}"#).0, "HTTP/1.1 200 OK");
    assert_eq!(server.bodies().len(), 1);
    assert_eq!(proxy.seen().refused, [Refusal::Detached; 2]);
}
