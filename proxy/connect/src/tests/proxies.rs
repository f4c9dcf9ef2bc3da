//! Tunnels through an HTTP proxy, and the choice of a proxy by the environment.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use super::PATIENCE;
use super::authority::{Authority, Server};
use crate::{Address, ConnectError, HttpProxy, Offer, Target, Tls};

/// A proxy that answers CONNECT so, and records the heads of requests.
async fn proxy(answer: &'static str) -> (Server, Arc<Mutex<String>>) {
    let heads = Arc::new(Mutex::new(String::new()));
    let recorded = Arc::clone(&heads);
    let server = Server::with(move |mut stream| {
        let recorded = Arc::clone(&recorded);
        async move {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { return };
                head.push(char::from(byte));
            }
            recorded.lock().unwrap().push_str(&head);
            let authority = head.split(' ').nth(1).unwrap().to_owned();
            stream.write_all(answer.as_bytes()).await.unwrap();
            if answer.contains("HTTP/1.1 200 ")
                && let Ok(mut far) = TcpStream::connect(authority).await
            {
                let _ = copy_bidirectional(&mut stream, &mut far).await;
            }
        }
    })
    .await;
    (server, heads)
}

async fn connect(server_port: u16, authority: &Authority, proxy: &str) -> Result<(), ConnectError> {
    let tls = Tls::read(&authority.files()).unwrap();
    let proxy = HttpProxy::parse(proxy).unwrap();
    let target = Target::through(Address::host("localhost", server_port), Some(tls), Some(proxy));
    let mut stream = target.connect(Offer::Http1, PATIENCE).await?;
    stream.write_all(b"hello").await.unwrap();
    let mut read = [0; 5];
    stream.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"hello");
    assert!(stream.is_alive());
    Ok(())
}

#[tokio::test]
async fn tunnel_carries_tls() {
    let authority = Authority::new();
    let server = Server::of(&authority.localhost()).await;
    let (proxy, heads) = proxy("HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n").await;
    connect(server.port, &authority, &format!("http://us%65r:p%40ss@127.0.0.1:{}", proxy.port))
        .await
        .unwrap();
    let heads = heads.lock().unwrap();
    let expected = format!(
        "CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\nProxy-Authorization: Basic dXNlcjpwQHNz\r\n\r\n",
        port = server.port
    );
    assert_eq!(*heads, expected);
}

#[tokio::test]
async fn interim_responses_of_the_proxy_are_skipped() {
    let authority = Authority::new();
    let server = Server::of(&authority.localhost()).await;
    let answer =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    let (proxy, _) = proxy(answer).await;
    connect(server.port, &authority, &format!("http://127.0.0.1:{}", proxy.port)).await.unwrap();
}

#[tokio::test]
async fn refusal_of_the_proxy_is_named() {
    let authority = Authority::new();
    let flood: &str = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000).leak();
    for (answer, text) in [
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "answers 403 to CONNECT localhost:9"),
        ("HTTP/1.1 407 Who\r\n\r\n", "requires a user and a password (status 407); write them into its URL"),
        ("SSH-2.0-OpenSSH\r\n\r\n", "does not answer in HTTP"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "answers 101 to CONNECT localhost:9"),
        (flood, "sends a response head without an end"),
        ("HTTP/1.1 200", "cut the connection: unexpected end of file"),
    ] {
        let (proxy, _) = proxy(answer).await;
        let error = connect(9, &authority, &format!("http://127.0.0.1:{}", proxy.port)).await.unwrap_err();
        assert!(matches!(error, ConnectError::Proxy(_)), "{error:?}");
        assert_eq!(error.to_string(), format!("the proxy 127.0.0.1:{} {text}", proxy.port));
    }
    let error = connect(9, &authority, "http://127.0.0.1:1").await.unwrap_err();
    assert_eq!(error.to_string(), "the proxy 127.0.0.1:1 cannot be reached: connection refused");
}

#[test]
fn urls_of_proxies_are_checked() {
    assert_eq!(HttpProxy::parse("http://user:secret@proxy:3128").unwrap().to_string(), "http://proxy:3128");
    assert_eq!(HttpProxy::parse("proxy:3128").unwrap().to_string(), "http://proxy:3128");
    assert_eq!(HttpProxy::parse("http://[fd::1]").unwrap().to_string(), "http://[fd::1]:1080");
    for (text, problem) in [
        ("", "it is not the URL of a proxy"),
        ("http://", "it is not the URL of a proxy"),
        ("ftp://proxy", "it is not the URL of a proxy"),
        ("https://proxy", "only proxies with http:// are supported"),
        ("socks5://proxy", "only proxies with http:// are supported"),
    ] {
        assert_eq!(HttpProxy::parse(text).unwrap_err().0, problem, "{text}");
    }
    assert!(!format!("{:?}", HttpProxy::parse("http://u:secret@proxy:1").unwrap()).contains("secret"));
}

#[test]
fn environment_is_read_as_curl_reads_it() {
    let found = |variables: &[(&str, &str)], host: &str| {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        HttpProxy::of_environment(host, variable).unwrap().map(|proxy| proxy.to_string())
    };
    let url = |name: &str| Some(format!("http://{name}:3128"));
    assert_eq!(found(&[], "api.example"), None);
    assert_eq!(found(&[("HTTPS_PROXY", "http://a:3128")], "api.example"), url("a"));
    let both =
        [("HTTPS_PROXY", "http://a:3128"), ("https_proxy", "http://b:3128"), ("ALL_PROXY", "http://c:3128")];
    assert_eq!(found(&both, "api.example"), url("b"));
    assert_eq!(found(&[("https_proxy", ""), ("ALL_PROXY", "c:3128")], "api.example"), url("c"));
    assert_eq!(found(&[("HTTP_PROXY", "http://a:3128")], "api.example"), None, "it is for http");
    let no =
        |list: &'static str, host: &str| found(&[("https_proxy", "http://a:3128"), ("no_proxy", list)], host);
    assert_eq!(no("example, other", "api.example"), None);
    assert_eq!(no(".example", "api.example"), None);
    assert_eq!(no("ample", "api.example"), url("a"));
    assert_eq!(no("*", "api.example"), None);
    assert_eq!(no("10.0.0.0/8,fd::/16", "10.1.2.3"), None);
    assert_eq!(no("10.0.0.0/8,fd::/16", "fd::1"), None);
    assert_eq!(no("10.0.0.0/8", "11.0.0.1"), url("a"));
    assert!(HttpProxy::of_environment("a", |_| Some("https://proxy".to_owned())).is_err());
}
