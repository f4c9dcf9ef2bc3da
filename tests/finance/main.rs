//! The claims of `sidecar/ledger/finance.md`, `focus.md` and `sql.md`: every command, query and script in them is run,
//! on a ledger of two months, and equal sums of two of them agree.

mod book;
mod recipes;
mod validator;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use book::Folder;

/// A program of the Python environment made by `tests/finance/install`.
fn installed(name: &str) -> PathBuf {
    let root = std::env::var_os("TOKENMETER_FINANCE").map(PathBuf::from).unwrap_or_else(|| {
        let home = std::env::var_os("HOME").expect("HOME or TOKENMETER_FINANCE is set");
        PathBuf::from(home).join(".cache/tokenmeter/finance")
    });
    let path = root.join("venv/bin").join(name);
    assert!(path.is_file(), "missing: {}; install with: tests/finance/install", path.display());
    path
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it is there")
}

/// A command in a ledger's folder, with `tokenmeter` and the installed Python on its path and no ledger in the
/// environment.
fn command(folder: &Folder, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_tokenmeter"));
    let path = std::env::join_paths(
        [
            binary.parent().expect("it is in a folder").to_owned(),
            installed("python").parent().expect("so").to_owned(),
        ]
        .into_iter()
        .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut command = Command::new(program);
    command
        .current_dir(folder.path())
        .env("PATH", path.expect("no colon in a path"))
        .env_remove("TOKENMETER_LEDGER")
        .env_remove("TOKENMETER_CONFIG")
        .env_remove("TOKENMETER_PRICES")
        .env_remove("TOKENMETER_ATTRIBUTES")
        .stdin(Stdio::null());
    command
}

/// Its output; it must succeed.
fn printed(output: Output, what: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}\nended with {}:\n{said}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

fn spend(folder: &Folder, flags: &str) -> (String, String) {
    let output = command(folder, "tokenmeter")
        .args(["spend", "--ledger", "tokenmeter.db"])
        .args(flags.split_whitespace())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (printed(output, flags), said)
}

#[test]
#[ignore = "needs tests/finance/install"]
fn months_and_omissions_are_reported() {
    let folder = Folder::with_a_ledger();
    let (json, _) = spend(&folder, "--by month,tenant --format json");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let of = |month: &str, tenant: &str| {
        let rows = json["rows"].as_array().expect("rows").iter();
        rows.filter(|row| row["month"] == month && row["tenant"] == tenant).cloned().collect::<Vec<_>>()
    };
    let october = of("2026-10", "acme");
    assert_eq!(october.len(), 1);
    // 2,140 exchanges of 10,000 tokens at 0.50 a million, 2,000 cached at 0.05, 1,000 at 2.00, see `book`.
    assert_eq!(october[0]["exchanges"], 2_140);
    assert_eq!(october[0]["cost"], "15.194");
    assert_eq!(october[0]["input_tokens"], 25_680_000);
    assert_eq!(october[0]["input_cached"], 4_280_000);
    assert_eq!(october[0]["provenance"]["output"], serde_json::json!({"reported": "0.9", "frames": "0.1"}));
    let beta = of("2026-11", "beta");
    assert_eq!(beta[0]["unpriced_exchanges"], 512);
    assert_eq!(beta[0]["uncounted_prompts"], 0);
    assert_eq!(json["totals"][0]["cost"], "28.7053");
    let unpriced = "512 exchanges have no price, not in the cost: brand-new (512); `tokenmeter prices show brand-new --prices FILE`";
    let notes: Vec<_> =
        json["notes"].as_array().expect("notes").iter().filter_map(|note| note.as_str()).collect();
    assert!(notes.iter().any(|note| note.starts_with(unpriced)), "{notes:?}");
}

/// Every command in a note or an error works.
#[test]
#[ignore = "needs tests/finance/install"]
fn hints_can_be_run_unchanged() {
    let folder = Folder::with_a_ledger();
    std::fs::write(folder.path().join("settings.yaml"), "prices: prices.yaml\nledger: tokenmeter.db\n")
        .expect("written");
    let hint = |flags: &str| {
        let output =
            command(&folder, "bash").args(["-c", &format!("tokenmeter spend --format csv {flags}")]).output();
        let said = String::from_utf8_lossy(&output.expect("it runs").stderr).into_owned();
        let hint = said
            .split('`')
            .find(|part| part.starts_with("tokenmeter prices show"))
            .expect("a hint")
            .to_owned();
        (hint, said)
    };
    for flags in ["--config settings.yaml", "--ledger tokenmeter.db --prices prices.yaml"] {
        let (hint, said) = hint(flags);
        let output = command(&folder, "bash").args(["-c", &hint]).output().expect("it runs");
        let answer = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(answer.contains("`brand-new` is unpriced on "), "{hint}: {answer}\n{said}");
    }
}

/// The rows of a closed month are marked closed; those of the open one as growing.
#[test]
#[ignore = "needs tests/finance/install"]
fn reports_mark_closed_months() {
    let folder = Folder::with_a_ledger();
    let months = || {
        let json: serde_json::Value = serde_json::from_str(&spend(&folder, "--format json").0).expect("JSON");
        json["months"].clone()
    };
    assert_ne!(months()["2026-10"], "closed");
    let close = ["ledger", "close", "2026-10", "--ledger", "tokenmeter.db"];
    printed(command(&folder, "tokenmeter").args(close).output().expect("it runs"), "close");
    assert_eq!(months()["2026-10"], "closed");
    assert_ne!(months()["2026-11"], "closed");
}

#[test]
#[ignore = "needs tests/finance/install"]
fn focus_has_model_metadata_of_the_price_file() {
    let folder = Folder::with_a_ledger();
    std::fs::write(folder.path().join("settings.yaml"), "prices: prices.yaml\n").expect("written");
    let made_by_meta = |flags: &str| {
        let (sheet, _) = spend(&folder, &format!("--format focus {flags}"));
        let details = r#"""x_ModelDeveloper"":""Meta"",""x_ModelFamily"":""Llama"""#;
        sheet.lines().filter(|line| line.contains(details)).count()
    };
    assert_eq!(made_by_meta(""), 0);
    assert!(made_by_meta("--prices prices.yaml") >= 3);
    assert_eq!(made_by_meta("--config settings.yaml"), made_by_meta("--prices prices.yaml"));
}

#[test]
#[ignore = "needs tests/finance/install"]
fn errors_have_a_remedy_and_exit_with_1() {
    let folder = Folder::with_a_ledger();
    std::fs::write(folder.path().join("wrong.yaml"), "version: v\ncurrency: USD\nmodells: []\n")
        .expect("written");
    std::fs::write(folder.path().join("text.db"), "this is no ledger, and longer than nothing")
        .expect("written");
    for (flags, says) in [
        (&["spend"][..], "--ledger PATH"),
        (&["spend", "--ledger", "nowhere.db"], "check the path"),
        (&["spend", "--ledger", "text.db"], "text.db"),
        (
            &["spend", "--ledger", "."],
            ". is a folder; name the ledger's file of the open month in it, as in --ledger ./tokenmeter.db",
        ),
        (
            &["spend", "--ledger", "tokenmeter.db", "--format", "csv", "--columns", "colour"],
            "the columns are exchanges",
        ),
        (
            &["spend", "--ledger", "tokenmeter.db", "--format", "json", "--columns", "cost"],
            "--columns is only for --format table or csv",
        ),
        (&["spend", "--ledger", "tokenmeter.db", "--by", "cost_center"], "name their file with --attributes"),
        (
            &["spend", "--ledger", "tokenmeter.db", "--by", "owner", "--attributes", "wrong.yaml"],
            "wrong.yaml:1: an attributes file has no key `version`",
        ),
        (
            &["spend", "--ledger", "tokenmeter.db", "--what-if", "nowhere.yaml"],
            "name a price file with --what-if",
        ),
        (&["spend", "--ledger", "tokenmeter.db", "--idle", "even"], "--idle is only for --basis gpu"),
        (&["prices", "show", "m"], "no price file is named; add --prices FILE"),
        (
            &["spend", "--ledger", "tokenmeter.db", "--basis", "gpu", "--since", "2026-10-01T12:00:00Z"],
            "by day",
        ),
        (&["spend", "--ledger", "tokenmeter.db", "--format", "focus", "--by", "ending"], "--by takes"),
        (
            &["spend", "--ledger", "tokenmeter.db", "--format", "focus", "--prices", "nowhere.yaml"],
            "cannot read nowhere.yaml",
        ),
        (
            &["spend", "--ledger", "tokenmeter.db", "--format", "focus", "--prices", "wrong.yaml"],
            "wrong.yaml:3: ",
        ),
        (&["spend", "--ledger", "tokenmeter.db", "--since", "2026-11", "--until", "2026-11-01"], "exclusive"),
        (&["spend", "--ledger", "tokenmeter.db", "--output", "no/such/folder/x"], "--output"),
        (&["spend", "--ledger", "text.db", "--output", "text.db"], "text.db"),
        (
            &[
                "spend",
                "--ledger",
                "tokenmeter.db",
                "--format",
                "focus",
                "--output",
                "f",
                "--focus-metadata",
                "no/x",
            ],
            "--focus-metadata",
        ),
    ] {
        let output = command(&folder, "tokenmeter").args(flags).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{flags:?}: {said}");
        assert!(said.contains(says), "{flags:?}: {said}");
        assert!(output.stdout.is_empty());
    }
    let kept = std::fs::read_to_string(folder.path().join("text.db")).expect("the file exists");
    assert!(kept.starts_with("this is no ledger"), "a report that fails leaves the file as it was");
    let output = command(&folder, "tokenmeter").args(["spend", "--by", "tennant"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
}
