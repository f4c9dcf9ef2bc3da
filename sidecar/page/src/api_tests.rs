//! The live page's numbers and files over real loopback sockets.

use super::*;

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("it has a head").1
}

#[track_caller]
fn assert_error(answer: &str, status: u16) -> String {
    assert_status(answer, status);
    assert!(answer.contains("content-type: application/json\r\n"), "{answer}");
    let error: Value = serde_json::from_str(body(answer)).unwrap();
    error["error"].as_str().expect("it is a text").to_owned()
}

#[test]
fn files_have_tags_and_variants() {
    let running = serve(Fixed::default());
    let ask = |path: &str, fields: &str| {
        let mut stream = connect(running.address());
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let bytes = answer.split_off(end);
        (String::from_utf8(answer).unwrap(), bytes)
    };
    let tag = |head: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("it has a tag");
        line.to_owned()
    };
    for (path, content_type, file) in [
        ("/", "text/html; charset=utf-8", include_bytes!("../web/built/index.html").as_slice()),
        ("/assets/app.js", "text/javascript; charset=utf-8", include_bytes!("../web/built/app.js")),
        ("/assets/app.css", "text/css; charset=utf-8", include_bytes!("../web/built/app.css")),
        ("/assets/icon.svg", "image/svg+xml", include_bytes!("../web/built/icon.svg")),
    ] {
        let (plain_head, plain) = ask(path, "");
        assert!(plain_head.contains(&format!("content-type: {content_type}\r\n")), "{plain_head}");
        assert!(plain_head.contains("vary: accept-encoding\r\n"), "{plain_head}");
        assert!(plain == file, "{path}");
        let (gzip_head, packed) = ask(path, "Accept-Encoding: gzip\r\n");
        assert!(gzip_head.contains("content-encoding: gzip\r\n"), "{gzip_head}");
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&*packed).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == file, "{path}");
        assert_ne!(tag(&plain_head), tag(&gzip_head), "the variants differ in their bytes");
        for known in [tag(&plain_head), format!("\"x\", W/{}", tag(&plain_head)), "*".to_owned()] {
            let (head, nothing) = ask(path, &format!("If-None-Match: {known}\r\n"));
            assert!(head.starts_with("HTTP/1.1 304 ") && nothing.is_empty(), "{head}");
        }
        assert!(ask(path, "If-None-Match: \"x\"\r\n").0.starts_with("HTTP/1.1 200 "));
    }
}

#[test]
fn hostile_names_are_values_of_json() {
    let source = Fixed::default();
    let names = ["</script><b>", "a\"b\\c", "line\nfeed\r\n\r\ndata: x", "\u{202e}right\u{2028}", "a\u{0}b"];
    *source.models.lock().unwrap() = names.map(str::to_owned).to_vec();
    let running = serve(source);
    let answer = get(running.address(), "/api/now");
    assert_status(&answer, 200);
    let now: Now = serde_json::from_str(body(&answer)).unwrap();
    assert_eq!(now.models.iter().map(|model| &*model.name).collect::<Vec<_>>(), names);
    let mut stream = Stream::open(running.address());
    assert_eq!(stream.event().models, now.models);
}

#[test]
fn history_follows_the_query() {
    let running = serve(Fixed::default());
    for (query, scope, step) in [
        ("", "all", 1),
        ("?scope=all&step=1", "all", 1),
        ("?step=60&scope=model%3Aa%2Fb%20c", "model:a/b c", 60),
    ] {
        let answer = get(running.address(), &format!("/api/history{query}"));
        assert_status(&answer, 200);
        let history: History = serde_json::from_str(body(&answer)).unwrap();
        assert_eq!((&*history.scope, history.step_seconds), (scope, step));
    }
    for (query, status) in [
        ("?scope=model:none", 404),
        ("?scope=", 404),
        ("?step=2", 400),
        ("?step", 400),
        ("?scope=%ff", 400),
        ("?other=1", 400),
    ] {
        assert_error(&get(running.address(), &format!("/api/history{query}")), status);
    }
}

#[test]
fn errors_are_json_with_a_remedy() {
    let running = serve(Fixed { has_ledger: true, ..Fixed::default() });
    assert_eq!(assert_error(&get(running.address(), "/api/spend"), 500), "no \"database\"");
    let running = serve(Fixed::default());
    assert!(assert_error(&get(running.address(), "/api/spend"), 404).contains("--ledger"));
    assert!(assert_error(&get(running.address(), "/api/curve"), 404).contains("/metrics"));
    assert!(assert_error(&get(running.address(), "/api/"), 404).contains("/api/now"));
    assert_status(&get(running.address(), "/assets/../app.js"), 404);
}

#[test]
fn numbers_need_the_token_and_probes_do_not() {
    let running = serve(Fixed { token: Some("right"), ..Fixed::default() });
    let ask = |path: &str, field: &str| {
        send(running.address(), &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{field}\r\n"))
    };
    for path in ["/", "/assets/app.js", "/assets/app.css", "/assets/icon.svg", "/livez", "/readyz"] {
        assert_status(&ask(path, ""), 200);
    }
    for path in ["/metrics", "/api/now", "/api/stream", "/api/history", "/api/curve", "/api/spend", "/api/x"]
    {
        for wrong in ["", "Authorization: right\r\n", "Authorization: Bearer wrong\r\n"] {
            let answer = ask(path, wrong);
            assert_status(&answer, 401);
            assert!(answer.contains("www-authenticate: Bearer\r\n"), "{answer}");
            assert!(answer.contains("admin_token_file"), "the remedy: {answer}");
            assert!(path == "/metrics" || !assert_error(&answer, 401).is_empty());
        }
    }
    for path in ["/metrics", "/api/now", "/api/history"] {
        assert_status(&ask(path, "Authorization: Bearer right\r\n"), 200);
    }
    let running = serve(Fixed { token: Some("unreadable"), ..Fixed::default() });
    assert_status(&get(running.address(), "/metrics"), 500);
    assert_error(&get(running.address(), "/api/now"), 500);
}

/// A reader of the stream.
struct Stream(std::io::BufReader<TcpStream>);

impl Stream {
    fn open(address: SocketAddr) -> Self {
        Self::request(connect(address))
    }

    fn request(mut stream: TcpStream) -> Self {
        write!(stream, "GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        Self(std::io::BufReader::new(stream))
    }

    /// Returns the next line without its end; `None` at the end of the stream.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = std::io::BufRead::read_line(&mut self.0, &mut line);
        read.is_ok_and(|length| length > 0).then(|| line.trim_end().to_owned())
    }

    /// Returns the state of the next event.
    fn event(&mut self) -> Now {
        loop {
            let line = self.line().expect("an event");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

#[test]
fn stream_ends_when_its_token_is_replaced() {
    let source = Fixed::default();
    let running = serve(source.clone());
    let mut reader = Stream::open(running.address());
    reader.event();
    source.revoked.store(true, Ordering::Relaxed);
    let events =
        std::iter::from_fn(|| reader.line()).filter(|line| line.starts_with("data: ")).take(5).count();
    assert!(events <= 1, "{events} events after the replacement, of which one was under way");
}

#[test]
fn ten_readers_have_the_same_events() {
    let source = Fixed::default();
    let running = serve(source.clone());
    let mut readers: Vec<_> = (0..10).map(|_| Stream::open(running.address())).collect();
    let head: Vec<_> = std::iter::from_fn(|| readers[0].line().filter(|line| !line.is_empty())).collect();
    assert_eq!(head[0], "HTTP/1.1 200 OK");
    assert!(head.contains(&"content-type: text/event-stream".to_owned()), "{head:?}");
    for reader in &mut readers {
        let [one, two, three] = [(); 3].map(|()| reader.event().at_unix_ms);
        assert!(one < two && two < three, "each sample once: {one} {two} {three}");
    }
    assert_status(&get(running.address(), "/livez"), 200);
    drop(running);
    for mut reader in readers {
        while reader.line().is_some() {}
    }
}

#[test]
fn streams_are_limited() {
    let running = serve(Fixed::default());
    let mut open: Vec<_> = (0..MAX_STREAMS).map(|_| Stream::open(running.address())).collect();
    open.iter_mut().for_each(|stream| drop(stream.event()));
    assert!(assert_error(&get(running.address(), "/api/stream"), 503).contains("/api/now"));
    assert_status(&get(running.address(), "/api/now"), 200);
    drop(open.pop());
    let deadline = Instant::now() + Duration::from_secs(20);
    while !Stream::open(running.address()).line().is_some_and(|line| line.contains(" 200 ")) {
        assert!(Instant::now() < deadline, "a closed stream frees its place");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn one_peer_does_not_hold_all_streams() {
    let source = Fixed::default();
    let running = serve(source.clone());
    let mut open: Vec<_> = (0..MAX_STREAMS).map(|_| Stream::open(running.address())).collect();
    open.iter_mut().for_each(|stream| drop(stream.event()));
    let mut other = Stream::request(connect_from(2, running.address()));
    other.event();
    let mut oldest = open.remove(0);
    while oldest.line().is_some() {}
    assert_eq!(source.evicted.load(Ordering::Relaxed), 1);
    open.iter_mut().for_each(|stream| drop(stream.event()));
    other.event();
}

#[test]
fn head_of_a_stream_ends() {
    let running = serve(Fixed::default());
    let answer = send(running.address(), "HEAD /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_status(&answer, 200);
    assert!(answer.contains("content-type: text/event-stream\r\n") && body(&answer).is_empty(), "{answer}");
}

/// Events of a megabyte fill every buffer; after ten seconds without a read the connection is closed.
#[test]
fn reader_that_stalls_is_closed() {
    let source = Fixed::default();
    *source.models.lock().unwrap() = (0..10_000).map(|n| format!("{n:0100}")).collect();
    let running = serve(source.clone());
    let mut stalled = Stream::open(running.address());
    let mut reader = Stream::open(running.address());
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(25) {
        reader.event();
    }
    let mut rest = 0;
    while let Some(line) = stalled.line() {
        rest += line.len();
        assert!(rest < 16 << 20, "the stream had no end");
    }
}
