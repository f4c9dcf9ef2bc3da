//! Errors and warnings of price files, and the facts that a book gives.

use std::path::Path;

use chance::Chance;
use origin::Diagnostic;
use price::{About, Book, WarningKind, instant};

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/prices.yaml");
    std::fs::read_to_string(path).expect("cannot read the example")
}

fn errors(text: &str) -> Vec<Diagnostic> {
    match Book::read(text) {
        Ok(_) => Vec::new(),
        Err(errors) => errors,
    }
}

/// The head of a valid file; entries follow on line 4.
const HEAD: &str = "version: v1\ncurrency: EUR\nmodels:\n";

#[test]
fn example_is_read_without_warnings() {
    let (book, warnings) = Book::read(&example()).expect("the example is valid");
    assert_eq!(warnings, []);
    assert_eq!(&**book.version(), "example-2026-11");
    assert_eq!(book.currency().code(), "USD");
    assert_eq!(book.entries().len(), 7);
}

#[test]
fn document_quotes_the_example_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("prices.md");
    let document = std::fs::read_to_string(path).expect("cannot read the document");
    let shown = document.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(shown, Some(example().as_str()), "prices.md differs from examples/prices.yaml");
}

#[test]
fn each_error_has_its_line_and_a_remedy() {
    for (entry, line, message, remedy) in [
        ("  - {name: m, inptu: 1}", 4, "no key `inptu`", "did you mean `input`?"),
        ("  - {name: m, colour: 1}", 4, "no key `colour`", "known are name, "),
        ("  - name: m\n    input: 1\n    input: 2", 6, "`input` is set twice, first at line 5", "remove one"),
        ("  - name: m\n    input: -1", 5, "`-1` is below 0", "2.50"),
        ("  - name: m\n    input: -0", 5, "`-0` is below 0", "2.50"),
        ("  - name: m\n    input: .nan", 5, "`.nan` is not a decimal number", "2.50"),
        ("  - name: m\n    input: nan", 5, "`nan` is not a decimal number", "2.50"),
        ("  - name: m\n    input: inf", 5, "`inf` is not a decimal number", "2.50"),
        ("  - name: m\n    input: $2", 5, "`$2` is not a decimal number", "2.50"),
        ("  - name: m\n    input: 1,5", 5, "`1,5` is not a decimal number", "2.50"),
        ("  - name: m\n    input: 0x10", 5, "`0x10` is not a decimal number", "2.50"),
        ("  - name: m\n    input: yes", 5, "`yes` is not a decimal number", "2.50"),
        ("  - name: m\n    input: 10000000001", 5, "is more than 10000.00 for one token", "a million"),
        ("  - name: m\n    input: 1e400", 5, "is too large", "a million"),
        ("  - name: m\n    input: 0.0000001", 5, "below the smallest price", "write 0 if it is free"),
        ("  - name: m\n    input:", 5, "`input` has no value", "remove the key"),
        ("  - name: m\n    input: [1]", 5, "is not one number", "2.50"),
        ("  - name: m\n    per_request: 10001", 5, "for one request", "0.005"),
        ("  - name: m", 4, "`m` has no price", "write 0"),
        ("  - input: 1", 4, "has no model", "`pattern`"),
        ("  - {name: m, pattern: m*, input: 1}", 4, "not both", "two entries"),
        ("  - {pattern: m*, aliases: [n], input: 1}", 4, "no aliases", "`name`"),
        ("  - {name: m, aliases: n, input: 1}", 4, "`aliases` is not a list", "aliases: ["),
        ("  - {name: \"\", input: 1}", 4, "`name`", "bytes"),
        ("  - {name: m, valid_from: 1.11.2026, input: 1}", 4, "neither a date", "2026-11-01"),
        ("  - {name: m, valid_from: 2026-13-01, input: 1}", 4, "neither a date", "2026-11-01"),
        (
            "  - name: m\n    valid_from: 2026-02-01\n    valid_until: 2026-01-01\n    input: 1",
            6,
            "is before `valid_from`",
            "later",
        ),
        (
            "  - {name: m, input: 1, tiers: {bacth: {multiply: 0.5}}}",
            4,
            "no tier `bacth`",
            "did you mean `batch`?",
        ),
        ("  - {name: m, input: 1, tiers: {standard: {input: 1}}}", 4, "is the standard tier", "entry itself"),
        (
            "  - {name: m, input: 1, tiers: {Batch: {input: 1}}}",
            4,
            "`Batch` is not a valid tier",
            "lower case",
        ),
        ("  - {name: m, input: 1, tiers: {batch: {}}}", 4, "has no prices", "multiply"),
        ("  - {name: m, input: 1, tiers: {batch: {input: -1}}}", 4, "`-1` is below 0", "2.50"),
        ("  - {name: m, input: 1, tiers: {batch: {multiply: -1}}}", 4, "`multiply`", "0.5"),
        ("  - {name: m, input: 1, tiers: {batch: {multiply: 0.5, input: 1}}}", 4, "not both", "remove"),
        (
            "  - {name: m, input: 9000000000, tiers: {batch: {multiply: 2}}}",
            4,
            "becomes too large",
            "smaller",
        ),
        ("  - {name: m, input: 1, context_tiers: {above: 1}}", 4, "not a list", "above_input_tokens"),
        ("  - {name: m, input: 1, context_tiers: [{input: 2}]}", 4, "no `above_input_tokens`", "length"),
        (
            "  - {name: m, input: 1, context_tiers: [{above_input_tokens: 128k, input: 2}]}",
            4,
            "not a whole number",
            "200000",
        ),
        ("  - {name: m, input: 1, context_tiers: [{above_input_tokens: 9}]}", 4, "has no price", "changes"),
        (
            "  - name: m\n    input: 1\n    context_tiers:\n      - {above_input_tokens: 9, input: 2}\n      - {above_input_tokens: 9, output: 2}",
            8,
            "already, on line 7",
            "merge the two",
        ),
        ("  - {name: m, input: 1}\n  - {name: m, input: 2}", 5, "already, on line 4", "valid_from"),
        (
            "  - {name: m, input: 1}\n  - {name: n, aliases: [m], input: 2}",
            5,
            "`m` has prices already",
            "provider",
        ),
        ("  - {pattern: m*, input: 1}\n  - {pattern: m*, input: 2}", 5, "already, on line 4", "valid_from"),
        (
            "  - {name: m, input: 1, valid_until: 2026-03-01}\n  - {name: m, input: 2, valid_from: 2026-02-01}",
            4,
            "in force until 2026-03-01, but the prices on line 5 begin 2026-02-01",
            "remove `valid_until`",
        ),
    ] {
        let text = format!("{HEAD}{entry}\n");
        let errors = errors(&text);
        let [error] = errors.as_slice() else { panic!("{entry}: {errors:#?}") };
        assert_eq!(error.line, line, "{entry}: {error}");
        assert!(error.message.contains(message) && error.remedy.contains(remedy), "{entry}: {error}");
    }
}

#[test]
fn long_value_is_cut_in_the_message() {
    let cut = format!("{}…", "x".repeat(80));
    for (value, shown) in [("x".repeat(80), "x".repeat(80)), ("x".repeat(81), cut)] {
        let errors = errors(&format!("{HEAD}  - name: m\n    input: {value}\n"));
        let messages: Vec<&str> = errors.iter().map(|error| &*error.message).collect();
        assert_eq!(messages, [format!("`input`: `{shown}` is not a decimal number")]);
    }
}

#[test]
fn tier_name_is_short_and_lower_case() {
    for (name, is_valid) in [
        ("tier-1_b", true),
        (&*"t".repeat(64), true),
        (&*"t".repeat(65), false),
        ("t.1", false),
        ("tierB", false),
    ] {
        let errors = errors(&format!("{HEAD}  - {{name: m, input: 1, tiers: {{{name}: {{input: 1}}}}}}\n"));
        assert_eq!(errors.is_empty(), is_valid, "{name}: {errors:?}");
    }
}

#[test]
fn limits_of_prices_are_inclusive() {
    for entry in
        ["input: 10000000000", "per_request: 10000", "input: 5000000000, tiers: {batch: {multiply: 2}}"]
    {
        assert_eq!(errors(&format!("{HEAD}  - {{name: m, {entry}}}\n")), [], "{entry}");
    }
    // One unit of the currency for a token is not yet high.
    let (_, warnings) =
        Book::read(&format!("{HEAD}  - {{name: m, input: 1000000, output: 1}}\n")).expect("a book");
    assert_eq!(warnings, []);
}

#[test]
fn invalid_top_level_is_refused() {
    for (text, line, message) in [
        ("", 1, "a price file is empty"),
        ("- 1", 1, "a price file is not a map"),
        ("currency: EUR\nmodels: []", 1, "no `version`"),
        ("version: v\nmodels: []", 1, "no `currency`"),
        ("version: v\ncurrency: EUR", 1, "no `models`"),
        ("version: v\ncurrency: Euro\nmodels: []", 2, "`Euro` is not the ISO"),
        ("version: v\ncurrency: UDS\nmodels: []", 2, "`UDS` is not the ISO"),
        ("version: v\ncurrency: usd\nmodels: []", 2, "`usd` is not the ISO"),
        ("version: v\ncurrency: EUR\nunit: per_1k\nmodels: []", 3, "`per_1k` is not a unit"),
        ("version: v\ncurrency: EUR\nmodels: {m: 1}", 3, "`models` is not a list"),
        ("version: v\ncurrency: [v\n", 2, "not YAML"),
    ] {
        let errors = errors(text);
        let [error] = errors.as_slice() else { panic!("{text}: {errors:#?}") };
        assert_eq!((error.line, error.message.contains(message)), (line, true), "{text}: {error}");
    }
}

#[test]
fn all_errors_are_reported_in_line_order() {
    let text =
        "version: v1\ncurrency: XXX\nmodels:\n  - name: a\n    input: -1\n  - nmae: b\n    output: x\n";
    let lines: Vec<u64> = errors(text).iter().map(|error| error.line).collect();
    assert_eq!(lines, [2, 5, 6, 7]);
}

#[test]
fn warnings_leave_the_file_usable() {
    for (entry, line, kind, message) in [
        ("  - name: m\n    input: 0.1000005", 5, WarningKind::Rounded, "0.1000005 was rounded to 0.10,"),
        ("  - name: m\n    input: 0.1000015", 5, WarningKind::Rounded, "0.1000015 was rounded to 0.100002,"),
        ("  - name: m\n    input: 0.0000025", 5, WarningKind::Rounded, "rounded to 0.000002,"),
        ("  - name: m\n    input: 0.00001", 5, WarningKind::Tiny, "write `unit: per_token`"),
        ("  - {name: m, input: 1, image: 2}", 4, WarningKind::NeverCharged, "images are not counted"),
        (
            "  - name: m\n    input: 1\n    output: 1000001",
            6,
            WarningKind::Large,
            "is 1.000001 for one token",
        ),
        (
            "  - {name: m, input: 1}",
            4,
            WarningKind::Unpriced,
            "`m` has no `output`: exchanges with such tokens",
        ),
        ("  - {name: m, output: 1}", 4, WarningKind::Unpriced, "`m` has no `input`: "),
        ("  - {name: m, per_request: 1}", 4, WarningKind::Unpriced, "`m` has no `input` and no `output`: "),
        (
            "  - name: m\n    input: 3\n    output: 4\n    context_tiers:\n      - {above_input_tokens: 9, input: 2, output: 5}",
            8,
            WarningKind::Cheaper,
            "`m` above 9 input tokens: `input` costs less",
        ),
        (
            "  - name: m\n    input: 3\n    output: 4\n    tiers:\n      batch:\n        input: 2\n        output: 2\n        \
             context_tiers: [{above_input_tokens: 9, output: 1}]",
            11,
            WarningKind::Cheaper,
            "`m` above 9 input tokens: `output` costs less",
        ),
        (
            "  - name: m\n    input: 0.000333\n    tiers:\n      batch: {multiply: 0.5}",
            7,
            WarningKind::Rounded,
            "a product was rounded",
        ),
        (
            "  - name: m\n    input: 1\n    output: 2\n    tiers:\n      batch: {input: 0.5}",
            8,
            WarningKind::Inherited,
            "no price for output; the price without it applies",
        ),
        (
            "  - name: m\n    input: 1\n    output: 2\n    tiers:\n      batch:\n        input: 0.5",
            8,
            WarningKind::Inherited,
            "no price for output; the price without it applies",
        ),
        (
            "  - name: m\n    input: 1\n    context_tiers: [{above_input_tokens: 9, input: 2}]\n    tiers:\n      batch: {input: 0.5}",
            8,
            WarningKind::Inherited,
            "above 9 input tokens: no price for input;",
        ),
        (
            "  - {pattern: a*c, input: 1}\n  - {pattern: ab*, input: 1}",
            4,
            WarningKind::Ambiguous,
            "match both `ab*` and `a*c`",
        ),
        (
            "  - {name: m, aliases: [m-latest], input: 5}\n  - {name: m, valid_from: 2026-10-01, input: 2.5}",
            4,
            WarningKind::LeftBehind,
            "the alias `m-latest` keeps these prices when `m` is charged by those on line 5, from 2026-10-01 on",
        ),
    ] {
        let (_, warnings) =
            Book::read(&format!("{HEAD}{entry}\n")).unwrap_or_else(|why| panic!("{entry}: {why:?}"));
        let found = warnings.iter().find(|warning| warning.kind == kind);
        let found = found.unwrap_or_else(|| panic!("{entry}: {warnings:?}"));
        assert!(found.message.contains(message), "{entry}: {found}");
        if kind != WarningKind::Ambiguous {
            assert_eq!(found.line, line, "{entry}: {found}");
        }
    }
}

#[test]
fn prices_of_small_currencies_are_accepted() {
    for (currency, output) in [("VND", "1500000"), ("IDR", "1200000")] {
        let text = format!(
            "version: v\ncurrency: {currency}\nmodels:\n  - {{name: m, input: 1, output: {output}}}\n"
        );
        assert_eq!(errors(&text), []);
    }
}

#[test]
fn file_without_models_is_warned_about() {
    let (_, warnings) = Book::read("version: v\ncurrency: EUR\nmodels: []\n").expect("the file is usable");
    let told: Vec<_> = warnings.iter().map(|warning| (warning.line, warning.kind)).collect();
    assert_eq!(told, [(3, WarningKind::Empty)]);
    assert_eq!(warnings[0].to_string(), "line 3: `models` has no entry: every exchange is unpriced");
}

#[test]
fn ended_prices_without_a_successor_are_warned_about() {
    for (entries, expected) in [
        ("{name: m, valid_until: 2026-10-01, input: 5}", "4 `m` 2026-10-01"),
        ("{name: m, aliases: [a], valid_until: 2026-10-01, input: 5}", "4 `a` 2026-10-01, 4 `m` 2026-10-01"),
        ("{pattern: m*, valid_until: 2026-10-01, input: 5}", "4 `m*` 2026-10-01"),
        ("{name: m, upstream: u, valid_until: 2026-10-01, input: 5}", "4 `m` 2026-10-01"),
        // It has not ended, starts again, or another entry covers its models.
        ("{name: m, valid_until: 2026-10-03, input: 5}", ""),
        ("{name: m, valid_until: 2026-10-01, input: 5}\n{name: m, valid_from: 2026-10-01, input: 5}", ""),
        ("{name: m, valid_until: 2026-10-01, input: 5}\n{name: m, valid_from: 2027-10-01, input: 5}", ""),
        ("{name: m, upstream: u, valid_until: 2026-10-01, input: 5}\n{name: m, input: 5}", ""),
        ("{name: m, valid_until: 2026-10-01, input: 5}\n{pattern: '*', input: 5}", ""),
        ("{pattern: m-*, valid_until: 2026-10-01, input: 5}\n{pattern: '*', input: 5}", ""),
    ] {
        let text = format!("{HEAD}  - {}\n", entries.replace('\n', "\n  - "));
        let (book, _) = Book::read(&text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
        let ended = book.ended(instant::read("2026-10-02").expect("a date")).into_iter().map(|warning| {
            let (name, rest) = warning
                .message
                .split_once("the prices of ")
                .and_then(|(_, rest)| rest.split_once(" ended "))
                .expect("both");
            format!("{} {name} {}", warning.line, rest.split(',').next().unwrap_or_default())
        });
        assert_eq!(ended.collect::<Vec<_>>().join(", "), expected, "{text}");
    }
}

/// For each entry with a warning: its line, the alias and the line where the alias is missing.
#[test]
fn alias_left_at_old_prices_is_warned_about() {
    for (entries, expected) in [
        // Repeated in another entry: no alias is left behind.
        ("{name: m, aliases: [a], input: 5}\n{name: m, aliases: [a], valid_from: 2026-10-01, input: 2}", ""),
        ("{name: m, aliases: [a], input: 5}\n{name: a, aliases: [m], valid_from: 2026-10-01, input: 2}", ""),
        (
            "{name: m, aliases: [a], input: 5}\n{name: m, valid_from: 2026-10-01, input: 2}\n{name: a, valid_from: 2026-10-01, input: 2}",
            "",
        ),
        // Superseded before, or ended together with its entry, which has no successor.
        (
            "{name: m, aliases: [a], input: 5}\n{name: m, valid_from: 2026-10-01, input: 2}\n{name: a, valid_from: 2026-09-01, input: 2}",
            "",
        ),
        (
            "{name: m, aliases: [a], valid_until: 2026-10-01, input: 5}\n{name: m, valid_from: 2026-10-01, input: 2}",
            "",
        ),
        ("{name: m, aliases: [a], valid_until: 2026-10-01, input: 5}", ""),
        // An entry at another place supersedes nothing; nor does a pattern, nor an alias that moves to another entry.
        ("{name: m, aliases: [a], input: 5}\n{name: m, upstream: u, valid_from: 2026-10-01, input: 2}", ""),
        ("{name: m, aliases: [a], input: 5}\n{name: m, provider: p, valid_from: 2026-10-01, input: 2}", ""),
        ("{name: m, aliases: [a], input: 5}\n{pattern: m, valid_from: 2026-10-01, input: 2}", ""),
        ("{name: m, aliases: [a], input: 5}\n{name: a, valid_from: 2026-10-01, input: 2}", ""),
        ("{name: m, aliases: [m], input: 5}\n{name: m, valid_from: 2026-10-01, input: 2}", ""),
        // Left behind for a time, or by an entry with another name.
        (
            "{name: m, upstream: u, aliases: [a], input: 5}\n{name: m, input: 2}\n{name: m, upstream: u, valid_from: 2026-10-01, input: 2}",
            "4 a 6",
        ),
        (
            "{name: m, aliases: [a, b], input: 5}\n{name: m, aliases: [b], valid_from: 2026-10-01, input: 2}\n{name: m, aliases: [a], valid_from: 2026-11-01, input: 2}",
            "4 a 5, 5 b 6",
        ),
        ("{name: m, valid_from: 2026-10-01, input: 2}\n{name: m, aliases: [a, b], input: 5}", "5 a 4, 5 b 4"),
        (
            "{name: m, aliases: [a], input: 5}\n{name: n, aliases: [m], valid_from: 2026-10-01, input: 2}",
            "4 a 5",
        ),
    ] {
        let text = format!("{HEAD}  - {}\n", entries.replace('\n', "\n  - "));
        let (_, warnings) = Book::read(&text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
        let told = warnings.iter().filter(|warning| warning.kind == WarningKind::LeftBehind).map(|warning| {
            let between = |from: &str, to: &str| {
                let after = warning.message.split_once(from).map_or("", |(_, after)| after);
                after.split_once(to).map_or("", |(text, _)| text).to_owned()
            };
            format!("{} {} {}", warning.line, between("the alias `", "`"), between("line ", ","))
        });
        assert_eq!(told.collect::<Vec<_>>().join(", "), expected, "{text}");
    }
}

/// The model's name determines its facts, whatever entry charged the exchange.
#[test]
fn model_facts_come_from_the_most_exact_entry() {
    let (book, _) = Book::read(&format!(
        "{HEAD}\
         - {{pattern: 'l*', input: 1, developer: somebody, model_version: '0'}}\n\
         - {{pattern: 'llama-*', input: 1, developer: Meta, family: Llama}}\n\
         - {{name: llama-3, aliases: [l3], input: 1, family: Llama 3, valid_until: 2026-10-01}}\n\
         - {{name: llama-3, input: 1, model_version: '3.1', valid_from: 2026-10-01}}\n"
    ))
    .expect("it is right");
    let said = |model: &str| said(&book, model, "2026-10-01");
    assert_eq!(said("llama-3"), ["Meta", "Llama 3", "3.1"]);
    assert_eq!(said("l3"), ["somebody", "Llama 3", "0"], "an alias is a name");
    assert_eq!(said("llama-4"), ["Meta", "Llama", "0"]);
    assert_eq!(said("qwen"), [""; 3]);
}

/// The facts of a model on a day: its developer, its family and its version.
fn said(book: &Book, model: &str, day: &str) -> [String; 3] {
    let About { developer, family, version } = book.about(model, instant::read(day).expect("a date"));
    [developer, family, version].map(|word| word.map(|word| word.to_string()).unwrap_or_default())
}

#[test]
fn newer_entry_gives_the_model_facts() {
    let (book, _) = Book::read(&format!(
        "{HEAD}\
         - {{name: m-with-a-long-name, aliases: [m], input: 1, family: first, model_version: '1'}}\n\
         - {{name: m, input: 1, family: second, valid_from: 2026-10-01}}\n\
         - {{name: m-0, aliases: [m], input: 1, family: third, valid_from: 2026-11-01, valid_until: 2026-11-02}}\n\
         - {{pattern: 'm*', input: 1, developer: short, valid_from: 2026-10-01}}\n\
         - {{pattern: 'm-with*', input: 1, developer: long}}\n"
    ))
    .expect("it is right");
    for (day, developer, family) in [
        ("2026-09-30T23:59:59Z", "", "first"),
        ("2026-10-01", "short", "second"),
        ("2026-10-31T23:59:59Z", "short", "second"),
        ("2026-11-01", "short", "third"),
        ("2026-12-01", "short", "third"),
    ] {
        assert_eq!(said(&book, "m", day), [developer, family, "1"], "{day}");
    }
    assert_eq!(said(&book, "m-with-a-long-name", "2026-12-01")[0], "long", "the longer pattern counts");
}

#[test]
fn entries_without_overlap_are_accepted() {
    for entries in [
        "  - {name: m, input: 1}\n  - {name: m, provider: p, input: 2}\n  - {name: m, upstream: u, input: 2}",
        "  - {name: m, input: 1}\n  - {name: m, valid_from: 2026-01-01, input: 2}",
        "  - {name: m, input: 1}\n  - {pattern: m, input: 2}",
        "  - {name: m, aliases: [n], input: 1}\n  - {name: n, valid_from: 2026-01-01, input: 2}",
        "  - {name: m, aliases: [m, n, n], input: 1}",
    ] {
        assert_eq!(errors(&format!("{HEAD}{entries}\n")), [], "{entries}");
    }
}

#[test]
fn damaged_file_never_panics() {
    let example = example();
    let mut chance = Chance::new(1);
    let mut read = 0;
    for _ in 0..500 {
        let mut bytes = example.clone().into_bytes();
        for _ in 0..=chance.place(4) {
            let at = chance.place(bytes.len());
            let to = (at + chance.place(40)).min(bytes.len());
            match chance.place(6) {
                0 => drop(bytes.drain(at..to)),
                1 => bytes[at] = b"\0\t\n -:[]{}&*!|>'\"%@`#?,0e.\xff"[chance.place(27)],
                2 => {
                    let copy = bytes[at..to].to_vec();
                    let into = chance.place(bytes.len());
                    bytes.splice(into..into, copy);
                }
                3 => bytes.truncate(at),
                4 => bytes.splice(at..at, *b"99999999999999999999999999999999").for_each(drop),
                _ => bytes[at] = u8::try_from(chance.place(256)).unwrap_or(0),
            }
            if bytes.is_empty() {
                bytes.push(b'\n');
            }
        }
        match Book::read(&String::from_utf8_lossy(&bytes)) {
            Ok(_) => read += 1,
            Err(errors) => assert!(!errors.is_empty(), "refused without an error"),
        }
    }
    assert!((10..490).contains(&read), "{read} of 500 were read: too few or too many mutations are valid");
}
