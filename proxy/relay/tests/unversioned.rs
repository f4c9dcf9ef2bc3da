//! OpenAI's endpoints without their version, where another server has an endpoint of its own.

use meter::Ending;
use usage::Policy;

use crate::support::Proxy;
use crate::usage::{ASKED, DONE, HEAD, PLAIN, Server, USAGE, ask, chunk, record, request};

/// LiteLLM serves OpenAI's endpoints without a version, too: the path is llama.cpp's, and the answer is not.
#[test]
fn completions_without_a_version_are_asked_for_usage() {
    const TEXT: &str =
        "data: {\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n";
    const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n";
    const NATIVE: &str = "data: {\"index\":0,\"content\":\"a\",\"stop\":true,\"tokens_predicted\":2,\"tokens_evaluated\":7}\n\n";
    for (answer, seen) in [
        (format!("{TEXT}{TEXT}{FINISH}{USAGE}{DONE}"), format!("{TEXT}{TEXT}{FINISH}{DONE}")),
        (NATIVE.to_owned(), NATIVE.to_owned()),
    ] {
        let server = Server::start(move |peer, _| {
            peer.send(HEAD);
            peer.send(chunk(&answer));
            peer.send("0\r\n\r\n");
        });
        let proxy = Proxy::with(server.upstream.address, |plan| plan.upstreams[0].usage = Policy::Inject);
        let (_, body) = ask(proxy.address(), &request(PLAIN).replace("/v1/chat/completions", "/completions"));
        assert_eq!(body, seen);
        assert_eq!(server.bodies(), [ASKED]);
        let record = record(&proxy);
        assert_eq!((record.tokens.input(), record.tokens.output()), (7, 2));
        assert_eq!(record.ending, Ending::Complete);
        assert_eq!(proxy.seen().lost, []);
    }
}
