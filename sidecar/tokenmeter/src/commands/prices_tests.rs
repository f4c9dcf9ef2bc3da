//! The flags and the output of `prices`.

use ::price::{Book, instant};

use super::super::parse;
use super::{Format, PricesArgs, Show, render};
use crate::cli::Action;

const EXAMPLE: &str = include_str!("../../../../examples/prices.yaml");

fn args(line: &str) -> PricesArgs {
    match parse(&format!("prices {line}")) {
        Ok(Action::Prices(args)) => args,
        other => panic!("{line}: {other:?}"),
    }
}

fn show(line: &str) -> Show {
    match args(&format!("show {line} --prices p.yaml")) {
        PricesArgs::Show(args) => args,
        other => panic!("{line}: {other:?}"),
    }
}

fn book(text: &str) -> Book {
    Book::read(text).expect("a valid price file").0
}

fn shown(line: &str) -> String {
    let (book, args) = (book(EXAMPLE), show(line));
    let at_us = args.at.expect("a date");
    render::show(&book, args.find(&book, at_us).expect("it has a price"), &args, at_us)
}

#[test]
fn flags_are_parsed() {
    let PricesArgs::ImportLitellm { map, version_name, new } =
        args("import-litellm m.json --currency EUR --version-name v --out o.yaml")
    else {
        panic!("an import")
    };
    assert_eq!((&*map, new.currency.code(), version_name.as_deref()), ("m.json", "EUR", Some("v")));
    assert_eq!(new.out.as_deref(), Some("o.yaml".as_ref()));
    assert!(matches!(args("init a b --input 0.1 --output 2 --currency EUR"), PricesArgs::Init(_)));
    assert_eq!(args("lint p.yaml"), PricesArgs::Lint { file: "p.yaml".to_owned(), format: Format::Table });
    assert_eq!(show("m --at 2026-11-21").at, instant::read("2026-11-21"));
    assert_eq!(show("m").at, None);
    for invalid in [
        "",
        "show",
        "show m --prices p --at yesterday",
        "import-litellm m --currency usd",
        "lint",
        "init m",
        "init --input -1 --output 1",
    ] {
        assert!(parse(&format!("prices {invalid}")).is_err(), "{invalid}");
    }
}

#[test]
fn show_prints_the_prices_and_their_entry() {
    let text = shown("gpt-4o --at 2026-09-30");
    assert!(text.contains("entry    gpt-4o (until 2026-10-01), line 22\n"), "{text}");
    assert!(text.contains("\ninput                         5.00\n"), "{text}");
    let text = shown("gpt-4o --at 2026-10-01 --tier batch");
    assert!(text.contains("entry    gpt-4o (from 2026-10-01), line 27\n"), "{text}");
    assert!(text.contains("tier     batch\n"), "{text}");
    assert!(text.contains("\ncached_input                 0.625\n"), "{text}");
    assert!(text.contains("\ncache_write                 1.25 *\n"), "{text}");
    assert!(text.contains("\ninput_image                 1.25 *\n"), "{text}");
    assert!(text.contains("\n* derived: cached_input, cache_write, input_image and input_video "), "{text}");
    let text = shown("claude-sonnet-5 --at 2026-11-21 --tier flex");
    assert!(text.contains("tier     standard: the entry has no prices for `flex`\n"), "{text}");
    assert!(text.contains("\noutput                       15.00         22.50\n"), "{text}");
    assert!(text.contains("\ncache_write_1h                6.00         12.00\n"), "{text}");
    assert!(text.contains("\noutput_audio              unpriced      unpriced\n"), "{text}");
    let text = shown("qwen3-8b --at 2026-11-21 --provider vllm --upstream main");
    assert!(text.contains("qwen3-8b (provider vllm)"), "{text}");
}

#[test]
fn show_prints_the_prices_of_a_tenant() {
    let book = book(
        "version: v\ncurrency: EUR\ntenants: {acme: {discount: 10%}, 'x-*': {markup: 50%}}\nmodels:\n\
         - {name: m, input: 1, output: 2, per_request: 0.01}\n",
    );
    for (line, tenant, output) in [
        (
            "m",
            "tenants  `acme` discount 10%, `x-*` markup 50%; --tenant NAME shows the prices of one\n",
            "2.00",
        ),
        ("m --tenant acme", "tenant   `acme`: `acme` discount 10%\n", "1.80"),
        ("m --tenant x-1", "tenant   `x-1`: `x-*` markup 50%\n", "3.00"),
        ("m --tenant other", "tenant   `other`: no terms of its own\n", "2.00"),
    ] {
        let args = show(&format!("{line} --at 2026-10-01"));
        let at_us = args.at.expect("a date");
        let entry = args.find(&book, at_us).expect("it has a price");
        let text = render::show(&book, entry, &args, at_us);
        assert!(text.contains(tenant), "{line}: {text}");
        assert!(text.contains(&format!("\noutput                        {output}\n")), "{line}: {text}");
        let json: serde_json::Value =
            serde_json::from_str(&render::show_json(&book, entry, &args, at_us)).expect("it is JSON");
        assert_eq!(json["rates"][0]["tokens"]["output"]["per_million"], output, "{line}");
    }
}

#[test]
fn show_prints_the_family_of_the_given_day() {
    let book = book(
        "version: v\ncurrency: EUR\nmodels:\n\
         - {name: m, input: 1, family: One}\n\
         - {name: m, input: 1, family: Two, valid_from: 2026-10-01}\n",
    );
    for (day, family) in [("2026-09-30", "One"), ("2026-10-01", "Two")] {
        let args = show(&format!("m --at {day}"));
        let at_us = args.at.expect("a date");
        let entry = args.find(&book, at_us).expect("it has a price");
        let text = render::show(&book, entry, &args, at_us);
        assert!(text.contains(&format!("is       family {family}\n")), "{day}: {text}");
        let json: serde_json::Value =
            serde_json::from_str(&render::show_json(&book, entry, &args, at_us)).expect("it is JSON");
        assert_eq!(json["family"], family, "{day}");
    }
}

#[test]
fn json_has_the_content_of_the_text() {
    let (book, args) = (book(EXAMPLE), show("deep-thinker --at 2026-11-21"));
    let at_us = args.at.expect("a date");
    let entry = args.find(&book, at_us).expect("it has a price");
    let json: serde_json::Value =
        serde_json::from_str(&render::show_json(&book, entry, &args, at_us)).expect("it is JSON");
    assert_eq!(json["rates"][0]["tokens"]["reasoning"]["per_million"], "1.10");
    assert_eq!(
        json["rates"][0]["tokens"]["cached_input"],
        serde_json::json!({"per_million": "0.55", "named": false})
    );
    assert_eq!(json["rates"][0]["tokens"]["input_audio"]["per_million"], serde_json::Value::Null);
    assert_eq!(json["rates"][0]["per_request"], "0.005");
    assert_eq!(json["at"], "2026-11-21");
}

#[test]
fn unpriced_model_gets_suggestions() {
    for (line, part) in [
        ("gpt4o --at 2026-11-21", "did you mean `gpt-4o`?"),
        ("gpt-4o-2024-11-20 --at 2026-01-01", "with these flags, but has gpt-4o (from 2026-10-01)"),
        (
            "qwen3-8b --at 2026-11-21",
            "but has qwen3-8b (provider vllm); qwen3-8b (upstream spot); see --at, --provider",
        ),
        ("something-else --at 2026-11-21", "add one"),
    ] {
        let args = show(line);
        let (book, at_us) = (book(EXAMPLE), args.at.expect("a date"));
        let text = render::unpriced(&book, "p.yaml", &args, at_us);
        assert!(args.find(&book, at_us).is_none(), "{line}");
        assert!(text.contains(part), "{line}: {text}");
    }
}

#[test]
fn diff_prints_differences_in_money() {
    let new = EXAMPLE
        .replace("input: 0.10", "input: 0.11")
        .replace("name: deep-thinker", "name: deeper")
        .replace("input: 6.00", "input: 7.00")
        .replace("aliases: [gpt-4o-2024-11-20]", "aliases: [gpt-4o-2024-11-20, omni]");
    let text = render::diff(&book(EXAMPLE), &book(&new));
    for expected in [
        "removed deep-thinker\n",
        "added deeper\n",
        "changed qwen3-8b (provider vllm)\n  input           0.10 -> 0.11\n  cache_write     0.10 -> 0.11\n  \
         cache_write_1h  0.10 -> 0.11\n  input_image     0.10 -> 0.11\n",
        "  above 200000: input_video         6.00 -> 7.00\n  batch: above 200000: input        3.00 -> 3.50\n",
        "changed gpt-4o (from 2026-10-01)\n  aliases  gpt-4o-2024-11-20 -> gpt-4o-2024-11-20, omni\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(render::diff(&book(EXAMPLE), &book(EXAMPLE)).ends_with("nothing differs\n"));
    let json: serde_json::Value =
        serde_json::from_str(&render::diff_json(&book(EXAMPLE), &book(&new))).expect("JSON");
    assert_eq!(json["changes"].as_array().map(Vec::len), Some(5), "{json:#}");
    let euros = EXAMPLE.replace("currency: USD", "currency: EUR");
    assert!(render::diff(&book(EXAMPLE), &book(&euros)).contains("currency  USD -> EUR\n"));
}

#[test]
fn lint_prints_errors_and_warnings_with_lines() {
    let invalid =
        EXAMPLE.replace("output: 0.40", "output: -0.40").replace("name: deep-thinker", "nmae: deep-thinker");
    let read = Book::read_file("p.yaml", &invalid);
    let text = render::lint("p.yaml", &read);
    assert!(text.starts_with("p.yaml:13: `output`: `-0.40` is below 0; "), "{text}");
    assert!(
        text.contains("p.yaml:59: an entry of `models` has no key `nmae`; did you mean `name`?\n"),
        "{text}"
    );
    assert!(text.ends_with("p.yaml: 2 errors\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&render::lint_json("p.yaml", &read)).expect("it is JSON");
    assert_eq!((&json["right"], &json["problems"][0]["line"]), (&false.into(), &13.into()));

    let rounded = EXAMPLE.replace("output: 0.40", "output: 0.4000004");
    let text = render::lint("p.yaml", &Book::read(&rounded));
    assert!(text.starts_with("p.yaml:13: warning: `output`: 0.4000004 was rounded to 0.40,"), "{text}");
    assert!(text.contains("USD, 7 entries, 13 rates, 1 warning, hash "), "{text}");
}
