//! Nothing of a prompt, a response or a key is in the ledger's files, the files beside them, budget alerts or reports.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::hook::Hook;
use super::place::{Place, Rows, command};
use crate::scripted;
use crate::secrets::{ASKED, CANARY, answer, ask, canary};

#[test]
fn no_ledger_contains_a_canary() {
    let place = Place::new();
    let hook = Hook::new();
    place.write("hash.key", "a key for the tests alone, and long enough");
    let hash = hash_of(&canary("authorization"), &place.text("hash.key"));
    place.write(
        "tenants.yaml",
        &format!(
            "end_user: [body.user]\nrules:\n- api_keys:\n  - {{key: {hash}, tenant: known, principal: batch}}\n"
        ),
    );
    place.write("prices.yaml", "version: v\ncurrency: USD\nmodels:\n- {name: sim, input: 1, output: 2}\n");
    place.write(
        "settings.yaml",
        &format!(
            "budgets:\n- name: tiny\n  max_budget: 0.000001\n  budget_duration: month\n\
             budget_webhook: http://{}/notices\n",
            hook.address
        ),
    );
    let (settings, key) = (place.text("settings.yaml"), place.text("hash.key"));
    let more = ["--config", &settings, "--hash-key-file", &key, "--log-level", "trace", "--access-log"];
    let mut proxy = place.start(scripted::server(answer), "x.db", &more);
    for (asked, _) in ASKED {
        ask(&proxy, asked);
    }
    let all = ASKED.len() as u64;
    proxy.page_when("all is on the disk", |page| Rows::of(page).acknowledged == all);
    hook.until_posted(1);
    // With its write-ahead log, and without.
    let during = tell_nothing(&place);
    assert!(during.iter().any(|name| name == "x.db-wal"), "{during:?}");
    let by = "tenant,principal,consumer,model,response_model,ending,upstream,dialect";
    let spent = place.spend("x.db", by);
    assert!(spent.iter().all(|group| group["tenant"] == "known"), "the key is known: {spent:?}");
    assert!(spent.iter().all(|group| group["consumer"].as_str().is_some_and(|user| !user.is_empty())));
    proxy.terminate();
    assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());
    tell_nothing(&place);
    let focus = command(&["spend", "--ledger", &place.text("x.db"), "--format", "focus"]);
    let posted = hook.posted();
    assert!(!posted.is_empty());
    let printed = format!("{spent:?}");
    for (what, text) in
        [("report", &printed), ("focus", &focus), ("webhook", &posted.join("\n")), ("log", &proxy.log())]
    {
        assert!(!text.contains(CANARY), "{what} tells: {text}");
    }
}

/// Searches every file of the folder; returns their names.
fn tell_nothing(place: &Place) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(place.folder()).expect("the folder") {
        let path = entry.expect("an entry").path();
        // A file that replaces another has its first name for a moment only.
        let Ok(content) = std::fs::read(&path) else { continue };
        let at = content.windows(CANARY.len()).position(|bytes| bytes == CANARY.as_bytes());
        let told =
            at.map(|at| String::from_utf8_lossy(&content[at..content.len().min(at + 60)]).into_owned());
        assert_eq!(told, None, "{}", path.display());
        names.push(path.file_name().expect("a name").to_string_lossy().into_owned());
    }
    names
}

fn hash_of(secret: &str, key_file: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tokenmeter"))
        .args(["tenants", "hash-key", "--hash-key-file", key_file])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    writeln!(child.stdin.take().expect("it is piped"), "{secret}").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}
