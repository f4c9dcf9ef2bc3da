//! Requests share a connection, each on a stream of its own.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::{GET, ask, proxy};
use crate::support::http2_server::*;
use crate::support::{self, DEADLINE, eventually, now};

crate::support::wires::table! {
    (http2_upstreams, "these servers use HTTP/2 themselves"):
        requests_of_many_clients_share_a_connection,
        known_server_gets_one_connection_for_simultaneous_requests,
        simultaneous_requests_open_as_many_connections_as_they_need,
        requests_beyond_the_servers_limit_get_another_connection,
        leaving_client_resets_its_stream_only,
        incomplete_request_is_reset_in_every_phase,
        heads_wait_for_the_first_bytes_of_their_bodies,
        trailers_pass_both_ways;
    (http2_upstreams, slow, "these servers use HTTP/2 themselves"):
        idle_connection_is_closed_by_a_goaway;
}

const POST: &str = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n";

fn requests_of_many_clients_share_a_connection() {
    let server = Http2Server::start(|mut frames, _| async move {
        frames.begin(&[]).await;
        let (stream, _) = frames.request().await.unwrap();
        frames.answer(stream, "alone").await;
        // Answers in pairs, the later request first.
        while let Some((first, _)) = frames.request().await {
            let Some((second, _)) = frames.request().await else { break };
            frames.answer(second, "second").await;
            frames.answer(first, "first").await;
        }
    });
    let proxy = proxy(server.address);
    let (mut one, mut other) = (proxy.connect(), proxy.connect());
    assert_eq!(ask(&mut one, GET).1, "alone");
    for _ in 0..3 {
        one.send(GET);
        eventually("the request is in flight", || proxy.running.in_flight() == 1);
        let (_, body) = ask(&mut other, GET);
        let head = one.head().unwrap();
        let mut bodies = [body, String::from_utf8(support::upstream_body(&mut one, &head)).unwrap()];
        bodies.sort();
        assert_eq!(bodies, ["first", "second"]);
        eventually("the requests have ended", || proxy.running.in_flight() == 0);
    }
    assert_eq!(server.connections(), 1);
}

/// Simultaneous requests wait for one connection, instead of opening one each.
fn known_server_gets_one_connection_for_simultaneous_requests() {
    let server = Http2Server::start(|mut frames, number| async move {
        frames.begin(&[]).await;
        if number == 0 {
            let (stream, _) = frames.request().await.unwrap();
            frames.answer(stream, "ok").await;
            return;
        }
        frames.answer_all("ok").await;
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    ask(&mut client, GET);
    // The server has closed the first connection.
    std::thread::sleep(Duration::from_millis(100));
    let mut clients: Vec<_> = (0..20).map(|_| proxy.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(GET));
    for client in &mut clients {
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
    }
    assert_eq!(server.connections(), 2);
}

/// A connection that opens has streams for some of the waiting requests: the others wait for the next one.
fn simultaneous_requests_open_as_many_connections_as_they_need() {
    const REQUESTS: usize = 24;
    let (go, begun) = tokio::sync::watch::channel(0);
    let go = Arc::new(go);
    let server = Http2Server::start(move |mut frames, number| {
        let (go, mut begun) = (Arc::clone(&go), begun.clone());
        async move {
            frames.begin(&[(3, 4)]).await;
            if number == 0 {
                for _ in 0..2 {
                    let (stream, _) = frames.request().await.unwrap();
                    frames.answer(stream, "ok").await;
                }
                return;
            }
            let mut streams = Vec::new();
            loop {
                tokio::select! {
                    request = frames.request() => {
                        streams.push(request.unwrap().0);
                        go.send_modify(|begun| *begun += 1);
                    }
                    _ = begun.wait_for(|begun| *begun == REQUESTS) => break,
                }
            }
            for stream in streams {
                frames.answer(stream, "ok").await;
            }
            tokio::time::sleep(DEADLINE).await;
        }
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    ask(&mut client, GET);
    ask(&mut client, GET);
    // The server has closed the first connection.
    std::thread::sleep(Duration::from_millis(100));
    let mut clients: Vec<_> = (0..REQUESTS).map(|_| proxy.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(GET));
    for client in &mut clients {
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
    }
    assert_eq!(server.connections(), 1 + REQUESTS / 4);
}

fn requests_beyond_the_servers_limit_get_another_connection() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(wait));
    let server = Http2Server::start(move |mut frames, number| {
        let wait = Arc::clone(&wait);
        async move {
            frames.begin(&[(3, 1)]).await;
            let mut is_first = number == 0;
            while let Some((stream, _)) = frames.request().await {
                if !std::mem::take(&mut is_first) && number == 0 {
                    let _ = tokio::task::spawn_blocking({
                        let wait = Arc::clone(&wait);
                        move || wait.lock().unwrap().recv_timeout(DEADLINE)
                    })
                    .await;
                }
                frames.answer(stream, &format!("{number}")).await;
            }
        }
    });
    let proxy = proxy(server.address);
    let mut first = proxy.connect();
    ask(&mut first, GET);
    eventually("the request has ended", || proxy.running.in_flight() == 0);
    first.send(GET);
    eventually("the request is in flight", || proxy.running.in_flight() == 1);
    let mut second = proxy.connect();
    assert_eq!(ask(&mut second, GET).1, "1", "the first connection has no free stream");
    go.send(()).unwrap();
    let head = first.head().unwrap();
    assert_eq!(support::upstream_body(&mut first, &head), b"0");
    assert_eq!(server.connections(), 2);
}

fn leaving_client_resets_its_stream_only() {
    let (heard, said) = mpsc::channel();
    let server = Http2Server::start(move |mut frames, _| {
        let heard = heard.clone();
        async move {
            frames.begin(&[]).await;
            let (first, _) = frames.request().await.unwrap();
            frames.answer(first, "warm").await;
            let (one, _) = frames.request().await.unwrap();
            let (other, _) = frames.request().await.unwrap();
            for stream in [one, other] {
                frames.send(HEADERS, END_HEADERS, stream, OK).await;
                frames.send(DATA, 0, stream, b"begun").await;
            }
            let reset = frames.until(RST_STREAM).await.unwrap();
            heard.send((now(), reset.payload.clone())).unwrap();
            let left = if reset.stream == one { other } else { one };
            frames.send(DATA, END_STREAM, left, b"ended").await;
            frames.answer_all("ok").await;
        }
    });
    let proxy = proxy(server.address);
    let mut clients = [proxy.connect(), proxy.connect()];
    ask(&mut clients[0], GET);
    // The server answers once it has both.
    clients.iter_mut().for_each(|client| client.send(GET));
    for client in &mut clients {
        client.head();
        client.until("begun\r\n");
    }
    let [one, mut other] = clients;
    let since = now();
    drop(one);
    let (at, reason) = said.recv_timeout(DEADLINE).unwrap();
    assert!(at.duration_since(since) < support::PROMPT, "{:?}", at.duration_since(since));
    assert_eq!(reason, CANCEL);
    other.until("ended\r\n");
    assert_eq!(server.connections(), 1);
}

/// Neither END_STREAM nor a window may be needed for the reset.
fn incomplete_request_is_reset_in_every_phase() {
    for (window, sent) in [(65_535, "1234"), (0, "1234"), (2, "1234"), (65_535, "")] {
        let (heard, said) = mpsc::channel();
        let (reached, reaches) = mpsc::channel();
        let server = Http2Server::start(move |mut frames, _| {
            let (heard, reached) = (heard.clone(), reached.clone());
            async move {
                frames.begin(&[(4, window)]).await;
                frames.until(HEADERS).await.unwrap();
                reached.send(()).unwrap();
                loop {
                    let frame = frames.next().await.unwrap();
                    assert!(frame.kind != DATA || frame.flags & END_STREAM == 0, "the body is not ended");
                    if frame.kind == RST_STREAM {
                        heard.send(frame.payload).unwrap();
                        break;
                    }
                }
                frames.next().await;
            }
        });
        let proxy = proxy(server.address);
        let mut client = proxy.connect();
        client.send(format!("{POST}{sent}"));
        reaches.recv_timeout(DEADLINE).unwrap();
        drop(client);
        assert_eq!(said.recv_timeout(DEADLINE).unwrap(), CANCEL, "{window} {sent}");
        eventually("the request has ended", || proxy.running.in_flight() == 0);
    }
}

/// The first bytes of a body decide if it is edited, and if the server rejects what was added to the request.
fn heads_wait_for_the_first_bytes_of_their_bodies() {
    const LATER: Duration = Duration::from_millis(10);
    const BAD_REQUEST: &[u8] = &[0x8c];
    const TOKEN: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1,\"total_tokens\":2}}\n\n";
    let server = Http2Server::start(|mut frames, _| async move {
        frames.begin(&[]).await;
        let (edited, body) = frames.request().await.unwrap();
        assert!(String::from_utf8(body).unwrap().contains("include_usage"));
        frames.send(HEADERS, END_HEADERS, edited, OK).await;
        tokio::time::sleep(LATER).await;
        frames.send(DATA, 0, edited, TOKEN.as_bytes()).await;
        frames.send(DATA, END_STREAM, edited, USAGE.as_bytes()).await;
        let (rejected, _) = frames.request().await.unwrap();
        frames.send(HEADERS, END_HEADERS, rejected, BAD_REQUEST).await;
        tokio::time::sleep(LATER).await;
        frames.send(DATA, END_STREAM, rejected, b"unknown: stream_options").await;
        let (original, body) = frames.request().await.unwrap();
        assert!(!String::from_utf8(body).unwrap().contains("include_usage"));
        frames.answer(original, "ok").await;
        frames.next().await;
    });
    let target = support::secure(server.address);
    let proxy = super::Proxy::with(server.address, |plan| {
        plan.upstreams[0].target = target;
        plan.upstreams[0].usage = usage::Policy::Inject;
    });
    let chat = "{\"model\":\"m\",\"stream\":true,\"messages\":[]}";
    let chat = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{chat}",
        chat.len()
    );
    let mut client = proxy.connect();
    client.send(&chat);
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(client.until("0\r\n\r\n"), format!("{:x}\r\n{TOKEN}\r\n0\r\n\r\n", TOKEN.len()));
    assert_eq!(ask(&mut client, &chat).1, "ok");
}

fn trailers_pass_both_ways() {
    let (heard, said) = mpsc::channel();
    let server = Http2Server::start(move |mut frames, _| {
        let heard = heard.clone();
        async move {
            frames.begin(&[]).await;
            let head = frames.until(HEADERS).await.unwrap();
            assert_eq!(head.flags & END_STREAM, 0);
            let trailers = frames.until(HEADERS).await.unwrap();
            heard.send(trailers.flags & END_STREAM).unwrap();
            // `:status: 200`, and `trailer: x-t` by name.
            let announced = [OK, b"\x00\x07trailer\x03x-t"].concat();
            frames.send(HEADERS, END_HEADERS, head.stream, &announced).await;
            frames.send(DATA, 0, head.stream, b"ok").await;
            frames.send(HEADERS, END_HEADERS | END_STREAM, head.stream, b"\x00\x03x-t\x01v").await;
            frames.next().await;
        }
    });
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    client.send(
        "POST /x HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\nTrailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-A: b\r\n\r\n",
    );
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(client.until("\r\n\r\n"), "2\r\nok\r\n0\r\nx-t: v\r\n\r\n");
    assert_eq!(said.recv_timeout(DEADLINE).unwrap(), END_STREAM);
}

fn idle_connection_is_closed_by_a_goaway() {
    let (heard, said) = mpsc::channel();
    let server = Http2Server::start(move |mut frames, _| {
        let heard = heard.clone();
        async move {
            frames.begin(&[]).await;
            let (stream, _) = frames.request().await.unwrap();
            frames.answer(stream, "ok").await;
            let goaway = frames.until(GOAWAY).await.unwrap();
            heard.send(goaway.payload[4..8].to_vec()).unwrap();
        }
    });
    let target = support::secure(server.address);
    let proxy = super::Proxy::with(server.address, |plan| {
        plan.upstreams[0].target = target;
        plan.pool_idle = Duration::from_millis(20);
    });
    let mut client = proxy.connect();
    ask(&mut client, GET);
    assert_eq!(said.recv_timeout(DEADLINE).unwrap(), [0; 4], "NO_ERROR");
}
