//! Names in files are read as written, also where YAML reads a plain value as another type.

use std::collections::BTreeMap;

use ::price::Book;
use chance::Chance;
use origin::file;
use rules::{Hash, parse};
use tenant::Rule;

use crate::settings::RawSettings;

/// Plain values that YAML reads as a number or a boolean.
const NUMBERS_AND_BOOLEANS: [&str; 24] = [
    "00417", "0x1F", "0o17", "0b101", "12_000", "1e3", "1E+3", "1.10", ".5", "+7", "-7", "-0", "0.0", ".inf",
    "-.inf", ".nan", "no", "No", "yes", "on", "OFF", "y", "True", "12:30:45",
];

/// Returns plain values without a space that are not null.
fn plain_values() -> Vec<String> {
    let mut chance = Chance::new(11);
    let (inner, last): (Vec<char>, Vec<char>) =
        ("0123456789abcdefonyxXEeNY._+-:".chars().collect(), "0123456789abcefnoxy_".chars().collect());
    let made = (0..2_000).map(|_| {
        let first = chance.pick(&last);
        let middle: String = (0..chance.below(7)).map(|_| chance.pick(&inner)).collect();
        format!("{}{middle}{}", if first == '_' { '0' } else { first }, chance.pick(&last))
    });
    NUMBERS_AND_BOOLEANS.iter().map(|text| (*text).to_owned()).chain(made).collect()
}

#[test]
fn tenants_files_keep_names_as_written() {
    for name in plain_values() {
        let text = format!(
            "default: {name}\nrules:\n  - path: /a\n    tenant: {name}\n  - {{peer: 10.0.0.0/8, tenant: {name}}}\n"
        );
        let tenants = parse("t.yaml", &text, Hash::None).unwrap_or_else(|errors| panic!("{text}{errors}"));
        assert_eq!(**tenants.spec.default.expect("it is named").text(), *name);
        for rule in &tenants.spec.rules {
            let (Rule::Path { tenant, .. } | Rule::Peer { tenant, .. }) = rule else { panic!("{rule:?}") };
            assert_eq!(**tenant.text(), *name, "{text}");
        }
    }
}

#[test]
fn settings_files_keep_names_as_written() {
    for name in plain_values() {
        let text = format!(
            "ledger: {name}\nupstreams:\n  - name: {name}\nobjectives:\n  - {{name: {name}, models: {name}}}\n\
             budgets:\n  - {{name: {name}, tenants: [{name}, \"{name}\", {name}]}}\n"
        );
        let file = file::parse("t.yaml", &text).unwrap_or_else(|error| panic!("{text}{error}"));
        let written = RawSettings::merge(&BTreeMap::new(), &|_| None, Some(file));
        assert!(written.errors.is_empty(), "{text}{:?}", written.errors);
        assert_eq!(written.values["ledger"].text, name);
        let first =
            |list: Option<(_, Vec<crate::settings::Entry>)>| list.expect("it is there").1.remove(0).fields;
        assert_eq!(first(written.upstreams)["name"].text, name);
        let objective = first(written.objectives);
        assert_eq!((&objective["name"].text, &objective["models"].text), (&name, &name));
        let budget = first(written.budgets);
        assert_eq!(
            (&budget["name"].text, &budget["tenants"].text),
            (&name, &format!("{name},{name},{name}"))
        );
    }
}

#[test]
fn price_files_keep_names_as_written() {
    for name in plain_values() {
        let text = format!(
            "version: {name}\ncurrency: USD\nmodels:\n  - name: {name}\n    aliases: [{name}+a, x]\n    upstream: {name}\n    \
             provider: {name}\n    input: 1\n    output: 1\n"
        );
        let (book, _) = Book::read(&text).unwrap_or_else(|problems| panic!("{text}{problems:?}"));
        assert_eq!(**book.version(), *name);
        assert!(book.find(&name, &name, &name, 0).is_some(), "{text}");
    }
}

#[test]
fn keys_are_kept_as_written() {
    for name in ["1e3", "007", "12_000", "0x10", "no"] {
        let text = format!(
            "version: v\ncurrency: USD\nmodels:\n  - name: m\n    input: 1\n    output: 1\n    tiers:\n      {name}: {{multiply: \
             0.5}}\n"
        );
        let (book, _) = Book::read(&text).unwrap_or_else(|problems| panic!("{text}{problems:?}"));
        assert!(book.entries()[0].has_tier(name), "{text}");
    }
}

#[test]
fn list_rejects_a_name_with_a_comma() {
    let file = file::parse("t.yaml", "budgets:\n  - {name: a, tenants: [\"a,b\", c]}\n").expect("it is YAML");
    let written = RawSettings::merge(&BTreeMap::new(), &|_| None, Some(file));
    let errors: Vec<_> = written.errors.iter().map(ToString::to_string).collect();
    let remedy = "write each name as a separate item; in a pattern, `?` matches a comma";
    assert_eq!(errors, [format!("t.yaml:2: `tenants` has a comma within one name, `a,b`; {remedy}")]);
}
