//! Usage members without counts on the wire: the client receives the frames of a stream without the option.

use relay::ServerKind;
use usage::Policy;

use crate::support::Proxy;
use crate::usage::{DONE, FINISH, HEAD, PLAIN, Server, USAGE, ask, chunk, delta, record, request};

/// A usage of `null` beside each piece is removed where only the option brings it, and stays elsewhere.
#[test]
fn placeholders_of_the_option_are_removed() {
    let null = |frame: String| frame.replace("]}\n", "],\"usage\":null}\n");
    for (kind, goes) in [(ServerKind::Openai, true), (ServerKind::Dynamo, false)] {
        for at in [0, 9, 60, 75] {
            let server = Server::start(move |peer, _| {
                peer.send(HEAD);
                peer.send(chunk(&null(delta("a"))));
                let (text, torn) = (null(delta("b")), null(FINISH.to_owned()));
                let first = chunk(&format!("{text}{}", &torn[..at]));
                peer.send(format!("{first}{}0\r\n\r\n", chunk(&format!("{}{USAGE}{DONE}", &torn[at..]))));
            });
            let proxy = Proxy::with(server.upstream.address, |plan| {
                plan.upstreams[0].usage = Policy::Inject;
                plan.upstreams[0].kind = Some(kind);
            });
            let (_, body) = ask(proxy.address(), &request(PLAIN));
            let plain = [delta("a"), delta("b"), FINISH.to_owned()];
            let wanted = if goes { plain } else { plain.map(null) };
            assert_eq!(body, wanted.concat() + DONE, "{kind:?} {at}");
            let record = record(&proxy);
            assert_eq!((record.tokens.input(), record.tokens.output()), (7, 2));
            assert_eq!(proxy.seen().lost, []);
        }
    }
}
