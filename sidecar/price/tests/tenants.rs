//! Terms of tenants: discounts and markups on every price.

use meter::TokenType;
use price::{Book, Charge, Usage, diff};

const TOKENS: [u64; TokenType::ALL.len()] = [1_000, 200, 0, 0, 0, 0, 0, 0, 0, 50, 7, 0, 0, 0];

fn read(tenants: &str) -> Result<Book, Vec<String>> {
    let text = format!(
        "version: v\ncurrency: USD\n{tenants}models:\n\
         - {{name: m, input: 2.5, cached_input: 0.25, output: 10, per_request: 0.003, \
         context_tiers: [{{above_input_tokens: 1150, input: 5}}], tiers: {{batch: {{multiply: 0.5}}}}}}\n"
    );
    let lines = |errors: Vec<origin::Diagnostic>| {
        errors
            .into_iter()
            .map(|error| format!("{}: {}; {}", error.line, error.message, error.remedy))
            .collect()
    };
    Book::read(&text).map(|(book, _)| book).map_err(lines)
}

fn usage(tenant: &str) -> Usage<'_> {
    Usage {
        tenant,
        model: "m",
        response_model: None,
        provider: "openai",
        upstream: "u",
        tier: None,
        requested_tier: None,
        at_us: 0,
        tokens: &TOKENS,
        success: true,
        processed: true,
        counted: true,
    }
}

fn charge(book: &Book, usage: &Usage<'_>) -> (i64, [u8; 16]) {
    match book.charge(usage) {
        Charge::Priced { rate, cost } => (cost, rate.id),
        Charge::Unpriced(why) => panic!("{why:?}"),
    }
}

#[test]
fn every_price_is_multiplied() {
    let book = read("tenants: {acme: {discount: 10%}, part*: {markup: 2.5%}}\n").expect("it is right");
    // Per token: 5 (above 1,150), 0.25 and 10 millionths; reasoning as output; 0.003 for the request.
    let list = 1_000 * 5_000_000 + 200 * 250_000 + 57 * 10_000_000 + 3_000_000_000;
    assert_eq!(charge(&book, &usage("other")).0, list);
    assert_eq!(charge(&book, &usage("acme")).0, list / 10 * 9);
    assert_eq!(charge(&book, &usage("partner")).0, list / 1_000 * 1_025);
    let batch = Usage { tier: Some("batch"), ..usage("acme") };
    assert_eq!(charge(&book, &batch).0, list / 20 * 9);
    let mut ids: Vec<_> = ["other", "acme", "partner"].map(|tenant| charge(&book, &usage(tenant)).1).into();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each has a rate of its own");
    assert!(book.rates().any(|rate| rate.id == ids[1]));
}

#[test]
fn names_precede_patterns_and_longer_patterns_shorter_ones() {
    let tenants = "tenants:\n  '*': {markup: 1%}\n  ac*: {discount: 2%}\n  acm*: {discount: 3%}\n  acme: {discount: 4%}\n  \
                   zo: {discount: 5%}\n  a: {discount: 6%}\n  acme-longer: {discount: 7%}\n";
    let book = read(tenants).expect("it is right");
    for (tenant, terms) in [
        ("acme", "discount 4%"),
        ("a", "discount 6%"),
        ("acme-longer", "discount 7%"),
        ("zo", "discount 5%"),
        ("acmo", "discount 3%"),
        ("acid", "discount 2%"),
        ("x", "markup 1%"),
        ("", "markup 1%"),
    ] {
        assert_eq!(book.terms_of(tenant).map(|term| &*term.text), Some(terms), "{tenant}");
    }
    assert!(read("").expect("it is right").terms_of("acme").is_none());
}

#[test]
fn whole_discount_is_free_and_priced() {
    let book = read("tenants: {acme: {discount: 100%}}\n").expect("it is right");
    assert_eq!(charge(&book, &usage("acme")).0, 0);
}

#[test]
fn products_are_rounded_once_with_a_warning() {
    let text = "version: v\ncurrency: USD\ntenants: {a: {discount: 33.3333333%}, b: {discount: 50%}}\nmodels:\n\
                - {name: m, input: 0.000003, output: 0.000001}\n- {name: n, input: 0.000003, output: 0}\n";
    let (book, warnings) = Book::read(text).expect("it is right");
    let rounded: Vec<_> = warnings.iter().filter(|warning| warning.message.contains("rounded")).collect();
    assert_eq!(rounded.len(), 2, "one for each tenant: {rounded:?}");
    assert!(rounded.iter().all(|warning| warning.line == 3), "{rounded:?}");
    let cost = |tenant| charge(&book, &usage(tenant)).0;
    // 3 × 0.666666667 is 2, 1 × 0.666666667 is 1; 1.5 and 0.5 go to the even neighbour.
    assert_eq!((cost("a"), cost("b")), (1_200 * 2 + 57, 1_200 * 2));
}

#[test]
fn only_present_terms_change_the_hash() {
    let hash = |tenants: &str| read(tenants).expect("it is right").hash().clone();
    let hashes = [
        hash(""),
        hash("tenants: {a: {discount: 1%}}\n"),
        hash("tenants: {b: {discount: 1%}}\n"),
        hash("tenants: {a: {markup: 1%}}\n"),
    ];
    let mut different: Vec<_> = hashes.to_vec();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 4);
    assert_eq!(hash("tenants: {}\n"), hashes[0]);
    assert_eq!(
        hash("tenants: {b: {markup: 2%}, a: {discount: 1.0%}}\n"),
        hash("tenants: {a: {discount: 1%}, b: {markup: 2.0 %}}\n")
    );
}

#[test]
fn changed_terms_are_differences() {
    let [old, new] = ["tenants: {a: {discount: 1%}, b: {markup: 2%}}\n", "tenants: {a: {discount: 5%}}\n"]
        .map(|tenants| read(tenants).expect("it is right"));
    let changes = diff::diff(&old, &new);
    let facts: Vec<_> = changes
        .iter()
        .flat_map(|change| &change.facts)
        .map(|fact| format!("{} {:?} {:?}", fact.name, fact.old.as_deref(), fact.new.as_deref()))
        .collect();
    assert_eq!(
        facts,
        [r#"tenant a Some("discount 1%") Some("discount 5%")"#, r#"tenant b Some("markup 2%") None"#]
    );
}

#[test]
fn wrong_terms_are_errors() {
    for (tenants, error) in [
        ("tenants: [acme]\n", "3: `tenants` is not a map; write tenants with their terms under it"),
        ("tenants: {a: 10%}\n", "3: a tenant is not a map; "),
        (
            "tenants: {a: {}}\n",
            "3: `a` must have either `discount` or `markup`; write one, as in `discount: 10%`",
        ),
        ("tenants: {a: {discount: 1%, markup: 1%}}\n", "3: `a` must have either "),
        ("tenants: {a: {rebate: 1%}}\n", "3: a tenant has no key `rebate`"),
        (
            "tenants:\n  a: {discount: 1%}\n  a: {discount: 2%}\n",
            "5: `a` is set twice, first at line 4; remove",
        ),
        (
            "tenants: {a: {discount: 10}}\n",
            "3: `discount`: `10` is not a percentage; write it as in 12.5%: above 0 and at most 100",
        ),
        ("tenants: {a: {discount: 0%}}\n", "3: `discount`: `0%` is not"),
        ("tenants: {a: {discount: -5%}}\n", "3: `discount`: `-5%` is not"),
        ("tenants: {a: {discount: 100.1%}}\n", "3: `discount`: `100.1%` is not"),
        ("tenants: {a: {discount: 0.00000001%}}\n", "3: `discount`: "),
        (
            "tenants: {a: {markup: 9900.1%}}\n",
            "3: `markup`: `9900.1%` is not a percentage; write it as in 12.5%: above 0 and at most 9900",
        ),
        ("tenants: {a: {discount: [1%]}}\n", "3: `discount` is not a single value"),
    ] {
        let errors = read(tenants).expect_err(tenants);
        assert!(errors.iter().any(|said| said.starts_with(error)), "{tenants}: {errors:?}");
    }
}
