//! Help, version and the effective settings.

use crate::child::{finished, output, tokenmeter};

#[test]
fn version_is_semantic() {
    let (code, stdout, stderr) = output(&["--version"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let version = stdout.strip_prefix("tokenmeter ").unwrap();
    let number = version.split_whitespace().next().unwrap();
    assert_eq!(number.split('.').filter(|part| part.parse::<u64>().is_ok()).count(), 3, "{stdout}");
}

#[test]
fn help_has_commands_settings_and_examples() {
    let (code, stdout, _) = output(&["--help"]);
    assert_eq!(code, Some(0));
    for part in [
        "check-config",
        "curve",
        "demo",
        "--upstream <URL>",
        "127.0.0.1:9800",
        "TOKENMETER_STALL_MS",
        "Examples:",
        "SIGTERM",
    ] {
        assert!(stdout.contains(part), "{part} in {stdout}");
    }
    for command in ["run", "check-config", "drain", "curve", "tenants", "demo"] {
        assert_eq!(output(&[command, "--help"]).0, Some(0), "{command}");
    }
}

#[test]
fn check_config_prints_settings_and_origins() {
    let folder = std::env::temp_dir().join(format!("tokenmeter-words-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("meter.yaml");
    std::fs::write(&file, "# two lines\nstall_ms: 700\nworkers: 3\n").unwrap();
    let path = file.to_str().unwrap();
    let mut command = tokenmeter(&["check-config", "--show-origin", "--upstream", "http://10.9.8.7:8000"]);
    command.env("TOKENMETER_CONFIG", path).env("TOKENMETER_WORKERS", "5");
    let (code, stdout, stderr) = finished(command.output().unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let lines: Vec<_> =
        stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for expected in [
        "url: http://10.9.8.7:8000 # --upstream".to_owned(),
        format!("stall_ms: 700 # {path}:2"),
        "workers: 5 # TOKENMETER_WORKERS".to_owned(),
        "listen: 127.0.0.1:9800 # default".to_owned(),
    ] {
        assert!(lines.contains(&expected), "{expected} in {stdout}");
    }
}
