//! The words that a response states: its tier, speed, geography and model, and the price by them.

use price::{Book, Usage};

use super::{TokenType, Tokens, book, cost, rate, tokens};

fn prompt(count: u64) -> Tokens {
    tokens(&[(TokenType::Input, count)])
}

fn usage<'a>(model: &'a str, tokens: &'a Tokens) -> Usage<'a> {
    Usage {
        tenant: "t",
        model,
        response_model: None,
        provider: "anthropic",
        upstream: "main",
        tier: None,
        requested_tier: None,
        at_us: 0,
        tokens,
        success: true,
        processed: true,
        counted: true,
    }
}

/// A hosted provider bills the model that answered: a fallback, or the choice of a router.
#[test]
fn response_model_of_a_hosted_provider_is_charged() {
    let text = |settings: &str| {
        format!(
            "version: v\ncurrency: USD\n{settings}models:\n  - {{name: big, input: 9}}\n  - {{name: small, input: 1}}\n\
             \x20 - {{pattern: 'tiny-*', input: 0.5}}\n  - {{pattern: 'big*', input: 3}}\n  - {{pattern: '*', input: 2}}\n"
        )
    };
    let tokens = prompt(1_000_000);
    for (settings, provider, asked, answered, money) in [
        ("", "anthropic", "big", "small", "1.00"),
        ("", "openrouter", "big", "small", "1.00"),
        ("", "anthropic", "small", "big", "9.00"),
        ("", "anthropic", "big", "tiny-1", "0.50"),
        // The dated name of the requested model.
        ("", "anthropic", "big", "big-2026-01-01", "9.00"),
        ("", "anthropic", "big", "unheard-of", "9.00"),
        // A pattern for every name does not tell models apart: Azure's deployments have names of their own.
        ("", "azure.ai.openai", "big", "unheard-of", "9.00"),
        ("", "vllm", "big", "small", "9.00"),
        ("", "vllm", "small", "big", "9.00"),
        ("charge_response_model: [vllm]\n", "vllm", "big", "small", "1.00"),
        ("charge_response_model: [main]\n", "vllm", "big", "small", "1.00"),
        ("charge_response_model: [vllm]\n", "anthropic", "big", "small", "9.00"),
        ("charge_response_model: []\n", "anthropic", "big", "small", "9.00"),
    ] {
        let book = book(&text(settings));
        let usage = Usage { response_model: Some(answered), provider, ..usage(asked, &tokens) };
        assert_eq!(cost(&book, &usage).as_deref(), Ok(money), "{settings}{provider} {asked} {answered}");
    }
    let hashes: Vec<_> = ["", "charge_response_model: []\n", "charge_response_model: [vllm]\n"]
        .map(|settings| std::sync::Arc::clone(book(&text(settings)).hash()))
        .into();
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
}

const DIMENSIONS: &str = "version: v\ncurrency: USD\nmodels:\n  - name: m\n    input: 10\n    context_tiers: [{above_input_tokens: 1000000, input: 20}]\n\
     \x20   tiers:\n      batch: {multiply: 0.5}\n      fast: {multiply: 2}\n      us: {multiply: 1.1}\n\
     \x20     flex: {input: 4}\n      priority: {input: 30}\n      fast+priority: {input: 70}\n";

/// A response states a tier, a speed and a geography: each changes the price.
#[test]
fn prices_of_stated_words_are_multiplied() {
    let book = book(DIMENSIONS);
    for (stated, millions, charged, tenths) in [
        ("standard", 1, "standard", 100),
        ("fast", 1, "fast", 200),
        ("us", 1, "us", 110),
        ("fast+us", 1, "fast+us", 220),
        ("us+Fast", 1, "fast+us", 220),
        ("batch+us", 1, "batch+us", 55),
        ("batch+fast+us", 1, "batch+fast+us", 110),
        ("priority+us", 1, "priority+us", 330),
        ("flex+us", 2, "flex+us", 220),
        ("fast+us", 2, "fast+us", 440),
        // The file has a price of its own for both.
        ("fast+priority", 1, "fast+priority", 700),
        // What has no price is left out, and the rate says so.
        ("mars", 1, "standard?", 100),
        ("fast+mars", 1, "fast?", 200),
        ("fast+mars+us", 1, "fast+us?", 220),
        // Two prices that the file does not combine: the dearer.
        ("flex+priority", 1, "priority?", 300),
    ] {
        let tokens = prompt(1_000_000 * millions);
        let usage = Usage { tier: Some(stated), ..usage("m", &tokens) };
        let rate = rate(&book, &usage);
        let expected = text::money(tenths * 100_000_000_000 * i128::from(millions)).to_string();
        assert_eq!((&*rate.tier, cost(&book, &usage)), (charged, Ok(expected)), "{stated} {millions}");
        assert_eq!(rate.identify(), rate.id);
        assert_eq!(rate.is_of(stated), !rate.is_tier_unpriced(), "{stated}");
        assert_eq!(rate.id, self::rate(&book, &usage).id, "one rate for each tier");
    }
}

/// Without a price for the tier, an enforced budget counts the dearest price of the model.
#[test]
fn dearest_price_of_any_tier_is_known() {
    let tokens = prompt(1_000_000);
    let dearest = book(DIMENSIONS).dearest(&Usage { tier: Some("mars"), ..usage("m", &tokens) });
    assert_eq!(dearest, Some(70_000_000_000_000));
    assert_eq!(book(DIMENSIONS).dearest(&usage("other", &tokens)), None);
}

#[test]
fn words_of_a_tier_are_checked() {
    for (name, expected) in [
        ("fast+us", None),
        ("us+fast", Some("not a valid tier")),
        ("fast+fast", Some("not a valid tier")),
        ("fast+", Some("standard tier")),
        ("default+fast", Some("standard tier")),
        ("bacth+us", Some("no tier `bacth`")),
    ] {
        let text = format!(
            "version: v\ncurrency: USD\nmodels:\n  - {{name: m, input: 1, output: 1, tiers: {{{name}: {{multiply: 2}}}}}}\n"
        );
        let errors = Book::read(&text).err().map(|errors| errors[0].message.clone());
        assert_eq!(errors.is_some(), expected.is_some(), "{name}");
        assert!(errors.is_none_or(|error| error.contains(expected.unwrap_or_default())), "{name}");
    }
    let many: String = (0..9).map(|n| format!("t{n}: {{multiply: 2}}, ")).collect();
    let text = format!(
        "version: v\ncurrency: USD\nmodels:\n  - {{name: m, input: 1, output: 1, tiers: {{{many}}}}}\n"
    );
    assert!(Book::read(&text).unwrap_err()[0].message.contains("more than 8 tiers"));
}
