//! The planned objectives, and the text of every error.

use std::collections::BTreeMap;

use metrics::{Objective, PRESETS};
use origin::file;

use crate::plan::Plan;
use crate::plan::machine::Alone;
use crate::settings::{OBJECTIVES, RawSettings, setting};

/// Merges the file and the flag `--objective`.
fn written(yaml: &str, flag: Option<&str>) -> RawSettings {
    let upstream = ("upstream", "http://gpu:8000".to_owned());
    let flags = [Some(upstream), flag.map(|name| ("objective", name.to_owned()))];
    let flags: BTreeMap<_, _> = flags.into_iter().flatten().collect();
    RawSettings::merge(&flags, &|_| None, Some(file::parse("t.yaml", yaml).unwrap()))
}

fn plan(yaml: &str, flag: Option<&str>) -> Plan {
    Plan::make(&written(yaml, flag), &Alone(&[])).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(yaml: &str) -> Vec<String> {
    let errors = Plan::make(&written(yaml, None), &Alone(&[])).expect_err("these objectives are invalid");
    errors.0.iter().map(ToString::to_string).collect()
}

fn summary(objective: &Objective) -> String {
    let globs = |globs: &[text::Glob]| globs.iter().map(text::Glob::text).collect::<Vec<_>>().join("|");
    format!(
        "{} [{}] [{}] {} ms {}/s {}",
        objective.name,
        globs(&objective.models),
        globs(&objective.tenants),
        objective.first_token_ns as f64 / 1e6,
        objective.output_rate,
        objective.target_ratio
    )
}

#[test]
fn default_is_no_objective() {
    for (yaml, flag) in
        [("", None), ("objective: off\n", None), ("objective: \"off\"\n", None), ("", Some("off"))]
    {
        let plan = plan(yaml, flag);
        assert!(plan.objectives.is_empty(), "{yaml} {flag:?}");
        assert!(plan.effective.show(false).contains("\nobjective: off\n"), "{}", plan.effective.show(false));
    }
}

#[test]
fn preset_matches_all_exchanges() {
    assert_eq!(OBJECTIVES[1..], PRESETS.map(|preset| preset.name));
    for (name, expected) in [
        ("voice", "voice [] [] 250 ms 100/s 0.99"),
        ("chat", "chat [] [] 1000 ms 30/s 0.99"),
        ("reading", "reading [] [] 2500 ms 15/s 0.99"),
        ("floor", "floor [] [] 10000 ms 10/s 0.99"),
    ] {
        let objectives = plan("", Some(name)).objectives;
        assert_eq!(objectives.iter().map(summary).collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn help_has_the_numbers_of_the_presets() {
    let help = setting("objective").help;
    for preset in PRESETS {
        let words = help.split(preset.name).nth(1).unwrap().split(';').next().unwrap();
        let numbers: Vec<&str> = words.split(|c: char| !c.is_ascii_digit() && c != '.').collect();
        let seconds = preset.first_token_ns as f64 / 1e9;
        let wait = if seconds < 1.0 { seconds * 1000.0 } else { seconds };
        assert!(numbers.contains(&&*wait.to_string()), "{wait} in {words}");
        assert!(numbers.contains(&&*preset.output_rate.to_string()), "{} in {words}", preset.output_rate);
    }
}

const LIST: &str = "\
objectives:
  - { name: gold, preset: voice, tenants: [gold, \"team-*\"], target: 0.999 }
  - name: big
    models: llama*, *-405b
    first_token_ms: 5000
    tokens_per_second: 15
  - preset: chat
    models: \"*\"
";

#[test]
fn list_keeps_its_order() {
    let plan = plan(LIST, None);
    assert_eq!(
        plan.objectives.iter().map(summary).collect::<Vec<_>>(),
        [
            "gold [] [gold|team-*] 250 ms 100/s 0.999",
            "big [llama*|*-405b] [] 5000 ms 15/s 0.99",
            "chat [] [] 1000 ms 30/s 0.99",
        ]
    );
    assert!(plan.warnings.is_empty());
}

#[test]
fn printed_objectives_parse_to_the_same() {
    let first = plan(LIST, None);
    let shown = first.effective.show(false);
    assert!(!shown.contains("objective:"), "{shown}");
    let upstream = shown.find("objectives:").unwrap();
    let again = plan(&shown[upstream..], None);
    assert_eq!(again.objectives, first.objectives);
    let origins = first.effective.show(true);
    let line = |key: &str| origins.lines().find(|line| line.contains(key)).unwrap().to_owned();
    assert!(line("first_token_ms: 5000").ends_with("# t.yaml:5"), "{origins}");
    assert!(line("- name: big").ends_with("# t.yaml:3"), "{origins}");
    assert!(line("first_token_ms: 250").ends_with("# t.yaml:2"), "by its preset: {origins}");
    assert!(line("target: 0.99 ").ends_with("# default"), "{origins}");
}

#[test]
fn flag_precedes_the_list() {
    let plan = plan(LIST, Some("floor"));
    assert_eq!(plan.objectives.len(), 1);
    let warnings: Vec<_> = plan.warnings.iter().map(ToString::to_string).collect();
    let expected =
        "t.yaml:1: the objectives listed here are not used: --objective applies; remove one of the two";
    assert_eq!(warnings, [expected]);
    assert!(plan.effective.show(false).contains("\nobjective: floor\n"));
}

#[test]
fn unreachable_objective_is_a_warning() {
    let plan = plan("objectives:\n  - preset: chat\n  - {preset: voice, models: qwen*}\n", None);
    let warnings: Vec<_> = plan.warnings.iter().map(ToString::to_string).collect();
    let expected = "t.yaml:3: no exchange reaches this objective: `chat` before it matches all; put it before that \
                    one, or give that one `models` or `tenants`";
    assert_eq!(warnings, [expected]);
}

#[test]
fn errors_have_their_line() {
    for (entry, expected) in [
        (
            "name: a\n    first_token_ms: 300\n    tokens_per_second: 30",
            "t.yaml:3: 300 is not a bucket boundary of the TTFT histogram, so the verdicts could not be checked \
             against it; write 250 or 500",
        ),
        (
            "preset: chat\n    tokens_per_second: 27",
            "t.yaml:3: 27 is not a bucket boundary of the speed histogram, so the verdicts could not be checked \
             against it; write 25 or 30",
        ),
        (
            "preset: chat\n    tokens_per_second: 5000",
            "t.yaml:3: 5000 is not a bucket boundary of the speed histogram, so the verdicts could not be checked \
             against it; write 1000",
        ),
        (
            "preset: chat\n    tokens_per_second: fast",
            "t.yaml:3: `fast` is not a number; write 1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100, 125, 150, 200, 300, 500, 1000",
        ),
        (
            "preset: chat\n    first_token_ms: \"NaN\"",
            "t.yaml:3: `NaN` is not a number; write 1, 5, 10, 20, 40, 60, 80, 100, 250, 500, 750, 1000, 2500, 5000, \
             7500, 10000, 20000, 40000, 80000, 160000",
        ),
        (
            "name: a\n    first_token_ms: 250",
            "t.yaml:2: an objective has no `tokens_per_second`; add it (one of 1, 2, 5, 10, 15, 20, 25, 30, 40, 50, \
             60, 75, 100, 125, 150, 200, 300, 500, 1000), or a `preset`",
        ),
        (
            "first_token_ms: 250\n    tokens_per_second: 30",
            "t.yaml:2: an objective has no `name`; add a `name`, or a `preset` with a name of its own",
        ),
        (
            "preset: chatt",
            "t.yaml:2: `chatt` is not one of voice, chat, reading, floor; did you mean `chat`?",
        ),
        (
            "preset: chat\n    target: 99",
            "t.yaml:3: `99` is not a ratio below 1; write it as in 0.99 for 99 of 100; a target of 1 leaves no \
             error budget",
        ),
        (
            "preset: chat\n    models: []",
            "t.yaml:3: `models` names none; name some (`*` matches any text), or remove the line to mean all",
        ),
        (
            "preset: chat\n  - preset: chat",
            "t.yaml:3: two objectives are named `chat`; give each a `name` of its own",
        ),
    ] {
        assert_eq!(errors(&format!("objectives:\n  - {entry}\n")), [expected], "{entry}");
    }
    assert_eq!(
        errors("objectives: []\n"),
        ["t.yaml:1: `objectives` is empty; write one `- preset: chat` for each objective under it"]
    );
    assert_eq!(
        errors("objective: chat\nobjectives:\n  - preset: voice\n"),
        ["t.yaml:1: `objective` and `objectives` (t.yaml:2) are both set; keep one of them"]
    );
    let many: String = (0..33).map(|at| format!("  - {{preset: chat, name: n{at}, models: m}}\n")).collect();
    assert_eq!(
        errors(&format!("objectives:\n{many}")),
        ["t.yaml:1: 33 objectives are listed; keep 32: each has about ten series per model"]
    );
}

#[test]
fn all_errors_are_reported() {
    let yaml =
        "objectives:\n  - preset: chta\n    first_token_ms: 3\n    target: 2\n  - tokens_per_second: 3\n";
    let places: Vec<_> =
        errors(yaml).iter().map(|error| error.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(places, ["t.yaml:2", "t.yaml:3", "t.yaml:4", "t.yaml:5", "t.yaml:5", "t.yaml:5"]);
}
