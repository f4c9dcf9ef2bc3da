//! Charges against an oracle that applies the rules of `prices.md` with rationals of any
//! size: sums, rounding, tiers and overflow.

use std::fmt::Write;

use meter::TokenType;
use num_bigint::BigInt;
use num_rational::BigRational;
use price::{Book, Charge, Unpriced, Usage, key_of};
use proptest::prelude::*;

const TYPES: usize = TokenType::ALL.len();

/// Prices as in a file: hundred-millionths of a unit for a million tokens, so that some must be rounded.
type Written = [Option<u64>; TYPES];

#[derive(Clone, Debug)]
struct Model {
    own: Written,
    per_request: Option<u64>,
    contexts: Vec<(u64, Written)>,
    /// Thousandths.
    batch: u64,
    priority: Written,
    priority_contexts: Vec<(u64, Written)>,
}

const PLACES: u32 = 8;

fn decimal(digits: u64, places: u32) -> String {
    let one = 10_u64.pow(places);
    format!("{}.{:0width$}", digits / one, digits % one, width = places as usize)
}

fn keys(prices: &Written) -> String {
    let mut text = String::new();
    for (kind, price) in TokenType::ALL.into_iter().zip(prices) {
        if let Some(price) = price {
            let _ = write!(text, "{}: {}, ", key_of(kind), decimal(*price, PLACES));
        }
    }
    text
}

fn contexts(tiers: &[(u64, Written)]) -> String {
    let items =
        tiers.iter().map(|(above, prices)| format!("{{{}above_input_tokens: {above}}}", keys(prices)));
    format!("context_tiers: [{}]", items.collect::<Vec<_>>().join(", "))
}

fn file(model: &Model) -> String {
    let request =
        model.per_request.map_or(String::new(), |price| format!("per_request: {}, ", decimal(price, 12)));
    format!(
        "version: v\ncurrency: EUR\nmodels:\n  - {{name: m, {}{request}{}, tiers: {{batch: {{multiply: {}}}, priority: {{{}{}}}}}}}\n",
        keys(&model.own),
        contexts(&model.contexts),
        decimal(model.batch, 3),
        keys(&model.priority),
        contexts(&model.priority_contexts),
    )
}

fn rational(number: u64) -> BigRational {
    BigRational::from(BigInt::from(number))
}

/// Rounds to a whole number, ties to the even one.
fn half_even(number: &BigRational) -> BigRational {
    let floor = number.floor();
    let rest = number - &floor;
    let half = BigRational::new(1.into(), 2.into());
    let odd = !(&floor / BigInt::from(2)).is_integer();
    if rest > half || rest == half && odd { floor + BigInt::from(1) } else { floor }
}

/// Converts to pico-units for a token.
fn pico(written: u64) -> BigRational {
    half_even(&(rational(written) / BigInt::from(100)))
}

/// The cost by the rules: all of it in pico-units, if every token has a price.
fn expected(model: &Model, tier: &str, tokens: &[u64; TYPES], success: bool) -> Option<BigRational> {
    let prompt: u128 = TokenType::ALL
        .into_iter()
        .zip(tokens)
        .filter(|(kind, _)| kind.is_input())
        .map(|(_, n)| u128::from(*n))
        .sum();
    let named = |prices: &Written, kind: TokenType| prices[kind as usize];
    let mut layers = vec![&model.own];
    if tier == "priority" {
        layers.push(&model.priority);
    }
    let none = Vec::new();
    let of_tier = if tier == "priority" { &model.priority_contexts } else { &none };
    let mut lengths: Vec<(u64, u8, &Written)> =
        model.contexts.iter().map(|(above, prices)| (*above, 0, prices)).collect();
    lengths.extend(of_tier.iter().map(|(above, prices)| (*above, 1, prices)));
    lengths.sort_by_key(|(above, whose, _)| (*above, *whose));
    layers.extend(
        lengths.iter().filter(|(above, ..)| prompt > u128::from(*above)).map(|(_, _, prices)| *prices),
    );
    let said = |kind: TokenType| {
        let last = layers.iter().rev().find_map(|prices| named(prices, kind)).map(pico);
        match tier {
            "batch" => last.map(|price| half_even(&(price * BigInt::from(model.batch) / BigInt::from(1000)))),
            _ => last,
        }
    };
    let mut sum = BigRational::from(BigInt::from(0));
    for (kind, count) in TokenType::ALL.into_iter().zip(tokens) {
        if *count == 0 {
            continue;
        }
        let more_general: &[TokenType] = match kind {
            TokenType::InputCached | TokenType::InputCacheWrite => &[TokenType::Input],
            TokenType::InputCacheWrite1h => &[TokenType::InputCacheWrite, TokenType::Input],
            TokenType::InputImage | TokenType::InputVideo => &[TokenType::Input],
            TokenType::InputCachedAudio => &[TokenType::InputAudio],
            TokenType::InputCachedImage => &[TokenType::InputCached, TokenType::Input],
            TokenType::OutputReasoning => &[TokenType::Output],
            _ => &[],
        };
        sum += said(kind).or_else(|| more_general.iter().find_map(|like| said(*like)))? * rational(*count);
    }
    if success {
        let request = rational(model.per_request.unwrap_or(0));
        sum += match tier {
            "batch" => half_even(&(request * BigInt::from(model.batch) / BigInt::from(1000))),
            _ => request,
        };
    }
    Some(sum)
}

fn price() -> BoxedStrategy<Option<u64>> {
    prop_oneof![
        1 => Just(None),
        1 => Just(Some(0)),
        // At least half a pico-unit, and up to 1000 units a million.
        4 => (100_u64..100_000_000_000).prop_map(Some),
        // A whole unit for a token: sums that overflow.
        1 => (0_u64..=100_000_000_000_000).prop_map(|price| Some(price.max(100))),
    ]
    .boxed()
}

/// Boxed prices: nested arrays of them do not fit on a test's stack.
fn prices() -> BoxedStrategy<Written> {
    proptest::array::uniform14(price()).boxed()
}

fn some(prices: Written, key: u64) -> Written {
    let mut prices = prices;
    prices[0] = prices[0].or(Some(key));
    prices
}

fn lengths() -> impl Strategy<Value = Vec<(u64, Written)>> {
    proptest::collection::btree_map(1_u64..6, prices(), 0..4).prop_map(|tiers| {
        tiers.into_iter().map(|(thousands, prices)| (thousands * 1000, some(prices, 300))).collect()
    })
}

fn model() -> impl Strategy<Value = Model> {
    let request = proptest::option::of(0_u64..1_000_000_000_000);
    (prices(), request, lengths(), 0_u64..1000, prices(), lengths()).prop_map(
        |(own, per_request, contexts, batch, priority, priority_contexts)| Model {
            own: some(own, 100),
            per_request,
            contexts,
            batch,
            priority: some(priority, 200),
            priority_contexts,
        },
    )
}

fn count() -> BoxedStrategy<u64> {
    // Boxed: fourteen of them in place exceed the stack of a test.
    prop_oneof![
        2 => Just(0),
        4 => 0_u64..3000,
        2 => prop_oneof![Just(999_u64), Just(1000), Just(1001), Just(2000), Just(5000), Just(5001)],
        1 => 0_u64..10_000_000,
        1 => any::<u64>(),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(chance::cases(1000))]

    #[test]
    fn charge_agrees_with_exact_rationals(
        model in model(), tokens in proptest::array::uniform14(count()), tier in 0..3_usize, success: bool,
        requested_tier in 0..3_usize, says_tier: bool, named: bool, answered in 0..3_usize, counted: bool, processed: bool,
    ) {
        let text = file(&model);
        let (book, _) = match Book::read(&text) {
            Ok(read) => read,
            Err(problems) => return Err(TestCaseError::fail(format!("{text}\n{problems:#?}"))),
        };
        let tiers = ["standard", "batch", "priority"];
        let (tier, asked) = (tiers[tier], tiers[requested_tier]);
        let answered = [None, Some("m"), Some("n")][answered];
        let usage = Usage {
            tenant: "t",
            model: if named { "m" } else { "x" },
            response_model: answered,
            provider: "p",
            upstream: "u",
            tier: says_tier.then_some(tier),
            requested_tier: Some(asked),
            at_us: 0,
            tokens: &tokens,
            success,
            processed,
            counted,
        };
        let charge = book.charge(&usage);
        if !named && answered != Some("m") {
            prop_assert_eq!(charge, Charge::Unpriced(Unpriced::Model), "{}", text);
            return Ok(());
        }
        // A tier that only the request names never lowers the price.
        let whole = match says_tier {
            true => expected(&model, tier, &tokens, success),
            false => {
                let of = |tier| expected(&model, tier, &tokens, success);
                of("standard").max(of(asked))
            }
        };
        let told = match &charge {
            Charge::Priced { cost, .. } => Ok(BigInt::from(*cost)),
            Charge::Unpriced(why) => Err(*why),
        };
        let right = match whole {
            None => Err(Unpriced::TokenType),
            Some(sum) if sum > BigRational::from(BigInt::from(i64::MAX)) => Err(Unpriced::Overflow),
            Some(sum) => Ok(sum.to_integer()),
        };
        // The zeros of an uncounted exchange are no sum.
        let right = match told {
            Err(Unpriced::Uncounted) if processed && !counted && right == Ok(BigInt::from(0)) => told.clone(),
            _ => right,
        };
        prop_assert_eq!(told, right, "{}", text);
        // The ledger's copy of the rate suffices to compute the same cost.
        if let Charge::Priced { rate, cost } = charge {
            prop_assert_eq!(rate.cost(&tokens, success), Ok(cost));
            prop_assert_eq!(rate.identify(), rate.id);
        }
    }
}
