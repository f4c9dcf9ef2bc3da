//! The import of LiteLLM's price map: the whole of it against a twin in Python's decimals
//! (`tests/prices/twin.py`), and damaged maps.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use meter::TokenType;
use price::litellm::{Import, ImportOptions, Rounded, import};
use price::{Book, Currency, Entry, WarningKind};

/// The whole map. Without it, the test fails with the command that installs it.
fn map() -> (PathBuf, String) {
    let root = std::env::var_os("TOKENMETER_PRICE_MAP").map(PathBuf::from).unwrap_or_else(|| {
        let home = std::env::var_os("HOME").expect("HOME or TOKENMETER_PRICE_MAP is set");
        Path::new(&home).join(".cache/tokenmeter/prices")
    });
    let path = root.join("model_prices_and_context_window.json");
    let text = std::fs::read_to_string(&path);
    let text =
        text.unwrap_or_else(|_| panic!("missing: {}; install with: tests/prices/install", path.display()));
    (path, text)
}

fn options() -> ImportOptions {
    ImportOptions { version: None, currency: Currency::USD }
}

fn imported(json: &str) -> (Import, Book) {
    let import = import(json, &options()).expect("it is JSON");
    match Book::read(&import.file) {
        Ok((book, warnings)) => {
            // The oracle's rounded prices are listed as rounded.
            assert!(warnings.iter().all(|warning| warning.kind != WarningKind::Rounded), "{warnings:?}");
            (import, book)
        }
        Err(problems) => panic!("{problems:#?}\n{}", import.file),
    }
}

fn lines(import: &Import, entries: &[Entry]) -> String {
    let mut lines = String::new();
    for entry in entries {
        for offer in &entry.offers {
            let rate = &offer.rate;
            let _ = write!(lines, "rate\t{}\t{}\t{}", rate.entry, rate.tier, rate.above_input_tokens);
            for price in rate.per_token.iter().copied().chain([Some(rate.per_request)]) {
                let _ = write!(lines, "\t{}", price.map_or("-".to_owned(), |price| price.to_string()));
            }
            lines.push('\n');
        }
    }
    for Rounded { model, field, written, taken } in &import.rounded {
        let _ = writeln!(lines, "round\t{model}\t{field}\t{written}\t{taken}");
    }
    lines
}

#[test]
#[ignore = "needs tests/prices/install"]
fn whole_map_agrees_with_the_decimal_oracle() {
    let (path, json) = map();
    let (import, book) = imported(&json);
    assert!(
        import.models > 3000 && import.without_price < 1200,
        "{} and {}",
        import.models,
        import.without_price
    );
    assert_eq!(import.models, book.entries().len());
    assert_eq!(import.skipped, [""; 0]);
    // Charged per query, with token prices of 0.
    assert!(json.contains("\"cohere.rerank-v3-5:0\": {"), "the map still has the example");
    assert!(!import.file.contains("cohere.rerank-v3-5:0"), "it is not imported as free");
    let mut twin = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/prices/twin.py"))
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let lines = lines(&import, book.entries());
    twin.stdin.take().expect("it is piped").write_all(lines.as_bytes()).expect("it reads");
    let output = twin.wait_with_output().expect("it ends");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}");
    let (rates, _) = report.split_once(" rates of ").expect("it counts");
    assert!(rates.parse::<u32>().is_ok_and(|rates| rates > 4000), "{report}");
}

#[test]
fn field_names_become_tiers_and_context_lengths() {
    let (import, book) = imported(
        r#"{"sample_spec": {"input_cost_per_token": 1}, "a/b\"c": {"litellm_provider": "x y\n", "input_cost_per_token": 2.5e-06,
        "output_cost_per_token": 0.00001, "cache_read_input_token_cost_priority": 5.0000000000000004E-8,
        "input_cost_per_token_above_200k_tokens": 5e-06, "output_cost_per_token_above_200k_tokens_batches": "6e-06",
        "output_cost_per_image": 1, "mode": "chat", "max_tokens": 5},
        "seconds": {"input_cost_per_second": 0.1}, "free": {"input_cost_per_token": 0, "output_cost_per_token": 0.0},
        "ranges": {"tiered_pricing": [{"range": [0, 32000.0], "input_cost_per_token": 1e-6}, {"range": [32000.0, 1e6],
        "input_cost_per_token": 2e-6, "input_cost_per_query": 1}]}}"#,
    );
    let uncharged =
        import.uncharged.iter().map(|(field, (models, one))| (field.as_str(), *models, one.as_str()));
    assert_eq!(
        uncharged.collect::<Vec<_>>(),
        [
            ("input_cost_per_second", 1, "seconds"),
            ("output_cost_per_image", 1, "a/b\"c"),
            ("tiered_pricing: input_cost_per_query", 1, "ranges"),
        ]
    );
    assert_eq!((import.models, import.without_price, import.free), (3, 1, vec!["free".to_owned()]));
    let field = "cache_read_input_token_cost_priority".to_owned();
    let written = "5.0000000000000004E-8".to_owned();
    assert_eq!(import.rounded, [Rounded { model: "a/b\"c".to_owned(), field, written, taken: 50_000 }]);
    let rates = book.rates().map(|rate| {
        let prices = [TokenType::Input, TokenType::InputCached, TokenType::Output]
            .map(|kind| rate.per_token[kind as usize].unwrap_or(-1));
        (&*rate.entry, &*rate.tier, rate.above_input_tokens, prices)
    });
    assert_eq!(
        rates.collect::<Vec<_>>(),
        [
            ("a/b\"c", "standard", 0, [2_500_000, 2_500_000, 10_000_000]),
            ("a/b\"c", "standard", 200_000, [5_000_000, 5_000_000, 10_000_000]),
            ("a/b\"c", "batch", 0, [2_500_000, 2_500_000, 10_000_000]),
            ("a/b\"c", "batch", 200_000, [5_000_000, 5_000_000, 6_000_000]),
            ("a/b\"c", "priority", 0, [2_500_000, 50_000, 10_000_000]),
            ("a/b\"c", "priority", 200_000, [5_000_000, 50_000, 10_000_000]),
            ("free", "standard", 0, [0, 0, 0]),
            ("ranges", "standard", 0, [1_000_000, 1_000_000, -1]),
            ("ranges", "standard", 32_000, [2_000_000, 2_000_000, -1]),
        ]
    );
}

#[test]
fn model_with_any_cost_is_not_free() {
    // Its fields beside token prices of 0, and whether it is free.
    for (fields, is_free) in [
        (r#""mode": "chat", "max_tokens": 5"#, true),
        (r#""input_cost_per_query": 0.002"#, false),
        (r#""input_cost_per_query": 0.0, "output_cost_per_image": 4e-2"#, false),
        (r#""input_cost_per_query": 0.0, "output_cost_per_image": 0e-2"#, true),
        (r#""input_cost_per_query": "0.002""#, false),
        (r#""input_cost_per_query": "-0.002""#, true),
        (r#""input_cost_per_query": null, "output_cost_per_second": "unknown""#, true),
        (r#""input_cost_per_query": 1e-30"#, false),
        (r#""input_cost_per_query": 1e99"#, false),
        // An imported field with an unusable value.
        (r#""cache_read_input_token_cost": 1e-13"#, false),
        (r#""cache_read_input_token_cost": -1"#, true),
        (
            r#""search_context_cost_per_query": {"search_context_size_low": 0, "search_context_size_high": 0.03}"#,
            false,
        ),
        (r#""search_context_cost_per_query": {"search_context_size_low": 0.0}"#, true),
        (r#""off_peak_pricing": {"windows": [{"weekdays": [1, 2]}], "input_cost_per_token": 0}"#, true),
        (r#""off_peak_pricing": {"windows": [{"weekdays": [1, 2]}], "input_cost_per_token": 1e-7}"#, false),
        (r#""tiered_pricing": [{"range": [0, 32000], "input_cost_per_token": 0}]"#, true),
        (r#""tiered_pricing": [{"range": [0, 32000], "input_cost_per_query": 1}]"#, false),
        // A list by another name has no prices.
        (r#""examples": [{"input_cost_per_query": 1}]"#, true),
        // Factors, and free allowances.
        (r#""regional_endpoint_uplift_multiplier": 1.1, "search_free_requests": {"a_day": 100}"#, true),
        (r#""provider_specific_entry": {"us": 1.1}"#, true),
    ] {
        let model =
            format!(r#"{{"m": {{"input_cost_per_token": 0.0, "output_cost_per_token": 0, {fields}}}}}"#);
        let (import, book) = imported(&model);
        let entries = usize::from(is_free);
        assert_eq!((import.models, import.without_price), (entries, 1 - entries), "{fields}");
        assert_eq!((import.free.len(), book.entries().len()), (entries, entries), "{fields}");
    }
    let (import, _) = imported(r#"{"m": {"input_cost_per_token": 1e-9, "input_cost_per_query": 0.002}}"#);
    assert_eq!((import.models, import.without_price), (1, 0), "its token prices are imported");
}

#[test]
fn unusable_prices_are_skipped_and_listed() {
    let (import, book) = imported(
        r#"{"m": {"input_cost_per_token": -1, "output_cost_per_token": 2, "cache_read_input_token_cost": 1e-13,
        "cache_creation_input_token_cost": {}, "input_cost_per_image_token": true, "input_cost_per_audio_token": "much", "output_cost_per_audio_token": 1e999,
        "input_cost_per_request": 0.005}, "twice": {"input_cost_per_token": 1e-6}, "twice": {"input_cost_per_token": 2e-6},
        " odd": {"input_cost_per_token": 1e-6}, "list": [], "none": {"input_cost_per_token": null},
        "ranges": {"tiered_pricing": 5, "input_cost_per_token": 1e-6}}"#,
    );
    for message in [
        "\"-1\" is below 0",
        "\"2\" is more than one unit",
        "\"1e-13\" is below the smallest",
        "cache_creation_input_token_cost is not a number",
        "input_cost_per_image_token is not a number",
        "\"much\" is not a number",
        "\"1e999\" is too large",
        "twice; the last is used",
        "\" odd\" is left out",
        "\"list\" is not a model",
        "tiered_pricing is not a list",
    ] {
        assert_eq!(
            import.skipped.iter().filter(|skipped| skipped.contains(message)).count(),
            1,
            "{message}: {:#?}",
            import.skipped
        );
    }
    assert_eq!(import.skipped.len(), 11);
    let twice = book.entries().iter().find(|entry| &**entry.models.text() == "twice").expect("it is there");
    assert_eq!(twice.offers[0].rate.per_token[0], Some(2_000_000));
}

/// Returns the imported price of cached tokens of the model `m`.
fn cached(fields: &str) -> Option<i64> {
    let (_, book) = imported(&format!(r#"{{"m": {{{fields}}}}}"#));
    book.entries()[0].offers[0].rate.per_token[TokenType::InputCached as usize]
}

#[test]
fn one_hour_cache_writes_have_their_own_price() {
    let (import, book) = imported(
        r#"{"m": {"input_cost_per_token": 3e-6, "cache_creation_input_token_cost": 3.75e-6,
        "cache_creation_input_token_cost_above_1hr": 6e-6, "cache_creation_input_token_cost_above_200k_tokens": 7.5e-6,
        "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 12e-6,
        "cache_creation_input_token_cost_above_12hr": 9e-6}}"#,
    );
    let prices = book.rates().map(|rate| {
        let of = |kind: TokenType| rate.per_token[kind as usize];
        (rate.above_input_tokens, of(TokenType::InputCacheWrite), of(TokenType::InputCacheWrite1h))
    });
    let expected = [(0, Some(3_750_000), Some(6_000_000)), (200_000, Some(7_500_000), Some(12_000_000))];
    assert_eq!(prices.collect::<Vec<_>>(), expected);
    assert!(
        import.uncharged.contains_key("cache_creation_input_token_cost_above_12hr"),
        "{:?}",
        import.uncharged
    );
}

#[test]
fn factors_of_speed_and_geography_become_tiers() {
    let (import, book) = imported(
        r#"{"m": {"input_cost_per_token": 5e-6, "input_cost_per_token_batches": 2.5e-6, "provider_specific_entry": {"us": 1.1, "fast": 2.0}},
        "other": {"input_cost_per_token": 1e-6, "provider_specific_entry": {"realtime_ga_only": 1}},
        "none": {"provider_specific_entry": {"us": 1.1}}}"#,
    );
    let prices = book.rates().filter(|rate| &*rate.entry == "m").map(|rate| {
        (rate.tier.to_string(), rate.per_token[TokenType::Input as usize].unwrap_or(0) / 100_000)
    });
    let expected = [
        ("standard", 50),
        ("batch", 25),
        ("fast", 100),
        ("us", 55),
        ("batch+fast", 50),
        ("batch+fast+us", 55),
        ("batch+us", 27),
        ("fast+us", 110),
    ];
    assert_eq!(prices.collect::<Vec<_>>(), expected.map(|(tier, price)| (tier.to_owned(), price)));
    assert_eq!(import.uncharged.keys().collect::<Vec<_>>(), ["provider_specific_entry"]);
    assert_eq!(import.uncharged["provider_specific_entry"].1, "other");
    assert_eq!(import.without_price, 1);
}

#[test]
fn older_cache_read_name_counts_only_alone() {
    let (input, read, hit) = (
        r#""input_cost_per_token": 4e-6"#,
        r#""cache_read_input_token_cost": 1e-6"#,
        r#""input_cost_per_token_cache_hit": 2e-6"#,
    );
    assert_eq!(cached(&format!("{input}, {hit}")), Some(2_000_000));
    assert_eq!(cached(&format!("{input}, {read}, {hit}")), Some(1_000_000));
    assert_eq!(cached(&format!("{hit}, {read}, {input}")), Some(1_000_000));
}

#[test]
fn range_has_standard_prices_only() {
    let (import, book) = imported(
        r#"{"m": {"tiered_pricing": [{"range": [0, 10], "input_cost_per_token": 1e-6, "input_cost_per_token_batches": 5e-7,
        "output_cost_per_token_above_200k_tokens": 3e-6}]}}"#,
    );
    assert_eq!(
        book.rates().map(|rate| (&*rate.tier, rate.above_input_tokens)).collect::<Vec<_>>(),
        [("standard", 0)]
    );
    let uncharged: Vec<&str> = import.uncharged.keys().map(String::as_str).collect();
    assert_eq!(
        uncharged,
        [
            "tiered_pricing: input_cost_per_token_batches",
            "tiered_pricing: output_cost_per_token_above_200k_tokens"
        ]
    );
}

#[test]
fn bounds_of_prices_and_ranges_are_inclusive() {
    let price = |written: &str| {
        let (import, book) = imported(&format!(r#"{{"m": {{"input_cost_per_token": {written}}}}}"#));
        (import.models, book.rates().next().and_then(|rate| rate.per_token[TokenType::Input as usize]))
    };
    assert_eq!(price("1"), (1, Some(1_000_000_000_000)));
    assert_eq!(price("1.000000000001"), (0, None));
    let lengths = |from: &str| {
        let (_, book) = imported(&format!(
            r#"{{"m": {{"input_cost_per_token": 1e-6, "tiered_pricing": [{{"range": [{from}, 9e9], "input_cost_per_token": 2e-6}}]}}}}"#
        ));
        book.rates().map(|rate| rate.above_input_tokens).collect::<Vec<_>>()
    };
    assert_eq!(lengths("1e9"), [0, 1_000_000_000]);
    for not_a_length in ["1000000001", "1.5", "-1", "\"10\""] {
        assert_eq!(lengths(not_a_length), [0], "{not_a_length}");
    }
}

#[test]
fn provider_is_a_comment_of_the_entry() {
    let (import, _) = imported(
        r#"{"a": {"input_cost_per_token": 1e-6, "litellm_provider": "x y\n"}, "b": {"input_cost_per_token": 1e-6}}"#,
    );
    let names: Vec<&str> = import.file.lines().filter(|line| line.contains("- name:")).collect();
    assert_eq!(names, ["  - name: \"a\"  # xy", "  - name: \"b\""]);
}

#[test]
fn name_invalid_in_a_price_file_is_skipped() {
    for (name, is_held) in [
        ("m", true),
        (&*"m".repeat(512), true),
        (&*"m".repeat(513), false),
        ("", false),
        (" m", false),
        ("m ", false),
        ("m\\u0007m", false),
        ("m m", true),
    ] {
        let (import, book) = imported(&format!(r#"{{"{name}": {{"input_cost_per_token": 1e-6}}}}"#));
        assert_eq!(
            (import.models, book.entries().len()),
            (usize::from(is_held), usize::from(is_held)),
            "{name:?}"
        );
        assert_eq!(import.skipped.len(), usize::from(!is_held), "{name:?}: {:?}", import.skipped);
    }
}

#[test]
fn invalid_map_is_refused() {
    for json in [
        "",
        "[]",
        "{",
        "{\"m\": }",
        "null",
        "{\"m\": {\"tiered_pricing\": [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}}",
    ] {
        assert!(import(json, &options()).is_err(), "{json}");
    }
    let error = import("[]", &options()).expect_err("it is not a map");
    assert!(error.contains("expected names with values"), "{error}");
}

/// The model is the first level, its field the second.
#[test]
fn values_nest_at_most_sixteen_levels() {
    for (open, close) in [("[", "]"), ("{\"a\": ", "}")] {
        let nested =
            |levels| format!("{{\"m\": {{\"x\": {}1{}}}}}", open.repeat(levels), close.repeat(levels));
        assert!(import(&nested(14), &options()).is_ok(), "{open}");
        assert!(import(&nested(15), &options()).is_err(), "{open}");
    }
}

#[test]
#[ignore = "needs tests/prices/install"]
fn damaged_map_never_panics() {
    let (_, json) = map();
    // A part of the map with every construct; the whole would take minutes.
    let from = json.find("\"gemini-3.1-pro-preview\"").expect("it is there");
    let part = format!(
        "{{{}}}",
        json[from..from + 6000].rsplit_once("},").map_or("", |(whole, _)| whole).to_owned() + "}"
    );
    assert!(import(&part, &options()).is_ok_and(|import| import.models > 1), "{part}");
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut below = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % end as u64).unwrap_or(0)
    };
    let mut read = 0;
    for _ in 0..500 {
        let mut bytes = part.clone().into_bytes();
        for _ in 0..=below(3) {
            let at = below(bytes.len());
            match below(4) {
                0 => bytes[at] = b"{}[]\",:-+eE.0129nulltf\\ "[below(24)],
                1 => drop(bytes.drain(at..(at + below(30)).min(part.len() / 2).max(at))),
                2 => bytes.splice(at..at, *b"99999999999999999999").for_each(drop),
                _ => bytes[at] = b"0123456789"[below(10)],
            }
        }
        if let Ok(import) = import(&String::from_utf8_lossy(&bytes), &options()) {
            read += 1;
            assert!(Book::read(&import.file).is_ok(), "the imported file cannot be read:\n{}", import.file);
        }
    }
    assert!((20..480).contains(&read), "{read} of 500 were read: too few or too many mutations are valid");
}
