//! Allowed and rejected hosts.

use hyper::{Request, StatusCode, Version};

use super::AllowedHosts;

fn status(target: &str, hosts: &[&str]) -> u16 {
    let allowed = AllowedHosts::new(["meter.example".to_owned()]);
    let mut request = Request::builder().uri(target);
    for host in hosts {
        request = request.header("host", *host);
    }
    allowed.check(&request.body(()).unwrap()).map_or_else(|status| status.as_u16(), |()| 200)
}

#[test]
fn literals_localhost_and_configured_names_are_allowed() {
    for host in [
        "127.0.0.1",
        "127.0.0.1:9464",
        "10.1.2.3:80",
        "[::1]:9464",
        "[fe80::1]",
        "localhost",
        "LocalHost:9464",
        "localhost.",
        "meter.example",
        "METER.example:9464",
    ] {
        assert_eq!(status("/", &[host]), 200, "{host}");
    }
}

#[test]
fn any_other_name_is_misdirected() {
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "x.meter.example",
        "user@localhost",
        "[evil]",
        "[::1].evil.example",
        "[::1].evil.example:9464",
        "[::1]evil",
        "[::1]:evil",
        "[::1]:9464.evil.example",
        "user@[::1]",
        "0x7f.1",
    ] {
        assert!([400, 421].contains(&status("/", &[host])), "{host}");
    }
    assert_eq!(status("/", &["evil.example:9464"]), 421);
}

#[test]
fn host_of_target_is_checked_too() {
    assert_eq!(status("http://evil.example/metrics", &["127.0.0.1"]), 421);
    assert_eq!(status("http://127.0.0.1/metrics", &["evil.example"]), 421);
    assert_eq!(status("http://localhost:1/metrics", &["localhost:1"]), 200);
}

#[test]
fn missing_or_second_host_is_bad_request() {
    assert_eq!(status("/", &[]), 400);
    assert_eq!(status("/", &["localhost", "localhost"]), 400);
    assert_eq!(status("/", &["not a host"]), 400);
    let old = Request::builder().version(Version::HTTP_10).uri("/").body(()).unwrap();
    assert_eq!(AllowedHosts::default().check(&old), Ok::<(), StatusCode>(()));
}
