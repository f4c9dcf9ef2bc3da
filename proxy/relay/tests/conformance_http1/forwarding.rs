//! The order of the steps of one turn: a slice that is not edited is written to the client, then it is metered (law 2).

use std::sync::mpsc;

use super::Proxy;
use crate::support::{PROMPT, Upstream, now, upstream_body};
use crate::tenants::post;

crate::support::wires::table! {
    (http1_clients, "the HTTP/2 library writes after the turn"):
        slice_is_written_before_it_is_metered;
}

/// The meter waits at the first token until the client has the slice.
fn slice_is_written_before_it_is_metered() {
    const FRAME: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n";
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let head =
        |framing: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{framing}\r\n\r\n");
    let (chunked, sized) = (head("Transfer-Encoding: chunked"), head("Content-Length: 1000"));
    let (first, second) = FRAME.split_at(20);
    for pieces in [
        vec![chunked.clone(), chunk(FRAME)],
        vec![chunked.clone() + &chunk(FRAME)],
        vec![chunked, chunk(first), chunk(second)],
        vec![sized.clone(), FRAME.to_owned()],
        vec![sized + FRAME],
    ] {
        let text = pieces.concat();
        let upstream = Upstream::start(move |peer, _| {
            let head = peer.head().unwrap();
            upstream_body(peer, &head);
            pieces.iter().for_each(|piece| peer.send(piece));
            peer.closed_after(now());
        });
        let proxy = Proxy::new(upstream.address);
        let (has, had) = mpsc::channel::<()>();
        let (metered, meters) = mpsc::channel();
        proxy.seen().at_token = Some(Box::new(move || metered.send(had.recv_timeout(PROMPT)).unwrap()));
        let mut client = proxy.connect();
        client.send(post("/v1/chat/completions", "", r#"{"model":"m","stream":true}"#));
        client.until("]}\n\n");
        has.send(()).unwrap();
        assert_eq!(meters.recv().unwrap(), Ok(()), "{text}");
    }
}
