//! The command `tenants`, from key to request: what is piped in, what comes out, with which code.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::child::{finished, tokenmeter};

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs it in a folder, with something on stdin.
fn piped(folder: &Path, arguments: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    let mut command = tokenmeter(arguments);
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may end without having read anything.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    finished(child.wait_with_output().unwrap())
}

#[test]
fn from_a_key_to_whose_a_request_is() {
    let folder = Folder(std::env::temp_dir().join(format!("tokenmeter-tenants-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let run = |arguments: &[&str], stdin: &str| piped(&folder.0, arguments, stdin);
    std::fs::write(folder.0.join("hash.key"), [200; 32]).unwrap();

    let (code, hash, stderr) = run(&["tenants", "hash-key", "--hash-key-file", "hash.key"], "sk-secret\n");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let yaml = format!("rules:\n  - api_keys:\n    - {{key: {}, tenant: acme}}\n", hash.trim());
    std::fs::write(folder.0.join("t.yaml"), yaml).unwrap();

    let (code, words, stderr) = run(&["tenants", "check", "t.yaml", "--hash-key-file", "hash.key"], "");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(
        words,
        "1. A request with one of 1 known API keys is its owner's.\nEvery other request is default's.\n"
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
