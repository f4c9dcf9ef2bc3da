//! The recipes of the documents, in their order, in one folder: later ones read the files of earlier ones.

use std::io::Write;
use std::process::Stdio;

use super::book::Folder;
use super::{command, installed, printed, repository, spend};

/// The three pages, in the order in which their recipes run.
fn document() -> String {
    let page =
        |name| std::fs::read_to_string(repository().join("sidecar/ledger").join(name)).expect("a page");
    ["finance.md", "focus.md", "sql.md"].map(page).join("\n")
}

/// The answer to the document's first query that contains the text.
fn answer(folder: &Folder, part: &str) -> String {
    let is_it = |(language, text): &(String, String)| language == "sql" && text.contains(part);
    let query = blocks(&document()).into_iter().find(is_it).expect("a query").1;
    let python = installed("python").display().to_string();
    let recipe = repository().join("tests/finance/recipe.py").display().to_string();
    feed(folder, &[&python, &recipe, "sql"], &query)
}

/// A block of the document: its language and its text.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text))) => {
                text.push_str(&format!("{}\n", line.strip_prefix("   ").unwrap_or(line)))
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// Passes a recipe to a program.
fn feed(folder: &Folder, program: &[&str], recipe: &str) -> String {
    let mut child = command(folder, program[0])
        .args(&program[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("it listens").write_all(recipe.as_bytes()).expect("it reads");
    printed(child.wait_with_output().expect("it ends"), recipe)
}

#[test]
#[ignore = "needs tests/finance/install"]
fn every_recipe_runs_and_prints_something() {
    let folder = Folder::with_a_ledger();
    let document = document();
    let python = installed("python").display().to_string();
    let recipe = repository().join("tests/finance/recipe.py").display().to_string();
    let mut ran = Vec::new();
    for (language, text) in blocks(&document) {
        let said = match language.as_str() {
            "sh" => feed(&folder, &["bash", "-eu", "-o", "pipefail", "-s"], &text),
            "python" => feed(&folder, &[&python, "-"], &text),
            "sql" | "duckdb" => feed(&folder, &[&python, &recipe, &language], &text),
            // The output of the command before it; the date of the test decides whether a month is closed.
            "text" => {
                let printed =
                    ran.last().map(|(_, said): &(_, String)| said.as_str()).expect("a command before it");
                let lasting = |text: &str| {
                    text.lines()
                        .filter(|line| !line.starts_with("Note: 2026-"))
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                };
                assert_eq!(lasting(&text), lasting(printed));
                continue;
            }
            other => panic!("a block of `{other}`: add its program"),
        };
        // A recipe may name its output file.
        assert!(!said.trim().is_empty() || text.contains("--output"), "it says nothing:\n{text}");
        ran.push((language, said));
    }
    for language in ["sh", "sql", "duckdb", "python"] {
        assert!(ran.iter().any(|(ran, _)| ran == language), "no recipe of {language}");
    }
    // All recipes that sum everything agree, in millionths of a dollar.
    let (json, _) = spend(&folder, "--format json --round 6");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let cost = json["rows"][0]["cost"].as_str().expect("a cost").to_owned();
    assert_ne!(cost, "0.000000");
    let (_, of_python) = ran.iter().rfind(|(language, _)| language == "python").expect("Python ran");
    let exact: f64 = of_python.split_whitespace().next().expect("a sum").parse().expect("a number");
    assert_eq!(format!("{exact:.6}"), cost, "{of_python}");
    let attached = ran.iter().filter(|(language, _)| language == "duckdb").nth(1).expect("ATTACH");
    let sum: f64 = attached
        .1
        .lines()
        .map(|line| line.rsplit('\t').next().expect("a cost").parse::<f64>().expect("a number"))
        .sum();
    assert_eq!(format!("{sum:.6}"), cost, "{}", attached.1);
}

/// The first query, after October was closed and both months were repriced: corrections are not counted as usage, and
/// October's are in the open file.
#[test]
#[ignore = "needs tests/finance/install"]
fn corrections_are_separate_from_usage() {
    let folder = Folder::with_a_ledger();
    let prices = "version: second\ncurrency: USD\nunit: per_million\nmodels:\n  \
                  - {pattern: 'llama*', input: 1.00, cached_input: 0.05, output: 2.00}\n  \
                  - {name: brand-new, input: 1.00, cached_input: 0.05, output: 2.00}\n";
    std::fs::write(folder.path().join("second.yaml"), prices).expect("written");
    feed(&folder, &["bash", "-eu", "-s"], "tokenmeter ledger close 2026-10 --ledger tokenmeter.db");
    let reprice = "tokenmeter ledger reprice --ledger tokenmeter.db --since 2026-10 --until 2026-12 --prices second.yaml";
    feed(&folder, &["bash", "-eu", "-s"], reprice);
    let said = answer(&folder, "FROM spend_monthly");
    let expected = "\
2026-10\tacme\tllama-3\tcorrection\t10.700000000000\tUSD\t0
2026-10\tbeta\tllama-3-70b\tcorrection\t3.580000000000\tUSD\t0
2026-11\tacme\tllama-3\tcorrection\t5.935000000000\tUSD\t0
2026-11\tacme\tllama-3\tusage\t8.427700000000\tUSD\t0
2026-11\tbeta\tbrand-new\tcorrection\t6.195200000000\tUSD\t-512
2026-11\tbeta\tbrand-new\tusage\t\t\t512
";
    assert_eq!(said, expected);
}

/// Each exchange of the ledger costs 0.0071; beta's model has no price.
#[test]
#[ignore = "needs tests/finance/install"]
fn failures_and_repetitions_cost_their_rows() {
    let folder = Folder::with_a_ledger();
    let said = answer(&folder, "AS failed_cost_pico");
    let expected = "acme\tUSD\t594\t1187\t297\t8427700000000\t2108700000000\t4210300000000\nbeta\t\t256\t512\t128\t0\t0\t0\n";
    assert_eq!(said, expected, "tenant, currency, requests, exchanges, failed, and three costs");
}

#[test]
#[ignore = "needs tests/finance/install"]
fn every_documented_view_and_column_exists() {
    let document = document();
    let views = std::fs::read_to_string(repository().join("sidecar/ledger/src/schema/views.sql"))
        .expect("it is there");
    let named: Vec<_> = views.lines().filter_map(|line| line.strip_prefix("CREATE VIEW ")).collect();
    for view in named.iter().map(|line| line.trim_end_matches(" AS")) {
        assert!(document.contains(&format!("`{view}`")), "the document does not name the view {view}");
    }
    for kind in meter::TokenType::ALL {
        assert!(document.contains(&format!("`{}`", kind.name())), "{}", kind.name());
    }
}
