//! The questions: each has one query, its prerequisites, and a sentence on how to read the answer.

use crate::promql;
use crate::repository;

/// One question of the document.
pub(crate) struct Question {
    /// The heading.
    pub(crate) title: String,
    /// The text after `Needs: `, without its full stop.
    needs: String,
    /// The PromQL query; each line after the first is indented.
    pub(crate) query: String,
    /// The sentences after the query.
    reading: String,
}

/// Returns the questions of the document.
pub(crate) fn questions() -> Vec<Question> {
    let document = repository::read("sidecar/metrics/questions.md");
    document.split("\n## ").skip(1).map(question).collect()
}

fn question(text: &str) -> Question {
    let title = text.lines().next().unwrap_or_default().to_owned();
    let blocks: Vec<&str> = text.split("```").collect();
    assert_eq!(blocks.len(), 3, "{title}: one block");
    let query = blocks[1].strip_prefix("promql\n").unwrap_or_else(|| panic!("{title}: a PromQL block"));
    assert!(
        query.trim().lines().skip(1).all(|line| line.starts_with(' ')),
        "{title}: the block is one query"
    );
    let needs = blocks[0].lines().find_map(|line| line.strip_prefix("Needs: ")?.strip_suffix('.'));
    let needs = needs.unwrap_or_else(|| panic!("{title}: no prerequisites")).to_owned();
    Question { title, needs, query: query.trim().to_owned(), reading: blocks[2].trim().to_owned() }
}

#[test]
fn each_question_has_one_query_and_an_explanation() {
    let questions = questions();
    assert_eq!(questions.len(), 30);
    for (place, Question { title, reading, .. }) in questions.iter().enumerate() {
        assert!(title.starts_with(&format!("{}. ", place + 1)) && title.ends_with('?'), "{title}");
        assert!(reading.len() > 40 && reading.ends_with('.'), "{title}: how is the answer read?");
    }
}

/// Parts of a query, and the prerequisite that each of them implies.
const NEEDED: &[(&str, &str)] = &[
    ("tokenmeter_upstream_queue", "a server that states its times"),
    ("tokenmeter_engine_", "the server's metrics page"),
    ("tokenmeter_leg_", "prefill servers"),
    ("tokenmeter_rate_limit", "a provider that reports its rate limits"),
    ("input_cached", "a prompt cache"),
    ("objective", "an objective"),
    ("energy", "a GPU"),
    ("_gpu_", "a GPU"),
    ("basis=\"gpu\"", "a GPU"),
    ("_spend_usd", "a price book"),
    ("_budget_", "budgets"),
    ("_ledger_", "a ledger"),
    ("[30m]", "half an hour of data"),
    ("[1h]", "an hour of data"),
    ("[1d]", "a day of data"),
    ("[30d]", "thirty days of data"),
];

#[test]
fn prerequisites_follow_from_the_query() {
    for Question { title, needs, query, .. } in questions() {
        for (part, wanted) in NEEDED {
            if query.contains(part) {
                assert!(needs.contains(wanted), "{title}: needs {wanted}, and says `{needs}`");
            }
        }
        let known = |word: &&(&str, &str)| needs.contains(word.1) && query.contains(word.0);
        let is_plain = needs == "nothing besides traffic";
        assert!(is_plain != NEEDED.iter().any(|word| known(&word)), "{title}: `{needs}`");
    }
}

/// Series of an idle system for a query: every selected series, without a change within thirty days.
pub(crate) fn idle_series(query: &str) -> Vec<String> {
    let selectors = promql::names(query).selectors.into_iter();
    let series = selectors.map(|selector| {
        let mut labels = vec!["job=\"t\"".to_owned(), "instance=\"1\"".to_owned()];
        if selector.metric.ends_with("_bucket") {
            labels.push("le=\"+Inf\"".to_owned());
        }
        for matcher in &selector.matchers {
            let value = match matcher.operator.as_str() {
                "=" => &matcher.value,
                "=~" => matcher.value.split(['|', '.']).next().expect("a first alternative"),
                _ => "other",
            };
            labels.push(format!("{}=\"{value}\"", matcher.label));
        }
        format!("{}{{{}}}", selector.metric, labels.join(", "))
    });
    let mut series: Vec<String> = series.collect();
    series.sort();
    series.dedup();
    series
}
