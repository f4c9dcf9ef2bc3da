//! The command `tenants`, from key to request: input, output and exit code.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::child::{finished, tokenmeter};

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenmeter-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

/// Runs it in a folder, with something on stdin.
fn piped(folder: &Path, arguments: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    piped_to(tokenmeter(arguments), folder, stdin)
}

fn piped_to(mut command: std::process::Command, folder: &Path, stdin: &str) -> (Option<i32>, String, String) {
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may end without having read anything.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    finished(child.wait_with_output().unwrap())
}

#[test]
fn key_is_hashed_checked_and_matched() {
    let folder = Folder::new("tenants");
    let run = |arguments: &[&str], stdin: &str| piped(&folder.0, arguments, stdin);
    let key = folder.0.join("hash.key");
    std::fs::write(&key, [200; 32]).unwrap();
    let allow = |mode| std::fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();

    allow(0o644);
    let (code, _, stderr) = run(&["tenants", "hash-key", "--hash-key-file", "hash.key"], "sk-secret\n");
    assert_eq!(code, Some(0));
    assert!(stderr.contains("can read the hash key file hash.key; remove the permission"), "{stderr}");
    allow(0o600);
    let (code, hash, stderr) = run(&["tenants", "hash-key", "--hash-key-file", "hash.key"], "sk-secret\n");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let yaml = format!("rules:\n  - api_keys:\n    - {{key: {}, tenant: acme}}\n", hash.trim());
    std::fs::write(folder.0.join("t.yaml"), yaml).unwrap();

    let (code, words, stderr) = run(&["tenants", "check", "t.yaml", "--hash-key-file", "hash.key"], "");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(
        words,
        "1. api_key: one of 1 API key: the tenant is that of the key.\nEvery other request: the tenant is default.\n"
    );

    let request = "POST /v1/chat/completions\nAuthorization: Bearer sk-secret\n\n{}";
    let who = ["tenants", "who", "t.yaml", "--hash-key-file", "hash.key", "--peer", "192.0.2.1"];
    assert_eq!(run(&who, request), (Some(0), "tenant: acme\nrule: api_key\n".to_owned(), String::new()));

    std::fs::write(folder.0.join("t.yaml"), "rules:\n  - api_keys:\n    - {key: sk-secret, tenant: acme}\n")
        .unwrap();
    let (code, stdout, stderr) = run(&["tenants", "check", "t.yaml"], "");
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("t.yaml:2: ") && stderr.contains("t.yaml:3: "), "all at once: {stderr}");
    assert!(!stderr.contains("sk-secret"), "{stderr}");

    let (code, _, stderr) =
        run(&["check-config", "--upstream", "http://gpu:8000", "--tenants", "t.yaml"], "");
    assert!(code == Some(2) && stderr.contains("t.yaml:3: "), "{stderr}");
    let (code, _, stderr) = run(&["tenants", "hash-key"], "sk-secret");
    assert!(code == Some(1) && stderr.contains("--hash-key-file"), "{stderr}");
}

/// The document's example as a reader runs it: the file, then the commands below it.
#[test]
fn documented_example_runs() {
    let document = include_str!("../../../../proxy/tenant/tenants.md");
    let (_, document) = document.split_once("## A complete example").unwrap();
    let block = |kind: &str| {
        let rest = document.split(&format!("```{kind}\n")).nth(1).unwrap();
        rest.split("```").next().unwrap()
    };
    let folder = Folder::new("example");
    std::fs::write(folder.0.join("tenants.yaml"), block("yaml")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_tokenmeter")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-euc", block("sh")]).env("PATH", path);
    for name in std::env::vars().map(|(name, _)| name).filter(|name| name.starts_with("TOKENMETER_")) {
        shell.env_remove(name);
    }
    let (code, stdout, stderr) = piped_to(shell, &folder.0, "");
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("2. api_key: one of 2 API keys: the tenant is that of the key.\n"), "{stdout}");
    assert!(stdout.contains("\ntenants: tenants.yaml\n"), "{stdout}");
    // The hashes belong to the keys in the document.
    let hash = ["tenants", "hash-key", "--hash-key-file", "example.key"];
    let (_, hashes, _) = piped(&folder.0, &hash, "example-key-1\nexample-key-2\n");
    for hash in hashes.lines() {
        assert!(block("yaml").contains(hash), "{hash}");
    }
}

/// Paths in the settings file are relative to where tokenmeter was started, as those of flags are; only
/// the keys that a tenants file names are relative to that file.
#[test]
fn paths_are_relative_to_the_working_directory() {
    let folder = Folder::new("relative");
    let (settings, here) = (folder.0.join("etc"), folder.0.join("here"));
    std::fs::create_dir_all(here.join("rules")).unwrap();
    std::fs::create_dir_all(&settings).unwrap();
    let yaml = "upstream: http://127.0.0.1:8000\ntenants: rules/t.yaml\nledger: rules/x.db\n";
    std::fs::write(settings.join("s.yaml"), yaml).unwrap();
    let rule =
        "rules:\n  - jwt: {keys: keys.json, issuer: \"https://id.example\", audience: a, claim: tenant}\n";
    std::fs::write(here.join("rules/t.yaml"), rule).unwrap();
    let keys = include_str!("../../../../proxy/tenant/tests/tokens/keys.json");
    std::fs::write(here.join("rules/keys.json"), keys).unwrap();

    let (code, _, stderr) = piped(&here, &["check-config", "--config", "../etc/s.yaml"], "");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let (code, _, stderr) = piped(&settings, &["check-config", "--config", "s.yaml"], "");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("s.yaml:2: the tenants file rules/t.yaml cannot be read"), "{stderr}");
    assert!(stderr.contains("s.yaml:3: the ledger's folder rules does not exist"), "{stderr}");
}

/// Serves keys by https at a local address; returns its self-signed certificate.
fn issuer() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/keys", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let server = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(server, connection.unwrap());
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let keys = include_str!("../../../../proxy/tenant/tests/tokens/keys.json");
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{keys}", keys.len());
            // A client that does not trust the certificate has hung up.
            let _ = stream.write_all(answer.as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (url, made.cert.pem())
}

#[test]
fn keys_come_over_https_from_a_trusted_server() {
    let folder = Folder::new("issuer");
    let (url, root) = issuer();
    std::fs::write(folder.0.join("root.pem"), root).unwrap();
    let stranger = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(folder.0.join("stranger.pem"), stranger.cert.pem()).unwrap();
    let yaml = format!(
        "rules:\n  - jwt: {{keys: \"{url}\", issuer: \"https://id.example\", audience: tokenmeter, claim: tenant}}\n"
    );
    std::fs::write(folder.0.join("t.yaml"), yaml).unwrap();
    let tokens = include_str!("../../../../proxy/tenant/tests/tokens/tokens.json");
    let tokens: Vec<serde_json::Value> = serde_json::from_str(tokens).unwrap();
    let token = tokens[0]["token"].as_str().unwrap();
    for (roots, tenant, told) in
        [("root.pem", "acme", ""), ("stranger.pem", "default", "t.yaml:2: the keys of https://")]
    {
        let mut command = tokenmeter(&["tenants", "who", "t.yaml"]);
        command
            .env("SSL_CERT_FILE", folder.0.join(roots))
            .env_remove("SSL_CERT_DIR")
            .env("NO_PROXY", "127.0.0.1");
        let request = format!("POST /v1/x\nauthorization: Bearer {token}\n\n");
        let (code, stdout, stderr) = piped_to(command, &folder.0, &request);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.starts_with(&format!("tenant: {tenant}\n")), "by {roots}: {stdout} {stderr}");
        assert!(stderr.contains(told) && stderr.is_empty() == told.is_empty(), "by {roots}: {stderr}");
    }
}

#[test]
fn attributes_are_described_or_all_errors_named() {
    let folder = Folder::new("tenants-attributes");
    let run = || piped(&folder.0, &["tenants", "attributes", "a.yaml"], "");
    let (code, _, stderr) = run();
    assert_eq!(code, Some(2));
    assert!(stderr.contains("FILE: the attributes file a.yaml cannot be read"), "{stderr}");
    std::fs::write(folder.0.join("a.yaml"), "tenants:\n- {tenant: acme, cost_centre: 1}\n- {owner: ann}\n")
        .unwrap();
    let (code, stdout, stderr) = run();
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    for said in ["a.yaml:2: an entry has no key `cost_centre`", "a.yaml:3: an entry has no `tenant`"] {
        assert!(stderr.contains(said), "{stderr}");
    }
    std::fs::write(folder.0.join("a.yaml"), "tenants:\n- {tenant: 007, cost_center: 00417}\n").unwrap();
    assert_eq!(run(), (Some(0), "007: cost_center 00417\n".to_owned(), String::new()));
}
