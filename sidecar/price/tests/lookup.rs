//! Selection of entries, against an oracle that walks all of them in the order of `prices.md`,
//! without an index.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write;

use price::{Book, instant};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Entry {
    is_pattern: bool,
    text: String,
    aliases: BTreeSet<String>,
    provider: Option<&'static str>,
    upstream: Option<&'static str>,
    /// Days of November; `None`: without a start.
    from: Option<u8>,
    until: Option<u8>,
}

impl Entry {
    fn spellings(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.text).chain(&self.aliases)
    }

    fn same_place(&self, other: &Self) -> bool {
        (self.is_pattern, self.provider, self.upstream) == (other.is_pattern, other.provider, other.upstream)
    }
}

fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => fits(rest, name) || !name.is_empty() && fits(pattern, &name[1..]),
        ([b'?', rest @ ..], [_, tail @ ..]) => fits(rest, tail),
        ([want, rest @ ..], [have, tail @ ..]) => want == have && fits(rest, tail),
        _ => false,
    }
}

/// The position of the entry that applies.
fn expected(entries: &[Entry], model: &str, provider: &str, upstream: &str, day: u8) -> Option<usize> {
    let mut best = None;
    for (at, entry) in entries.iter().enumerate() {
        if entry.provider.is_some_and(|mine| mine != provider)
            || entry.upstream.is_some_and(|mine| mine != upstream)
        {
            continue;
        }
        for spelling in entry.spellings() {
            let is_it = match entry.is_pattern {
                true => fits(spelling.as_bytes(), model.as_bytes()),
                false => spelling == model,
            };
            let next = entries
                .iter()
                .filter(|other| other.same_place(entry) && other.spellings().any(|text| text == spelling));
            let next = next
                .filter_map(|other| other.from)
                .filter(|from| entry.from.is_none_or(|mine| *from > mine))
                .min();
            let is_in_force = entry.from.is_none_or(|from| from <= day)
                && next.is_none_or(|next| day < next)
                && entry.until.is_none_or(|until| day < until);
            if !is_it || !is_in_force {
                continue;
            }
            let literal = spelling.bytes().filter(|byte| !b"*?".contains(byte)).count();
            let key = (
                Reverse((entry.upstream.is_some(), entry.provider.is_some())),
                entry.is_pattern,
                Reverse(if entry.is_pattern { literal } else { 0 }),
                spelling.clone(),
            );
            if best.as_ref().is_none_or(|(least, _)| key < *least) {
                best = Some((key, at));
            }
        }
    }
    best.map(|(_, at)| at)
}

fn file(entries: &[Entry]) -> String {
    let mut text = "version: v\ncurrency: EUR\nmodels:\n".to_owned();
    for entry in entries {
        let kind = if entry.is_pattern { "pattern" } else { "name" };
        let _ = write!(text, "  - {{{kind}: '{}', input: 1", entry.text);
        if !entry.aliases.is_empty() {
            let _ =
                write!(text, ", aliases: [{}]", entry.aliases.iter().cloned().collect::<Vec<_>>().join(", "));
        }
        for (key, value) in [("provider", entry.provider), ("upstream", entry.upstream)] {
            if let Some(value) = value {
                let _ = write!(text, ", {key}: {value}");
            }
        }
        for (key, day) in [("valid_from", entry.from), ("valid_until", entry.until)] {
            if let Some(day) = day {
                let _ = write!(text, ", {key}: 2026-11-{day:02}");
            }
        }
        text.push_str("}\n");
    }
    text
}

fn entry() -> impl Strategy<Value = Entry> {
    let place = || proptest::option::of(prop_oneof![Just("p"), Just("q")]);
    let days = (proptest::option::of(2_u8..8), proptest::option::of(8_u8..12));
    let aliases = proptest::collection::btree_set("[ab]{1,2}", 0..2);
    (any::<bool>(), "[ab]{1,3}", "[ab*?]{1,4}", aliases, place(), place(), days).prop_map(
        |(is_pattern, name, pattern, aliases, provider, upstream, (from, until))| Entry {
            is_pattern,
            text: if is_pattern { pattern } else { name },
            aliases: if is_pattern { BTreeSet::new() } else { aliases },
            provider,
            upstream,
            from,
            until,
        },
    )
}

proptest! {
    #![proptest_config(chance::cases(500))]

    #[test]
    fn lookup_agrees_with_the_naive_rules(
        entries in proptest::collection::vec(entry(), 1..7),
        asked in proptest::collection::vec(("[ab]{1,3}", "[pqr]", "[pqr]", 1_u8..14), 30),
    ) {
        // Contradicting entries are an error, and tested as one.
        let Ok((book, _)) = Book::read(&file(&entries)) else { return Err(TestCaseError::reject("contradictory")) };
        for (model, provider, upstream, day) in asked {
            let at_us = instant::read(&format!("2026-11-{day:02}")).expect("a date");
            let found = book.find(&model, &provider, &upstream, at_us);
            // Each entry is one line, from the fourth on.
            let found = found.map(|entry| usize::try_from(entry.line).expect("a small number") - 4);
            let right = expected(&entries, &model, &provider, &upstream, day);
            prop_assert_eq!(found, right, "{} {} {} {}\n{}", model, provider, upstream, day, file(&entries));
        }
    }
}
