//! Entries of a book: titles, tiers of their own, and choices that a client has by a model's name.

use meter::TokenType;
use price::{Book, Charge, Currency, Unpriced, Usage, WarningKind, instant, is_hosted};

fn book(entries: &[&str]) -> Book {
    let text = format!("version: v\ncurrency: USD\nmodels:\n  - {}\n", entries.join("\n  - "));
    match Book::read(&text) {
        Ok((book, _)) => book,
        Err(errors) => panic!("{text}: {errors:#?}"),
    }
}

#[test]
fn title_names_place_and_time() {
    for (entry, title) in [
        ("{name: m, input: 1}", "m"),
        ("{pattern: m*, input: 1}", "m* (pattern)"),
        ("{name: m, provider: p, upstream: u, input: 1}", "m (provider p, upstream u)"),
        (
            "{name: m, valid_from: 2026-10-01, valid_until: 2026-10-02T03:00:00Z, input: 1}",
            "m (from 2026-10-01, until 2026-10-02T03:00:00Z)",
        ),
        ("{name: m, valid_from: 1970-01-01, input: 1}", "m (from 1970-01-01)"),
    ] {
        assert_eq!(book(&[entry]).entries()[0].title(), title);
    }
}

#[test]
fn entry_has_standard_and_priced_tiers() {
    let book = book(&["{name: m, input: 1, tiers: {batch: {input: 2}}}"]);
    let entry = &book.entries()[0];
    for (tier, has) in [
        ("", true),
        (" default ", true),
        ("AUTO", true),
        ("batch", true),
        (" Batch ", true),
        ("flex", false),
        ("b", false),
    ] {
        assert_eq!(entry.has_tier(tier), has, "{tier:?}");
    }
}

#[test]
fn client_chooses_by_name_among_several_entries() {
    for (entries, provider, upstream, is_chosen) in [
        (&["{name: a, input: 1}"][..], None, "u", false),
        (&["{name: a, input: 1}", "{name: b, input: 2}"], None, "u", true),
        // One model at two times is one choice.
        (&["{name: a, input: 1}", "{name: a, valid_from: 2026-10-01, input: 2}"], None, "u", false),
        (&["{name: a, input: 1}", "{pattern: a, input: 2}"], None, "u", true),
        // Entries of other places are no choice.
        (&["{name: a, input: 1}", "{name: b, upstream: v, input: 2}"], None, "u", false),
        (&["{name: a, input: 1}", "{name: b, upstream: u, input: 2}"], None, "u", true),
        (&["{name: a, input: 1}", "{name: b, provider: p, input: 2}"], Some("q"), "u", false),
        (&["{name: a, input: 1}", "{name: b, provider: p, input: 2}"], Some("p"), "u", true),
        (&["{name: a, input: 1}", "{name: b, provider: p, input: 2}"], None, "u", true),
        // An entry of the upstream for all names precedes those of all upstreams, but not its own.
        (&["{name: a, input: 1}", "{pattern: '*', upstream: u, input: 2}"], None, "u", false),
        (
            &["{name: a, input: 1}", "{pattern: '*', upstream: v, input: 2}", "{name: b, input: 1}"],
            None,
            "u",
            true,
        ),
        (&["{name: a, input: 1}", "{pattern: 'x*', upstream: u, input: 2}"], None, "u", true),
        (&["{name: a, input: 1}", "{pattern: '*', input: 2}"], None, "u", true),
        (
            &["{name: a, input: 1}", "{pattern: '*', upstream: u, provider: p, input: 2}"],
            Some("p"),
            "u",
            true,
        ),
        (&["{name: a, upstream: u, input: 1}", "{pattern: '*', upstream: u, input: 2}"], None, "u", true),
    ] {
        assert_eq!(
            book(entries).is_chosen_by_name(provider, upstream),
            is_chosen,
            "{entries:?} {provider:?}"
        );
    }
}

/// A price that ends at an instant does not hold at it.
#[test]
fn ended_covers_the_instant_of_the_end() {
    let at = |text: &str| instant::read(text).expect("an instant");
    let book = book(&[
        "{name: m, valid_until: 2026-10-01, input: 5}",
        "{pattern: p*, valid_until: 2026-10-02, input: 5}",
    ]);
    for (instant, ended) in [
        ("2026-09-30T23:59:59Z", &[][..]),
        ("2026-10-01", &["m"]),
        ("2026-10-01T23:59:59Z", &["m"]),
        ("2026-10-02", &["m", "p*"]),
    ] {
        let warnings = book.ended(at(instant));
        let names: Vec<&str> =
            warnings.iter().filter_map(|warning| warning.message.split('`').nth(1)).collect();
        assert_eq!(names, ended, "{instant}");
    }
}

/// A pattern that ends at the same instant covers no model from then on; one that ends later does.
#[test]
fn pattern_in_force_covers_ended_prices() {
    let at_us = instant::read("2026-10-01").expect("a date");
    for (pattern, is_covered) in [
        ("{pattern: '*', valid_until: 2026-10-01, input: 5}", false),
        ("{pattern: '*', valid_until: 2026-10-01T00:00:01Z, input: 5}", true),
        ("{pattern: 'n*', input: 5}", false),
    ] {
        let book = book(&["{name: m, valid_until: 2026-10-01, input: 5}", pattern]);
        let is_told = book.ended(at_us).iter().any(|warning| warning.message.contains("`m`"));
        assert_eq!(is_told, !is_covered, "{pattern}");
    }
}

fn usage<'a>(tokens: &'a [u64; TokenType::ALL.len()], response: Option<&'a str>) -> Usage<'a> {
    Usage {
        tenant: "t",
        model: "request",
        response_model: response,
        provider: "p",
        upstream: "u",
        tier: None,
        requested_tier: None,
        at_us: 0,
        tokens,
        success: true,
        processed: true,
        counted: true,
    }
}

/// Of the entries of the requested and of the responding model, the dearer charge applies: a known cost before a
/// missing price, and a sum too large for a charge before every other.
#[test]
fn dearer_of_two_models_applies() {
    let mut audio = [0; TokenType::ALL.len()];
    audio[TokenType::InputAudio as usize] = 1_000_000;
    let mut huge = [0; TokenType::ALL.len()];
    huge[TokenType::InputAudio as usize] = u64::MAX;
    let (priced, cheaper, unpriced) =
        ("per_request: 2, input_audio: 1", "per_request: 1, input_audio: 1", "per_request: 5, input: 1");
    for (tokens, request, response, expected) in [
        (&audio, priced, cheaper, Ok(3_000_000_000_000)),
        (&audio, cheaper, priced, Ok(3_000_000_000_000)),
        (&audio, priced, priced, Ok(3_000_000_000_000)),
        (&audio, unpriced, priced, Ok(3_000_000_000_000)),
        (&audio, priced, unpriced, Ok(3_000_000_000_000)),
        (&audio, unpriced, unpriced, Err(Unpriced::TokenType)),
        (&huge, priced, unpriced, Err(Unpriced::Overflow)),
        (&huge, unpriced, priced, Err(Unpriced::Overflow)),
        (&huge, "input_audio: 0", priced, Err(Unpriced::Overflow)),
        (&huge, priced, "input_audio: 0", Err(Unpriced::Overflow)),
    ] {
        let (first, second) =
            (format!("{{name: request, {request}}}"), format!("{{name: response, {response}}}"));
        let charge = book(&[&first, &second]).charge(&usage(tokens, Some("response")));
        let cost = match &charge {
            Charge::Priced { cost, .. } => Ok(*cost),
            Charge::Unpriced(reason) => Err(*reason),
        };
        assert_eq!(cost, expected, "{request}, {response}");
        assert_eq!(charge.cost(), expected.ok(), "{request}, {response}");
    }
}

/// At equal costs, the first entry gives the rate, so that a row names the requested model.
#[test]
fn equal_costs_keep_the_requested_model() {
    let book = book(&["{name: request, per_request: 1}", "{name: response, per_request: 1}"]);
    let tokens = [0; TokenType::ALL.len()];
    let Charge::Priced { rate, .. } = book.charge(&usage(&tokens, Some("response"))) else {
        panic!("it has a price")
    };
    assert_eq!(&*rate.entry, "request");
}

#[test]
fn charge_is_of_the_tier_of_its_rate() {
    let book = book(&["{name: request, input: 1, tiers: {batch: {input: 2}}}"]);
    let tokens = [0; TokenType::ALL.len()];
    let charge = book.charge(&Usage { tier: Some("batch"), ..usage(&tokens, None) });
    assert!(charge.is_of("batch") && !charge.is_of("standard"));
    assert!(!Charge::Unpriced(Unpriced::Model).is_of("standard"));
}

/// An uncounted exchange of a model with free tokens costs its request price; if a token has a price, it is unpriced.
#[test]
fn uncounted_exchange_has_price_if_tokens_are_free() {
    let tokens = [0; TokenType::ALL.len()];
    for (entry, expected) in [
        ("{name: request, input: 0, output: 0}", Ok(0)),
        ("{name: request, input: 0, output: 0.000001}", Err(Unpriced::Uncounted)),
        ("{name: request, per_request: 0}", Ok(0)),
        // A request price is known without counts; the cost of the tokens is not part of it.
        ("{name: request, per_request: 1, input: 1}", Ok(1_000_000_000_000)),
    ] {
        let charge = book(&[entry]).charge(&Usage { counted: false, ..usage(&tokens, None) });
        let cost = match charge {
            Charge::Priced { cost, .. } => Ok(cost),
            Charge::Unpriced(reason) => Err(reason),
        };
        assert_eq!(cost, expected, "{entry}");
    }
}

#[test]
fn reasons_and_currencies_have_stable_names() {
    let names = Unpriced::ALL.map(Unpriced::name);
    assert_eq!(names, ["no_book", "model", "token_type", "overflow", "uncounted", "leg"]);
    assert_eq!(Currency::USD.code(), "USD");
}

#[test]
fn only_hosted_providers_are_trusted() {
    let trusted = ["openai", "anthropic", "gcp.vertex_ai", "openrouter", "vllm", "OpenAI", ""].map(is_hosted);
    assert_eq!(trusted, [true, true, true, true, false, false, false]);
}

fn warnings(kind: WarningKind, entries: &[impl AsRef<str>]) -> usize {
    let entries: String = entries.iter().map(|entry| format!("  - {}\n", entry.as_ref())).collect();
    let (_, warnings) =
        Book::read(&format!("version: v\ncurrency: USD\nmodels:\n{entries}")).expect("a book");
    warnings.iter().filter(|warning| warning.kind == kind).count()
}

/// Fifteen patterns make 105 pairs.
#[test]
fn warnings_of_a_kind_end_at_a_hundred() {
    let patterns = |count: u8| -> Vec<String> {
        (b'a'..b'a' + count).map(|c| format!("{{pattern: '*{}*', input: 1}}", char::from(c))).collect()
    };
    assert_eq!([14, 15].map(|count| warnings(WarningKind::Ambiguous, &patterns(count))), [91, 100]);
    let aliases = |count: u32| {
        let names: Vec<String> = (0..count).map(|number| format!("a{number}")).collect();
        let first = format!("{{name: m, aliases: [{}], input: 1}}", names.join(", "));
        [first, "{name: m, valid_from: 2026-10-01, input: 2}".to_owned()]
    };
    assert_eq!([99, 101].map(|count| warnings(WarningKind::LeftBehind, &aliases(count))), [99, 100]);
}

/// The warning names the entry that does not apply, wherever both patterns stand.
#[test]
fn patterns_are_ambiguous_only_at_one_place_and_time() {
    for (entries, expected) in [
        (&["{pattern: a*c, input: 1, output: 1}", "{pattern: ab*, input: 1, output: 1}"][..], 1),
        (&["{pattern: a*c, input: 1, output: 1}", "{pattern: b*c, input: 1, output: 1}"], 0),
        // One has more literal characters.
        (&["{pattern: a*c, input: 1, output: 1}", "{pattern: abc*, input: 1, output: 1}"], 0),
        (
            &[
                "{pattern: a*c, provider: p, input: 1, output: 1}",
                "{pattern: ab*, provider: q, input: 1, output: 1}",
            ],
            0,
        ),
        (
            &[
                "{pattern: a*c, upstream: p, input: 1, output: 1}",
                "{pattern: ab*, upstream: q, input: 1, output: 1}",
            ],
            0,
        ),
        (
            &[
                "{pattern: a*c, provider: p, input: 1, output: 1}",
                "{pattern: ab*, upstream: q, input: 1, output: 1}",
            ],
            0,
        ),
        (
            &[
                "{pattern: a*c, valid_until: 2026-10-01, input: 1, output: 1}",
                "{pattern: ab*, valid_from: 2026-10-01, input: 1, output: 1}",
            ],
            0,
        ),
        (
            &[
                "{pattern: a*c, valid_from: 2026-10-01, input: 1, output: 1}",
                "{pattern: ab*, valid_until: 2026-10-01, input: 1, output: 1}",
            ],
            0,
        ),
        (
            &[
                "{pattern: a*c, valid_until: 2026-10-01T00:00:01Z, input: 1, output: 1}",
                "{pattern: ab*, valid_from: 2026-10-01, input: 1, output: 1}",
            ],
            1,
        ),
    ] {
        assert_eq!(warnings(WarningKind::Ambiguous, entries), expected, "{entries:?}");
    }
}
