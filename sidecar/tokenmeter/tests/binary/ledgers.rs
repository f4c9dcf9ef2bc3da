//! A second process on a ledger does not start, or waits with `--ledger-wait`.

use std::path::PathBuf;

use crate::child::{Running, finished, get_until, silent_server, tokenmeter};

/// A folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenmeter-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn ledger(&self) -> String {
        self.0.join("x.db").display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays lies among other temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn second_process_on_a_ledger_exits_1() {
    let folder = Folder::new("second");
    let ledger = folder.ledger();
    let upstream = silent_server(([127, 0, 0, 1], 0).into());
    let mut first = Running::start(upstream, &["--ledger", &ledger, "--drain-delay-ms", "0"]);
    get_until(first.admin, "/metrics", |_, page| page.contains("\ntokenmeter_ledger_up 1"));
    let url = format!("http://{upstream}");
    let arguments =
        ["--upstream", &url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ledger", &ledger];
    let (code, _, stderr) = finished(tokenmeter(&arguments).output().unwrap());
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(&format!(" writes {ledger}; ")) && stderr.contains("--ledger-wait"), "{stderr}");
    first.signal("TERM");
    assert_eq!(first.ended(), Some(0));
    // The lock ends with its process.
    let mut next = Running::start(upstream, &["--ledger", &ledger, "--drain-delay-ms", "0"]);
    next.signal("TERM");
    assert_eq!(next.ended(), Some(0));
}

#[test]
fn waiting_process_without_rows_loses_nothing() {
    let folder = Folder::new("waiting");
    let ledger = folder.ledger();
    let upstream = silent_server(([127, 0, 0, 1], 0).into());
    let first = Running::start(upstream, &["--ledger", &ledger]);
    get_until(first.admin, "/metrics", |_, page| page.contains("\ntokenmeter_ledger_up 1"));
    let mut second =
        Running::start(upstream, &["--ledger", &ledger, "--ledger-wait", "--drain-delay-ms", "0"]);
    get_until(second.admin, "/readyz", |_, body| body.contains("another process writes this ledger"));
    second.signal("TERM");
    assert_eq!(second.ended(), Some(0));
    let said = second.lines().join("\n");
    assert!(!said.contains("lost") && !said.contains("gap"), "{said}");
}
