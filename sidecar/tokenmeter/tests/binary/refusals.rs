//! Errors of a start: their text and the exit code.

use std::net::TcpListener;
use std::path::PathBuf;

use crate::child::{finished, free, output, tokenmeter};

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tokenmeter-{name}-{}.yaml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn all_invalid_settings_are_reported_with_exit_2() {
    let path = file(
        "wrong",
        "lisen: 127.0.0.1:1\nstall_ms: soon\nupstreams:\n  - url: ftp://gpu:8000\n    kind: vllm\n    speed: 9\n",
    );
    let shown = path.to_str().unwrap();
    for command in ["run", "check-config"] {
        let mut command = tokenmeter(&[command, "--config", shown, "--admin", "nowhere"]);
        let (code, stdout, stderr) = finished(command.env("TOKENMETER_WORKERS", "many").output().unwrap());
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        let expected = format!(
            "tokenmeter: 6 errors in the settings:\n\
             \x20 {shown}:1: there is no setting `lisen`; did you mean `listen`?\n\
             \x20 {shown}:6: an upstream has no key `speed`; known are name, url, tls, proxy, kind, \
             usage, role, listen, listen_tls, tls_cert, tls_key, tls_client_ca, proxy_protocol, engine_metrics, \
             gpus\n\
             \x20 {shown}:4: the URL's scheme is neither http nor https; write http://HOST:PORT, as in \
             http://127.0.0.1:8000, or https://HOST\n\
             \x20 --admin: `nowhere` is not ADDRESS:PORT; write it as in 127.0.0.1:9800, or 0.0.0.0:9800 for every \
             interface\n\
             \x20 TOKENMETER_WORKERS: `many` is not a number of threads; write a whole number from 1 to 1024\n\
             \x20 {shown}:2: `soon` is not a number of milliseconds; write a whole number from 1 to 3600000\n"
        );
        assert_eq!(stderr, expected);
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn missing_upstream_is_an_error_with_a_remedy() {
    let (code, _, stderr) = output(&[]);
    assert_eq!(code, Some(2));
    assert_eq!(
        stderr,
        "tokenmeter: --upstream: the inference server is not named; write --upstream http://HOST:PORT (or \
         TOKENMETER_UPSTREAM, or `upstreams` in the file)\n"
    );
}

#[test]
fn unreadable_file_is_the_only_error() {
    let path = file("unread", "upstream: \"http://gpu:1\nstall_ms: 5\n");
    for config in [path.to_str().unwrap(), "/nonexistent.yaml"] {
        let (code, _, stderr) = output(&["check-config", "--config", config]);
        assert_eq!(code, Some(2));
        assert!(stderr.contains(config) && !stderr.contains("not named"), "{stderr}");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn unknown_variable_is_a_warning() {
    let mut command = tokenmeter(&["check-config", "--upstream", "http://gpu:1"]);
    let (code, _, stderr) = finished(command.env("TOKENMETER_OTLP_ENDPOIN", "x").output().unwrap());
    assert_eq!(code, Some(0));
    assert!(stderr.contains("TOKENMETER_OTLP_ENDPOIN: ") && stderr.contains("did you mean"), "{stderr}");
}

#[test]
fn missing_or_invalid_file_exits_2() {
    let (code, _, stderr) = output(&["run", "--upstream", "http://gpu:1", "--config", "/nonexistent.yaml"]);
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with("tokenmeter: /nonexistent.yaml: cannot be read: "), "{stderr}");
    let path = file("broken", "listen: [::1]:9800\n");
    let (code, _, stderr) =
        output(&["run", "--upstream", "http://gpu:1", "--config", path.to_str().unwrap()]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with(&format!("tokenmeter: {}:1: not YAML: ", path.display())), "{stderr}");
}

#[test]
fn own_listener_as_upstream_exits_2() {
    let port = free().port();
    for (listen, host) in [
        ("127.0.0.1", "localhost"),
        ("127.0.0.1", "0.0.0.0"),
        ("0.0.0.0", "127.0.0.1"),
        ("0.0.0.0", "[::1]"),
        ("127.0.0.1", "127.0.0.1"),
    ] {
        let listen = format!("{listen}:{port}");
        let upstream = format!("http://{host}:{port}");
        let (code, _, stderr) =
            output(&["run", "--admin", "127.0.0.1:0", "--listen", &listen, "--upstream", &upstream]);
        assert_eq!(code, Some(2), "{listen} {upstream}: {stderr}");
        let expected = format!("tokenmeter: --upstream: {upstream} is tokenmeter's own listener {listen}, ");
        assert!(stderr.starts_with(&expected), "{stderr}");
    }
}

#[test]
fn port_in_use_exits_1_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, other) in [("--listen", "--admin"), ("--admin", "--listen")] {
        let (code, _, stderr) =
            output(&["run", "--upstream", "http://127.0.0.1:1", flag, &address, other, "127.0.0.1:0"]);
        assert_eq!(code, Some(1), "{flag}: {stderr}");
        let expected = format!(
            "tokenmeter: {flag}: cannot listen on {address}: Address already in use (os error 98); stop the process that \
             listens there, or choose another port with {flag}"
        );
        assert!(stderr.contains(&expected), "{stderr}");
    }
}

#[test]
fn foreign_address_names_its_flag_and_exits_1() {
    let (code, _, stderr) = output(&[
        "run",
        "--upstream",
        "http://127.0.0.1:1",
        "--listen",
        "192.0.2.1:9",
        "--admin",
        "127.0.0.1:0",
    ]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("--listen: cannot listen on 192.0.2.1:9: "), "{stderr}");
    assert!(
        stderr.contains("; choose an address of this machine with --listen, as in 0.0.0.0:9"),
        "{stderr}"
    );
}
