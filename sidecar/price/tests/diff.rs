//! Differences between two price books: each kind of fact, each direction, and none if both charge alike.

use price::Book;
use price::diff::{Change, diff};

fn book(entries: &str) -> Book {
    in_currency("USD", entries)
}

fn in_currency(currency: &str, entries: &str) -> Book {
    let text = format!("version: v\ncurrency: {currency}\nmodels:\n{entries}");
    match Book::read(&text) {
        Ok((book, _)) => book,
        Err(errors) => panic!("{text}: {errors:#?}"),
    }
}

/// A line for each change: its kind, its entry, and each fact as `name old>new`.
fn lines(changes: &[Change]) -> Vec<String> {
    let line = |change: &Change| {
        let facts = change.facts.iter().map(|fact| {
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
            format!(" | {} {}>{}", fact.name, value(&fact.old), value(&fact.new))
        });
        format!("{} {}{}", change.kind.name(), change.entry, facts.collect::<String>())
    };
    changes.iter().map(line).collect()
}

#[test]
fn equal_books_do_not_differ() {
    let one = "  - {name: m, input: 1, output: 2}\n  - {pattern: a*, per_request: 1}\n";
    let other = "  - {pattern: a*, per_request: 1.0}\n  - {name: m, output: 2.00, input: 1}\n";
    assert_eq!(diff(&book(one), &book(other)), []);
}

#[test]
fn each_fact_that_differs_is_reported() {
    for (old, new, expected) in [
        ("input: 1", "input: 2", "input 1.00>2.00"),
        ("input: 1", "input: 1, output: 2", "output ->2.00 | reasoning ->2.00"),
        ("input: 1, output: 2, reasoning: 2", "input: 1, output: 2, reasoning: 3", "reasoning 2.00>3.00"),
        ("input: 1, per_request: 0.5", "input: 1", "per_request 0.50>-"),
        ("input: 1, aliases: [b, a]", "input: 1, aliases: [c]", "aliases a, b>c"),
        ("input: 1, valid_until: 2026-10-01", "input: 1", "valid_until 2026-10-01>-"),
        (
            "input: 1, tiers: {batch: {input: 0.5}}",
            "input: 1, tiers: {batch: {input: 0.25}}",
            "batch: input 0.50>0.25 | batch: cached_input 0.50>0.25",
        ),
        (
            "input: 1, cached_input: 1, context_tiers: [{above_input_tokens: 9, input: 2}]",
            "input: 1, cached_input: 1, context_tiers: [{above_input_tokens: 9, input: 3}]",
            "above 9: input 2.00>3.00",
        ),
        (
            "input: 1, tiers: {batch: {input: 1, context_tiers: [{above_input_tokens: 9, per_request: 2}]}}",
            "input: 1, tiers: {batch: {input: 1, context_tiers: [{above_input_tokens: 9, per_request: 3}]}}",
            "batch: above 9: per_request 2.00>3.00",
        ),
    ] {
        let entry = |fields: &str| book(&format!("  - {{name: m, {fields}}}\n"));
        let changes = lines(&diff(&entry(old), &entry(new)));
        assert_eq!(changes.len(), 1, "{old} -> {new}: {changes:?}");
        // Input prices that are derived change with the price of `input`; only the named facts are compared here.
        let facts: Vec<&str> = changes[0].split(" | ").skip(1).collect();
        for fact in expected.split(" | ") {
            assert!(facts.contains(&fact), "{old} -> {new}: no {fact:?} in {facts:?}");
        }
        assert!(changes[0].starts_with("changed m"), "{changes:?}");
    }
}

#[test]
fn facts_are_ordered_by_tier_length_and_type() {
    let text = |price: u32| {
        format!(
            "  - name: m\n    input: {price}\n    cached_input: 1\n    cache_write: 1\n    input_image: 1\n    \
             input_video: 1\n    output: {price}\n    reasoning: 1\n    per_request: {price}\n    aliases: [a{price}]\n    \
             valid_until: 2026-10-0{price}\n    context_tiers: [{{above_input_tokens: 9, output: {price}}}]\n    \
             tiers: {{batch: {{output: {price}}}}}\n"
        )
    };
    assert_eq!(
        lines(&diff(&book(&text(2)), &book(&text(3)))),
        ["changed m (until 2026-10-03) | input 2.00>3.00 | output 2.00>3.00 | per_request 2.00>3.00 \
          | above 9: input 2.00>3.00 | above 9: output 2.00>3.00 | above 9: per_request 2.00>3.00 \
          | batch: input 2.00>3.00 | batch: output 2.00>3.00 | batch: per_request 2.00>3.00 \
          | batch: above 9: input 2.00>3.00 | batch: above 9: output 2.00>3.00 | batch: above 9: per_request 2.00>3.00 \
          | aliases a2>a3 | valid_until 2026-10-02>2026-10-03"]
    );
}

#[test]
fn entries_correspond_by_models_place_and_start() {
    let old = "  - {name: m, input: 1, output: 1}\n  - {pattern: m, input: 3, output: 3}\n  \
               - {name: m, provider: p, input: 4, output: 4}\n  - {name: m, upstream: u, input: 5, output: 5}\n  \
               - {name: m, valid_from: 2026-10-01, input: 6, output: 6}\n";
    for (entry, title) in [
        ("  - {name: m, input: 1, output: 1}\n", "m"),
        ("  - {pattern: m, input: 3, output: 3}\n", "m (pattern)"),
        ("  - {name: m, provider: p, input: 4, output: 4}\n", "m (provider p)"),
        ("  - {name: m, upstream: u, input: 5, output: 5}\n", "m (upstream u)"),
        ("  - {name: m, valid_from: 2026-10-01, input: 6, output: 6}\n", "m (from 2026-10-01)"),
    ] {
        let fewer = old.replace(entry, "");
        assert_ne!(fewer, old, "{entry}");
        for (before, after, kind) in [(old, &*fewer, "removed"), (&fewer, old, "added")] {
            let changes = lines(&diff(&book(before), &book(after)));
            assert_eq!(changes.len(), 1, "{entry}: {changes:?}");
            assert!(changes[0].starts_with(&format!("{kind} {title} | input ")), "{entry}: {changes:?}");
        }
    }
}

#[test]
fn another_currency_changes_the_whole_book() {
    let entries = "  - {name: m, input: 1, output: 2}\n";
    let changes = diff(&in_currency("USD", entries), &in_currency("EUR", entries));
    assert_eq!(lines(&changes), ["changed the whole book | currency USD>EUR"]);
}
