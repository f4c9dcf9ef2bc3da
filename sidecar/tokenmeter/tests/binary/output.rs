//! Commands whose output cannot be written: a full disk is a failure, a closed pipe is not.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::child::{Running, finished, get_until, silent_server, tokenmeter};

/// Runs a check with each kind of command line: help, common text, a report, a live reading.
fn each_command(name: &str, check: impl Fn(&[&str])) {
    let folder = std::env::temp_dir().join(format!("tokenmeter-output-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ledger = folder.join("x.db").display().to_string();
    let running = Running::start(silent_server(([127, 0, 0, 1], 0).into()), &["--ledger", &ledger]);
    get_until(running.admin, "/metrics", |_, page| page.contains("\ntokenmeter_ledger_up 1"));
    let admin = running.admin.to_string();
    check(&["--help"]);
    check(&["--version"]);
    check(&["completions", "bash"]);
    check(&["spend", "--ledger", &ledger]);
    check(&["spend", "--ledger", &ledger, "--format", "json"]);
    check(&["ledger", "status", "--ledger", &ledger]);
    check(&["top", "--once", "--admin", &admin]);
    drop(running);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn full_disk_fails_the_command() {
    each_command("full", |arguments| {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (code, _, stderr) = finished(tokenmeter(arguments).stdout(full).output().unwrap());
        assert_eq!(code, Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.contains("No space left on device"), "{arguments:?}: {stderr}");
    });
}

#[test]
fn closed_pipe_is_no_error() {
    each_command("closed", |arguments| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = tokenmeter(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let (code, _, stderr) = finished(output);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
    });
}
