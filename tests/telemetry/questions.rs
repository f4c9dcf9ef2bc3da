//! The questions: each has one query, and a sentence on how to read the answer.

use crate::repository;

#[test]
fn each_of_the_questions_has_one_query_and_its_reading() {
    let document = repository::read("sidecar/metrics/questions.md");
    let questions: Vec<&str> = document.split("\n## ").skip(1).collect();
    assert_eq!(questions.len(), 26);
    for (place, question) in questions.iter().enumerate() {
        let title = question.lines().next().unwrap_or_default();
        assert!(title.starts_with(&format!("{}. ", place + 1)) && title.ends_with('?'), "{title}");
        let blocks: Vec<&str> = question.split("```").collect();
        assert_eq!(blocks.len(), 3, "{title}: one block");
        assert_eq!(blocks[1].trim().lines().count(), 2, "{title}: the block is one query");
        assert!(blocks[1].starts_with("promql\n"), "{title}: a PromQL block");
        let reading = blocks[2].trim();
        assert!(reading.len() > 40 && reading.ends_with('.'), "{title}: how is the answer read?");
    }
}
