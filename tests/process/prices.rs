//! The command `prices` from outside: exit codes, stdout and stderr, and that it shows the prices that it imported.

use std::path::Path;
use std::process::{Command, Output};

fn prices(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_tokenmeter"))
        .arg("prices")
        .args(arguments)
        .env_remove("TOKENMETER_PRICES")
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/prices.yaml");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn exit_codes_distinguish_invalid_and_missing_files() {
    let folder = std::env::temp_dir().join(format!("tokenmeter-prices-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let at = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    std::fs::write(at("wrong.yaml"), "version: v\ncurrency: USD\nmodels:\n  - {name: m, input: -1}\n")
        .expect("a file");
    let map = r#"{"m": {"input_cost_per_token": 5.0000000000000004E-8, "output_cost_per_image": 1},
                  "free": {"input_cost_per_token": 0, "output_cost_per_token": 0}}"#;
    std::fs::write(at("map.json"), map).expect("a file");

    let (code, out, _) = prices(&["lint", &example()]);
    assert_eq!((code, out.contains("7 entries, 13 rates, 0 warnings")), (Some(0), true), "{out}");
    let (code, out, _) = prices(&["lint", &at("wrong.yaml")]);
    assert_eq!((code, out.contains("wrong.yaml:4: `input`: `-1` is below 0")), (Some(2), true), "{out}");
    let (code, _, told) = prices(&["lint", &at("none.yaml")]);
    assert_eq!((code, told.contains("none.yaml cannot be read")), (Some(1), true), "{told}");
    let (code, _, told) = prices(&["show", "m", "--prices", &at("wrong.yaml")]);
    assert_eq!((code, told.contains("is not a price file")), (Some(1), true), "{told}");

    let (code, out, told) = prices(&["import-litellm", &at("map.json"), "--out", &at("map.yaml")]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{told}");
    assert!(
        told.contains("2 models imported") && told.contains("5.0000000000000004E-8 to 0.05 per million"),
        "{told}"
    );
    assert!(told.contains("not imported: output_cost_per_image of 1 model, such as m"), "{told}");
    assert!(told.contains("\n1 model costs nothing, which"), "{told}");
    let (code, out, told) = prices(&["show", "m", "--prices", &at("map.yaml"), "--format", "json"]);
    assert_eq!(code, Some(0), "{told}");
    let shown: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(shown["rates"][0]["tokens"]["input"]["per_million"], "0.05");
    // Without --out the file is written to stdout, and nothing else.
    let (_, out, _) = prices(&["import-litellm", &at("map.json")]);
    assert_eq!(out, std::fs::read_to_string(at("map.yaml")).expect("it was written"));
    let (code, _, told) = prices(&["import-litellm", &at("wrong.yaml")]);
    assert_eq!((code, told.contains("is not a price map")), (Some(1), true), "{told}");
    let (code, out, _) = prices(&["diff", &at("map.yaml"), &example()]);
    assert_eq!((code, out.contains("removed m\n")), (Some(0), true), "{out}");
    std::fs::remove_dir_all(&folder).expect("it was ours");
}
