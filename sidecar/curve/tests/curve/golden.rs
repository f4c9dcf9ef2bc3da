//! The page of a demonstration (`tokenmeter demo --seconds 40`, without the families that are not needed
//! here) in three formats. `UPDATE_GOLDEN=1` rewrites the files; review the diff.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use curve::{Curves, Reading, Window, json, svg, table};
use serde_json::Value;

fn demo() -> Curves {
    let page = fs::read_to_string(golden("demo.page")).unwrap();
    Curves::of(&Reading::of(&page).unwrap(), Window::SinceStart, None)
}

#[test]
fn table_matches_golden_file() {
    let table = table(&demo());
    let long: Vec<_> = table.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(long.is_empty(), "a terminal has eighty columns: {long:#?}");
    compare("demo.txt", &table);
}

#[test]
fn json_matches_golden_file() {
    compare("demo.json", &json(&demo()));
}

#[test]
fn svg_matches_golden_file() {
    compare("demo.svg", &svg(&demo()).unwrap());
}

/// The manual's example has exactly the members of the real JSON.
#[test]
fn manual_example_has_the_real_members() {
    fn members(value: &Value, path: &str, all: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                all.insert(format!("{path}.{key}"));
                members(value, &format!("{path}.{key}"), all);
            }),
            Value::Array(items) => items.iter().for_each(|item| members(item, path, all)),
            _ => {}
        }
    }
    let manual = include_str!("../../curve.md");
    let example = manual.split("```json").nth(1).unwrap().split("```").next().unwrap();
    let [told, real] = [example, &json(&demo())].map(|text| {
        let mut all = BTreeSet::new();
        members(&serde_json::from_str(text).unwrap(), "", &mut all);
        all
    });
    assert_eq!(told, real);
}

/// The members of an interface of the page's TypeScript.
fn interface(name: &str) -> BTreeSet<String> {
    let types = include_str!("../../../page/web/src/json.ts");
    let start = format!("export interface {name} {{\n");
    let (_, body) = types.split_once(&start).unwrap_or_else(|| panic!("no interface {name}"));
    let lines = body.split_once("\n}").expect("an end").0.lines();
    lines.map(|line| line.trim().split(':').next().expect("a name").to_owned()).collect()
}

/// The types of the page have exactly the members of the JSON.
#[test]
fn types_of_the_page_have_the_real_members() {
    let all: Value = serde_json::from_str(&json(&demo())).unwrap();
    for (name, path) in [
        ("Curves", ""),
        ("ModelCurves", "/models/0"),
        ("ConcurrencyPoint", "/models/0/by_concurrency/0"),
        ("Distribution", "/models/0/by_concurrency/0/first_token_seconds"),
        ("PositionSpeed", "/models/0/by_position/0"),
        ("Knee", "/models/0/knees/0"),
    ] {
        let members = all.pointer(path).and_then(Value::as_object).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(interface(name), members.keys().cloned().collect(), "{name}");
    }
}

/// What `tokenmeter top` reads is all that was written.
#[test]
fn json_is_read_as_it_was_written() {
    let text = json(&demo());
    let read: live::curve::Curves = serde_json::from_str(&text).unwrap();
    assert_eq!(format!("{:#}\n", serde_json::to_value(read).unwrap()), text);
}

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn compare(name: &str, text: &str) {
    let path = golden(name);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    for (at, (ours, theirs)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(ours, theirs, "{}:{} (UPDATE_GOLDEN=1 rewrites it)", path.display(), at + 1);
    }
    assert_eq!(text.len(), golden.len(), "{} (UPDATE_GOLDEN=1 rewrites it)", path.display());
}
