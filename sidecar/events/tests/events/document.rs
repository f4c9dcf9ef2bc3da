//! The example of the document is an event as it is sent.

use serde_json::Value;

use crate::book::Book;

#[test]
fn documented_example_is_an_event() {
    let document = include_str!("../../events.md");
    let shown = document.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let event = events::event(&Book::row(9)).unwrap();
    let shown: Value = serde_json::from_str(shown).unwrap();
    assert_eq!(shown[0], event, "{event:#}");
}
