//! Valid URLs, and the errors of invalid ones.

use connect::Address;

use super::Url;

#[test]
fn valid_urls_are_parsed() {
    for (written, host, port, prefix, shown) in [
        ("http://127.0.0.1:8000", "127.0.0.1", 8000, "", "http://127.0.0.1:8000"),
        ("HTTP://vllm-0.vllm:8000/", "vllm-0.vllm", 8000, "", "http://vllm-0.vllm:8000"),
        ("http://gpu_1", "gpu_1", 80, "", "http://gpu_1:80"),
        ("http://gpu:80/a/b//", "gpu", 80, "/a/b", "http://gpu:80/a/b"),
        ("http://[::1]:8000/p", "::1", 8000, "/p", "http://[::1]:8000/p"),
        ("http://[::1]", "::1", 80, "", "http://[::1]:80"),
        ("http://gpu:8000/a%20b", "gpu", 8000, "/a%20b", "http://gpu:8000/a%20b"),
        ("https://api.example.com", "api.example.com", 443, "", "https://api.example.com:443"),
        ("https://[::1]:8443/p", "::1", 8443, "/p", "https://[::1]:8443/p"),
    ] {
        let url = Url::parse(written).unwrap();
        assert_eq!((&url.address, url.prefix.as_str()), (&Address::host(host, port), prefix), "{written}");
        assert_eq!(url.is_secure, written.starts_with("https"), "{written}");
        assert_eq!(url.to_string(), shown);
        assert_eq!(Url::parse(shown), Ok(url), "the printed URL is valid");
    }
}

#[test]
fn unix_socket_is_an_address() {
    for written in ["unix:/run/vllm.sock", "unix:run/vllm.sock"] {
        let url = Url::parse(written).unwrap();
        assert_eq!(url.to_string(), written);
        assert_eq!((url.address.authority().as_str(), url.address.port()), ("localhost", None));
    }
    let long = Url::parse(&format!("unix:/{}", "a".repeat(107))).unwrap_err();
    assert_eq!(long.problem, "the path of the Unix socket is longer than 107 bytes");
}

#[test]
fn invalid_urls_have_errors() {
    for (written, problem) in [
        ("", "not a URL"),
        ("127.0.0.1:8000", "not a URL"),
        ("ftp://gpu", "the URL's scheme is neither http nor https"),
        ("https://", "the URL names no host"),
        ("unix:///run/vllm.sock", "`unix:` is followed by two slashes, as if a Unix socket had a host"),
        ("unix:", "the path of the Unix socket does not end in a file name"),
        ("unix:/run/", "the path of the Unix socket does not end in a file name"),
        ("http://", "the URL names no host"),
        ("http://:8000", "the URL names no host"),
        ("http:///v1", "the URL names no host"),
        ("http://gpu:0", "the URL's port is not a number from 1 to 65535"),
        ("http://gpu:65536", "the URL's port is not a number from 1 to 65535"),
        ("http://gpu:+80", "the URL's port is not a number from 1 to 65535"),
        ("http://gpu:", "the URL's port is not a number from 1 to 65535"),
        ("http://key:secret@gpu:8000", "the URL holds credentials"),
        ("http://gpu:8000/?a=b", "the URL has a query or a fragment"),
        ("http://gpu:8000#x", "the URL has a query or a fragment"),
        ("http://gpu:8000/a b", "the URL's path has an invalid character"),
        ("http://g pu:8000", "the URL's host is neither a name nor an address"),
        ("http://127.0.0.256:1", "the URL's host is neither a name nor an address"),
        ("http://::1:8000", "an IPv6 address in a URL needs brackets"),
        ("http://[gpu]:8000", "the URL's host is not an IPv6 address"),
    ] {
        assert_eq!(Url::parse(written).unwrap_err().problem, problem, "{written}");
    }
}
