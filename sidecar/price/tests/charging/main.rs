//! Entries and tiers selected for an exchange, and the charge they give.

mod stated;

use meter::TokenType;
use price::{Book, Charge, Rate, Unpriced, Usage, instant};

type Tokens = [u64; TokenType::ALL.len()];

const NONE: Tokens = [0; TokenType::ALL.len()];

fn tokens(counts: &[(TokenType, u64)]) -> Tokens {
    let mut tokens = NONE;
    for (kind, count) in counts {
        tokens[*kind as usize] = *count;
    }
    tokens
}

fn book(text: &str) -> Book {
    match Book::read(text) {
        Ok((book, _)) => book,
        Err(problems) => panic!("{problems:#?}"),
    }
}

fn example() -> Book {
    book(include_str!("../../../../examples/prices.yaml"))
}

fn usage<'a>(model: &'a str, tokens: &'a Tokens) -> Usage<'a> {
    let at_us = instant::read("2026-11-21").expect("a date");
    Usage {
        tenant: "t",
        model,
        response_model: None,
        provider: "openai",
        upstream: "main",
        tier: None,
        requested_tier: None,
        at_us,
        tokens,
        success: true,
        processed: true,
        counted: true,
    }
}

fn cost(book: &Book, usage: &Usage<'_>) -> Result<String, Unpriced> {
    match book.charge(usage) {
        Charge::Priced { cost, .. } => Ok(text::money(cost.into()).to_string()),
        Charge::Unpriced(why) => Err(why),
    }
}

fn rate(book: &Book, usage: &Usage<'_>) -> std::sync::Arc<Rate> {
    match book.charge(usage) {
        Charge::Priced { rate, .. } => rate,
        Charge::Unpriced(why) => panic!("{}: {why:?}", usage.model),
    }
}

#[test]
fn each_token_is_charged_once_by_its_price() {
    use TokenType as T;
    let book = example();
    for (model, counts, money) in [
        ("gpt-4o", &[(T::Input, 1_000_000)][..], "2.50"),
        ("gpt-4o", &[(T::InputCached, 1_000_000)], "1.25"),
        ("gpt-4o", &[(T::Input, 600_000), (T::InputCached, 400_000), (T::Output, 1_000_000)], "12.00"),
        ("gpt-4o", &[(T::InputAudio, 10), (T::OutputAudio, 1)], "0.00048"),
        // Types without a price of their own are charged as input or output.
        ("gpt-4o", &[(T::InputImage, 600_000), (T::InputVideo, 400_000)], "2.50"),
        ("gpt-4o", &[(T::InputCacheWrite, 1_000_000)], "2.50"),
        ("gpt-4o", &[(T::InputCacheWrite1h, 1_000_000)], "2.50"),
        ("gpt-4o", &[(T::OutputReasoning, 1_000_000)], "10.00"),
        ("deep-thinker", &[(T::Output, 1_000_000), (T::OutputReasoning, 1_000_000)], "3.295"),
        ("deep-thinker", &[], "0.005"),
        (
            "claude-sonnet-4-6",
            &[(T::Input, 1), (T::InputCached, 1), (T::InputCacheWrite, 1), (T::Output, 1)],
            "0.00002205",
        ),
        ("claude-sonnet-4-6", &[(T::InputCacheWrite, 1_000_000), (T::InputCacheWrite1h, 1_000_000)], "19.50"),
        ("text-embedding-3-small", &[(T::Input, 1)], "0.00000002"),
    ] {
        let tokens = tokens(counts);
        assert_eq!(cost(&book, &usage(model, &tokens)).as_deref(), Ok(money), "{model} {counts:?}");
    }
}

/// A client asks for the lifetime of a cache: it cannot make its exchanges unpriced by that.
#[test]
fn cache_writes_of_one_hour_have_a_price_where_others_have() {
    let text =
        "version: v\ncurrency: USD\nmodels:\n  - {pattern: m, input: 3, output: 15, cache_write: 3.75}\n";
    let (book, _) = Book::read(text).unwrap();
    let tokens = tokens(&[(TokenType::Input, 1_000_000), (TokenType::InputCacheWrite1h, 2_000_000)]);
    assert_eq!(cost(&book, &usage("m", &tokens)).as_deref(), Ok("10.50"));
}

#[test]
fn missing_price_is_unpriced_not_free() {
    use TokenType as T;
    let book = example();
    let huge = tokens(&[(T::Output, u64::MAX), (T::Input, u64::MAX)]);
    let audio = tokens(&[(T::Output, 5), (T::OutputAudio, 1)]);
    let drawn = tokens(&[(T::Output, 5), (T::OutputImage, 1)]);
    let some = tokens(&[(T::Input, 1)]);
    for (model, tokens, why) in [
        ("gpt-5", &some, Unpriced::Model),
        ("gpt-4o-mini", &some, Unpriced::Model),
        ("GPT-4o", &some, Unpriced::Model),
        ("", &some, Unpriced::Model),
        // Served by vLLM, or by the upstream `spot` only.
        ("qwen3-8b", &some, Unpriced::Model),
        ("claude-sonnet-4", &audio, Unpriced::TokenType),
        ("gpt-4o", &drawn, Unpriced::TokenType),
        ("gpt-4o", &huge, Unpriced::Overflow),
    ] {
        assert_eq!(cost(&book, &usage(model, tokens)), Err(why), "{model}");
    }
    // Without a token of the type, its missing price has no effect.
    assert_eq!(cost(&book, &usage("claude-sonnet-4", &NONE)).as_deref(), Ok("0.00"));
}

#[test]
fn request_price_is_charged_for_2xx_only() {
    let book = example();
    let failed = Usage { success: false, ..usage("deep-thinker", &NONE) };
    assert_eq!(cost(&book, &failed).as_deref(), Ok("0.00"));
}

/// A client that leaves before the response does not pay the request price; the cost of its prompt is unknown.
#[test]
fn uncounted_prompt_is_unpriced() {
    let book = example();
    let sent = Usage { success: false, counted: false, ..usage("gpt-4o", &NONE) };
    assert_eq!(cost(&book, &sent), Err(Unpriced::Uncounted));
    let unsent = Usage { processed: false, ..sent };
    assert_eq!(cost(&book, &unsent).as_deref(), Ok("0.00"));
}

#[test]
fn prices_in_force_at_the_end_apply() {
    let book = example();
    let tokens = tokens(&[(TokenType::Input, 1_000_000)]);
    let day = instant::read("2026-10-01").expect("a date");
    for (at_us, money) in [(day - 1, "5.00"), (day, "2.50"), (i64::MIN, "5.00"), (i64::MAX - 1, "2.50")] {
        let usage = Usage { at_us, ..usage("gpt-4o", &tokens) };
        assert_eq!(cost(&book, &usage).as_deref(), Ok(money), "{at_us}");
    }
    // The alias was added with the second prices.
    let early = Usage { at_us: day - 1, ..usage("gpt-4o-2024-11-20", &tokens) };
    assert_eq!(cost(&book, &early), Err(Unpriced::Model));
    let late = Usage { at_us: day, ..early };
    assert_eq!(cost(&book, &late).as_deref(), Ok("2.50"));
}

#[test]
fn ended_prices_stay_ended() {
    let book = book(
        "version: v\ncurrency: EUR\nmodels:\n  - {name: m, input: 1}\n  \
         - {name: m, input: 2, valid_from: 2026-01-01, valid_until: 2026-02-01}\n  \
         - {pattern: '*', input: 9, valid_from: 2026-03-01}\n",
    );
    let tokens = tokens(&[(TokenType::Input, 1_000_000)]);
    for (at, money) in [
        ("2025-12-31T23:59:59.999999Z", Ok("1.00")),
        ("2026-01-01", Ok("2.00")),
        ("2026-02-01", Err(Unpriced::Model)),
        ("2026-03-01", Ok("9.00")),
    ] {
        let usage = Usage { at_us: instant::read(at).expect("an instant"), ..usage("m", &tokens) };
        assert_eq!(cost(&book, &usage).as_deref().map_err(|why| *why), money, "{at}");
    }
}

#[test]
fn most_specific_entry_applies() {
    let book = book(
        "version: v\ncurrency: EUR\nmodels:\n\
         \x20 - {pattern: '*', input: 1}\n\
         \x20 - {pattern: 'a*', input: 2}\n\
         \x20 - {pattern: 'a*z', input: 3}\n\
         \x20 - {name: abz, input: 4}\n\
         \x20 - {pattern: '*', provider: p, input: 5}\n\
         \x20 - {name: abz, provider: p, input: 6}\n\
         \x20 - {pattern: '*', upstream: u, input: 7}\n\
         \x20 - {name: abz, upstream: u, input: 8}\n\
         \x20 - {pattern: '*', upstream: u, provider: p, input: 9}\n",
    );
    let tokens = tokens(&[(TokenType::Input, 1_000_000)]);
    for (model, provider, upstream, money) in [
        ("b", "", "", "1.00"),
        ("ab", "", "", "2.00"),
        ("az", "", "", "3.00"),
        ("abz", "", "", "4.00"),
        ("b", "p", "", "5.00"),
        ("abz", "p", "", "6.00"),
        ("b", "", "u", "7.00"),
        ("abz", "", "u", "8.00"),
        ("abz", "p", "u", "9.00"),
    ] {
        let usage = Usage { provider, upstream, ..usage(model, &tokens) };
        assert_eq!(cost(&book, &usage).as_deref(), Ok(money), "{model} {provider} {upstream}");
    }
}

#[test]
fn example_file_resolves_aliases_and_places() {
    let book = example();
    let tokens = tokens(&[(TokenType::Input, 1_000_000), (TokenType::InputCached, 1_000_000)]);
    for (model, provider, upstream, money) in [
        ("qwen3-8b", "vllm", "main", Ok("0.10")),
        ("Qwen/Qwen3-8B", "vllm", "main", Ok("0.10")),
        ("qwen3-8b", "vllm", "spot", Ok("0.10")),
        ("qwen3-8b", "openai", "spot", Ok("0.10")),
        ("qwen3-8b-awq", "openai", "spot", Err(Unpriced::Model)),
    ] {
        let usage = Usage { provider, upstream, ..usage(model, &tokens) };
        assert_eq!(
            cost(&book, &usage).as_deref().map_err(|why| *why),
            money,
            "{model} {provider} {upstream}"
        );
    }
    let spot = Usage { upstream: "spot", ..usage("qwen3-8b", &tokens) };
    assert_eq!(rate(&book, &spot).per_token[TokenType::InputCached as usize], Some(50_000));
}

#[test]
fn context_tier_applies_to_the_whole_request() {
    use TokenType as T;
    let book = example();
    for (counts, above, money) in [
        (&[(T::Input, 200_000), (T::Output, 1_000_000)][..], 0, "15.60"),
        (&[(T::Input, 200_001), (T::Output, 1_000_000)], 200_000, "23.700006"),
        // Cached and written tokens belong to the prompt, generated ones do not.
        (&[(T::InputCached, 200_000), (T::InputCacheWrite, 1)], 200_000, "0.1200075"),
        (&[(T::Input, 1), (T::Output, 300_000)], 0, "4.500003"),
    ] {
        let tokens = tokens(counts);
        let usage = usage("claude-sonnet-4", &tokens);
        assert_eq!(cost(&book, &usage).as_deref(), Ok(money), "{counts:?}");
        assert_eq!(rate(&book, &usage).above_input_tokens, above, "{counts:?}");
        let halved = Usage { tier: Some("batch"), ..usage };
        let both = [cost(&book, &usage), cost(&book, &halved)]
            .map(|cost| cost.expect("priced").parse::<f64>().expect("a number"));
        assert!((both[0] / 2.0 - both[1]).abs() < 1e-9, "{both:?}");
    }
}

#[test]
fn tier_of_the_response_selects_the_prices() {
    let book = example();
    let tokens = tokens(&[(TokenType::Input, 1_000_000)]);
    for (tier, charged, money) in [
        (None, "standard", "2.50"),
        (Some(""), "standard", "2.50"),
        (Some("default"), "standard", "2.50"),
        (Some("auto"), "standard", "2.50"),
        (Some("Standard"), "standard", "2.50"),
        (Some("batch"), "batch", "1.25"),
        (Some("BATCH "), "batch", "1.25"),
        (Some("priority"), "priority", "4.25"),
        // The entry has no such prices: the rate is marked.
        (Some("flex"), "standard?", "2.50"),
    ] {
        let usage = Usage { tier, ..usage("gpt-4o", &tokens) };
        assert_eq!(cost(&book, &usage).as_deref(), Ok(money), "{tier:?}");
        assert_eq!(&*rate(&book, &usage).tier, charged, "{tier:?}");
    }
}

#[test]
fn requested_tier_never_lowers_the_price() {
    let book = example();
    let tokens = tokens(&[(TokenType::Input, 1_000_000)]);
    for (said, asked, charged, money) in [
        (None, "batch", "standard", "2.50"),
        (None, "priority", "priority", "4.25"),
        (None, "flex", "standard", "2.50"),
        (None, "default", "standard", "2.50"),
        // The tier of the response applies, whatever the request names.
        (Some("batch"), "priority", "batch", "1.25"),
        (Some("batch"), "batch", "batch", "1.25"),
        (Some("default"), "priority", "standard", "2.50"),
        (Some("flex"), "priority", "standard?", "2.50"),
    ] {
        let usage = Usage { tier: said, requested_tier: Some(asked), ..usage("gpt-4o", &tokens) };
        assert_eq!(cost(&book, &usage).as_deref(), Ok(money), "{said:?} {asked}");
        assert_eq!(&*rate(&book, &usage).tier, charged, "{said:?} {asked}");
    }
}

#[test]
fn unknown_name_is_charged_as_the_response_model() {
    let book = example();
    let tokens = tokens(&[(TokenType::Input, 1_000_000)]);
    for (asked, answered, money) in [
        ("no-such-model", Some("gpt-4o"), Ok("2.50")),
        ("no-such-model", Some("nor-this"), Err(Unpriced::Model)),
        ("no-such-model", None, Err(Unpriced::Model)),
        ("deep-thinker", Some("nor-this"), Ok("0.555")),
        // If both names have entries, the dearer applies: a server may answer to any name.
        ("deep-thinker", Some("gpt-4o"), Ok("2.50")),
        ("gpt-4o", Some("deep-thinker"), Ok("2.50")),
        ("gpt-4o", Some("gpt-4o"), Ok("2.50")),
    ] {
        let usage = Usage { response_model: answered, provider: "sglang", ..usage(asked, &tokens) };
        assert_eq!(cost(&book, &usage).as_deref().map_err(|why| *why), money, "{asked} {answered:?}");
    }
}

#[test]
fn rate_matches_every_spelling_of_its_tier() {
    let book = example();
    let tokens = tokens(&[]);
    let standard = rate(&book, &usage("gpt-4o", &tokens));
    let batch = rate(&book, &Usage { tier: Some("batch"), ..usage("gpt-4o", &tokens) });
    for (tier, of_standard, of_batch) in [
        ("default", true, false),
        ("Standard ", true, false),
        ("", true, false),
        ("Batch", false, true),
        ("flex", false, false),
    ] {
        assert_eq!((standard.is_of(tier), batch.is_of(tier)), (of_standard, of_batch), "{tier}");
    }
}

#[test]
fn missing_tier_prices_follow_the_context_length() {
    use TokenType as T;
    let book = book(
        "version: v\ncurrency: EUR\nmodels:\n\
         \x20 - name: m\n    input: 2\n    output: 8\n    cached_input: 1\n\
         \x20   context_tiers: [{above_input_tokens: 100, input: 4, output: 12}, {above_input_tokens: 200, input: 6}]\n\
         \x20   tiers:\n      batch: {input: 1}\n\
         \x20     priority: {input: 3, output: 9, context_tiers: [{above_input_tokens: 150, input: 5}]}\n",
    );
    let million =
        |at: usize, rate: &Rate| text::per_million(rate.per_token[at].expect("a price").into()).to_string();
    for (tier, prompt, above, input, output) in [
        (None, 100, 0, "2.00", "8.00"),
        (None, 101, 100, "4.00", "12.00"),
        (None, 201, 200, "6.00", "12.00"),
        (Some("batch"), 100, 0, "1.00", "8.00"),
        (Some("batch"), 101, 100, "4.00", "12.00"),
        (Some("priority"), 100, 0, "3.00", "9.00"),
        (Some("priority"), 101, 100, "4.00", "12.00"),
        (Some("priority"), 151, 150, "5.00", "12.00"),
        (Some("priority"), 201, 200, "6.00", "12.00"),
    ] {
        let tokens = tokens(&[(T::Input, prompt)]);
        let rate = rate(&book, &Usage { tier, ..usage("m", &tokens) });
        assert_eq!(rate.above_input_tokens, above, "{tier:?} {prompt}");
        assert_eq!(million(T::Input as usize, &rate), input, "{tier:?} {prompt}");
        assert_eq!(million(T::Output as usize, &rate), output, "{tier:?} {prompt}");
    }
}

#[test]
fn rate_id_is_stable() {
    let text =
        "version: v1\ncurrency: EUR\nmodels:\n  - {name: m, input: 1.5, output: 2, per_request: 0.001}\n";
    let rate = rate(&book(text), &usage("m", &NONE));
    assert_eq!(rate.id, rate.identify());
    let hex: String = rate.id.iter().map(|byte| format!("{byte:02x}")).collect();
    // Ledgers contain these ids: a change here changes the identity of every rate.
    assert_eq!((&*rate.book, hex.as_str()), GOLDEN);
    let of_another_book = Rate { version: "another".into(), book: "another".into(), ..(*rate).clone() };
    assert_eq!(of_another_book.identify(), rate.id);
    for other in [
        Rate { entry: "another".into(), ..(*rate).clone() },
        Rate { tier: "another".into(), ..(*rate).clone() },
        Rate { above_input_tokens: 1, ..(*rate).clone() },
        Rate { currency: price::Currency::USD, ..(*rate).clone() },
        Rate { per_request: 2, ..(*rate).clone() },
    ] {
        assert_ne!(other.identify(), rate.id, "{other:?}");
    }
    for at in 0..TokenType::ALL.len() {
        for price in [None, Some(0), Some(7)] {
            let mut other = (*rate).clone();
            other.per_token[at] = price;
            let prices = |rate: &Rate| TokenType::ALL.map(|kind| rate.price_of(kind));
            assert_eq!(other.identify() == rate.id, prices(&other) == prices(&rate), "{other:?}");
        }
    }
}

const GOLDEN: (&str, &str) =
    ("d7dc6f2ee66cbd1420d2e604794253bd98bca2ec62a5fd7b137c596da035abc8", "ed8a9945bd003e16e9dea025fa74f6ea");

#[test]
fn book_hash_covers_meaning_not_layout() {
    const FILE: &str = "version: v\ncurrency: EUR\nmodels:\n  - {name: a, aliases: [c, b], input: 1.5}\n  - {name: z, output: 2}\n";
    let hash = |text: &str| book(text).hash().to_string();
    let first = hash(FILE);
    assert_eq!(first.len(), 64);
    for (same, text) in [
        (
            true,
            "# why\ncurrency: EUR\nversion: v\nunit: per_million\nmodels:\n- name: z\n  output: 2.0\n- input: 15e-1\n  name: a\n  aliases: [b, c]\n  note: hello\n",
        ),
        (
            true,
            "version: v\ncurrency: EUR\nunit: per_token\nmodels:\n  - {name: a, aliases: [c, b], input: 0.0000015}\n  - {name: z, output: 0.000002}\n",
        ),
        // Prices equal to the derived ones may be written.
        (
            true,
            "version: v\ncurrency: EUR\nmodels:\n  - {name: a, aliases: [c, b], input: 1.5, cached_input: 1.5}\n  - {name: z, output: 2}\n",
        ),
        (
            false,
            "version: w\ncurrency: EUR\nmodels:\n  - {name: a, aliases: [c, b], input: 1.5}\n  - {name: z, output: 2}\n",
        ),
        (
            false,
            "version: v\ncurrency: USD\nmodels:\n  - {name: a, aliases: [c, b], input: 1.5}\n  - {name: z, output: 2}\n",
        ),
        (
            false,
            "version: v\ncurrency: EUR\nmodels:\n  - {name: a, aliases: [c], input: 1.5}\n  - {name: z, output: 2}\n",
        ),
        (
            false,
            "version: v\ncurrency: EUR\nmodels:\n  - {name: a, aliases: [c, b], input: 1.500001}\n  - {name: z, output: 2}\n",
        ),
        (
            false,
            "version: v\ncurrency: EUR\nmodels:\n  - {name: a, aliases: [c, b], input: 1.5, provider: p}\n  - {name: z, output: 2}\n",
        ),
        (
            false,
            "version: v\ncurrency: EUR\nmodels:\n  - {name: a, aliases: [c, b], input: 1.5, upstream: p}\n  - {name: z, output: 2}\n",
        ),
        (
            false,
            "version: v\ncurrency: EUR\nmodels:\n  - {name: a, aliases: [c, b], input: 1.5, per_request: 1}\n  - {name: z, output: 2}\n",
        ),
        (
            false,
            "version: v\ncurrency: EUR\nmodels:\n  - {name: a, aliases: [c, b], input: 1.5}\n  - {pattern: z, output: 2}\n",
        ),
        (
            false,
            "version: v\ncurrency: EUR\nmodels:\n  - {name: a, aliases: [c, b], input: 1.5}\n  - {name: z, output: 2, valid_from: 2026-01-01}\n",
        ),
    ] {
        assert_eq!(hash(text) == first, same, "{text}");
    }
}

#[test]
fn explicit_image_prices_are_charged() {
    use TokenType as T;
    let text = "version: v\ncurrency: USD\nunit: per_million\nmodels:\n  - {name: m, input: 2, output: 8, \
                input_image: 3, input_video: 5, output_image: 40}\n";
    let (book, _) = Book::read(text).unwrap();
    let counts = [(T::Input, 1_000_000), (T::InputImage, 1_000_000), (T::InputVideo, 1_000_000)];
    assert_eq!(cost(&book, &usage("m", &tokens(&counts))).as_deref(), Ok("10.00"));
    let counts = [(T::Output, 1_000_000), (T::OutputImage, 1_000_000)];
    assert_eq!(cost(&book, &usage("m", &tokens(&counts))).as_deref(), Ok("48.00"));
}

#[test]
fn cached_audio_and_images_cost_their_own_price_or_that_of_uncached_ones() {
    use TokenType as T;
    let counts =
        [(T::InputCached, 1_000_000), (T::InputCachedAudio, 1_000_000), (T::InputCachedImage, 1_000_000)];
    for (prices, expected) in [
        (
            "input: 4, cached_input: 0.40, input_audio: 32, cached_input_audio: 0.50, cached_input_image: 1",
            Ok("1.90"),
        ),
        ("input: 4, cached_input: 0.40, input_audio: 32, input_image: 5", Ok("32.80")),
        ("input: 4, cached_input: 0.40, input_audio: 32", Ok("32.80")),
        ("input: 4, cached_input: 0.40", Err(Unpriced::TokenType)),
    ] {
        let book =
            book(&format!("version: v\ncurrency: USD\nmodels:\n  - {{name: m, output: 8, {prices}}}\n"));
        assert_eq!(cost(&book, &usage("m", &tokens(&counts))).as_deref(), expected.as_deref(), "{prices}");
    }
}

/// A rate from before images had prices equals the rate of today: it has the same id, and charges the same.
#[test]
fn derived_image_prices_leave_rate_ids_alone() {
    let (book, _) =
        Book::read("version: v\ncurrency: USD\nmodels:\n  - {name: m, input: 2, output: 8}\n").unwrap();
    let counts = tokens(&[(TokenType::InputImage, 7)]);
    let Charge::Priced { rate, cost } = book.charge(&usage("m", &counts)) else { panic!("it has a price") };
    let mut older = Rate::clone(&rate);
    older.per_token[TokenType::InputImage as usize] = None;
    older.per_token[TokenType::InputVideo as usize] = None;
    older.per_token[TokenType::InputCachedImage as usize] = None;
    assert_eq!(older.identify(), rate.id);
    assert_eq!(older.cost(&counts, true), Ok(cost));
    let mut dearer = Rate::clone(&rate);
    dearer.per_token[TokenType::InputImage as usize] = Some(1);
    assert_ne!(dearer.identify(), rate.id);
}
