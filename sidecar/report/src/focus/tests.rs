//! The dataset against a checker: the mandatory columns of each version, the columns that may be empty, units, and sums
//! against the report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ledger::corrections::id_of;
use ledger::source::{Correction, DAY_US, DeviceTotal, Share, Used};
use ledger::{Class, DailyTotal, GpuSums, Range, Sums, TotalKey, month, period};
use meter::{Provenance, TokenType};
use price::{Book, Charge, Rate};
use proptest::prelude::*;
use text::money;

use super::{Billing, Options, Version, columns, write};
use crate::memory::{FIRST_DAY, Memory, cost, rate};
use crate::{Basis, Key, Query, make};

/// Columns that FOCUS 1.2 makes mandatory (conventions of its specification, tag v1.2).
const MANDATORY_1_2: &str = "BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd \
    BillingPeriodStart ChargeCategory ChargeClass ChargeDescription ChargePeriodEnd ChargePeriodStart \
    ContractedCost EffectiveCost InvoiceIssuerName ListCost PricingQuantity PricingUnit ProviderName \
    PublisherName ServiceCategory ServiceName";
/// Those that 1.3 added; it deprecated two, and 1.4 removed them.
const MANDATORY_1_3: &str = "HostProviderName ServiceProviderName";
/// Those of 1.4.
const MANDATORY_1_4: &str = "BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd \
    BillingPeriodStart ChargeCategory ChargeClass ChargeDescription ChargePeriodEnd ChargePeriodStart \
    ContractedCost EffectiveCost HostProviderName InvoiceDetailId InvoiceIssuerName ListCost PricingQuantity \
    PricingUnit ServiceCategory ServiceName ServiceProviderName";

pub(super) fn options(version: Version, billing: Billing) -> Options {
    Options { version, billing, issuer: "platform".into(), service: "LLM Inference".into() }
}

pub(super) fn query(by: &[Key], basis: Basis) -> Query {
    Query { by: by.to_vec(), basis, ..Query::all(i64::MAX) }
}

pub(super) type Row = BTreeMap<String, String>;

pub(super) fn rows(memory: &Memory, query: &Query, options: &Options) -> (Vec<String>, Vec<Row>) {
    rows_and(None, memory, query, options)
}

fn rows_and(
    book: Option<&Book>,
    memory: &Memory,
    query: &Query,
    options: &Options,
) -> (Vec<String>, Vec<Row>) {
    let mut text = Vec::new();
    write(memory, query, options, book, &mut text).expect("memory takes it");
    let mut sheet = csv::Reader::from_reader(text.as_slice());
    let header: Vec<_> = sheet.headers().expect("a header").iter().map(str::to_owned).collect();
    let rows = sheet.records().map(|record| {
        let record = record.expect("a record");
        header.iter().cloned().zip(record.iter().map(str::to_owned)).collect()
    });
    let rows = rows.collect();
    (header, rows)
}

/// Parses a decimal as a whole number of 10^-24; the product of two with 12 digits fits.
fn parse(text: &str) -> i128 {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let (whole, after) = text.split_once('.').unwrap_or((text, ""));
    assert!(!whole.is_empty() && after.len() <= 24, "{text}");
    let digits = format!("{whole}{after:0<24}");
    sign * digits.parse::<i128>().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(super) fn pico(text: &str) -> i128 {
    let (whole, after) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{after:0<12}").parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn check(version: Version, billing: Billing, header: &[String], row: &Row) {
    let of = |name: &str| row.get(name).map_or("", String::as_str);
    for column in columns(version) {
        assert!(column.nullable || !of(column.name).is_empty(), "{} is empty in {row:?}", column.name);
    }
    for name in header.iter().filter(|name| name.contains("Period")) {
        let text = of(name);
        assert!(text.ends_with("T00:00:00Z") && text.len() == 20, "{name} is {text}");
    }
    assert!(
        of("BillingPeriodStart") < of("BillingPeriodEnd") && of("ChargePeriodStart") < of("ChargePeriodEnd")
    );
    assert_eq!(of("BillingCurrency").len(), 3);
    assert!(["Usage", "Adjustment"].contains(&of("ChargeCategory")));
    let correction = of("ChargeClass") == "Correction";
    assert!(correction || of("ChargeClass").is_empty());
    // A correction belongs to an earlier period than its bill; everything else to the same.
    assert_eq!(correction, of("ChargePeriodStart")[..7] != of("BillingPeriodStart")[..7], "{row:?}");
    let must = of("ChargeCategory") == "Usage" && !correction;
    for name in ["PricingQuantity", "PricingUnit", "ConsumedQuantity", "ConsumedUnit", "SkuId", "SkuPriceId"]
    {
        assert!(!must || !of(name).is_empty(), "{name} is empty in {row:?}");
    }
    for (quantity, unit) in [("PricingQuantity", "PricingUnit"), ("ConsumedQuantity", "ConsumedUnit")] {
        assert_eq!(of(quantity).is_empty(), of(unit).is_empty());
    }
    assert!(["", "Tokens", "Requests", "Hours", "kWh"].contains(&of("ConsumedUnit")));
    assert!(["", "1000000 Tokens", "Requests", "Hours", "kWh"].contains(&of("PricingUnit")));
    assert_eq!(of("SkuId").is_empty(), of("SkuMeter").is_empty());
    assert_eq!(of("SkuId").is_empty(), of("SkuPriceDetails").is_empty());
    for name in ["ListCost", "ContractedCost"] {
        assert_eq!(of(name), of("EffectiveCost"));
    }
    match billing {
        Billing::Showback => assert_eq!(of("BilledCost"), "0.00"),
        Billing::Chargeback => assert_eq!(of("BilledCost"), of("EffectiveCost")),
    }
    if ["Tokens", "Requests"].contains(&of("ConsumedUnit")) {
        let exact = pico(of("ListCost")) * 10_i128.pow(12);
        let (price, quantity) = (parse(of("ListUnitPrice")), parse(of("PricingQuantity")));
        assert_eq!(price / 10_i128.pow(12) * (quantity / 10_i128.pow(18)) * 10_i128.pow(6), exact, "{row:?}");
    }
    for name in ["SkuPriceDetails", "Tags"].map(of).into_iter().filter(|text| !text.is_empty()) {
        let json: serde_json::Value = serde_json::from_str(name).expect("JSON");
        assert!(json.is_object());
    }
    if let Ok(serde_json::Value::Object(details)) = serde_json::from_str(of("SkuPriceDetails")) {
        assert!(details.keys().all(|key| key.starts_with("x_")), "{details:?}");
    }
}

proptest! {
    #![proptest_config(chance::cases(24))]

    #[test]
    fn rows_fit_their_version_and_the_ledgers_costs(
        seed in any::<u64>(), at in 0_usize..3, paid in any::<bool>(), by_day in any::<bool>(), gpu in any::<bool>(),
    ) {
        let memory = Memory::of_chance(seed, 120).with_late_energy();
        let version = Version::ALL[at];
        let billing = if paid { Billing::Chargeback } else { Billing::Showback };
        let basis = if gpu { Basis::Gpu } else { Basis::Price };
        let key = if by_day { Key::Day } else { Key::Month };
        let (header, rows) = rows(&memory, &query(&[key], basis), &options(version, billing));
        let (mut sums, mut joules) = (BTreeMap::new(), 0);
        for row in &rows {
            check(version, billing, &header, row);
            joules += if row["x_EnergyJoules"].is_empty() { 0 } else { pico(&row["x_EnergyJoules"]) };
            *sums.entry(row["BillingCurrency"].clone()).or_insert(0) += pico(&row["EffectiveCost"]);
        }
        let report = make(&memory, &query(&[], basis)).expect("a store in memory can be read");
        for total in report.totals.iter().filter(|total| total.currency.is_some()) {
            let code = total.currency.expect("it has one").code().to_owned();
            let cost = total.cost(basis).unwrap_or(0);
            prop_assert_eq!(sums.remove(&code).unwrap_or(0), cost, "{} {}", code, money(cost));
        }
        prop_assert!(sums.is_empty());
        let apart = make(&memory, &query(&[Key::Currency], basis)).expect("it can be read").groups;
        let charged = apart.iter().filter(|group| group.currency.is_some());
        prop_assert_eq!(joules, charged.map(|group| group.sums.gpu.energy_nj * 1000).sum::<i128>());
        if !gpu {
            each_price_has_one_id_and_each_article_one_row(&rows);
            let groups = make(&memory, &query(&[Key::Currency, Key::Class], basis)).expect("it can be read").groups;
            let priced = || groups.iter().filter(|group| group.currency.is_some()).map(|group| &group.sums);
            let requests: i128 = rows.iter().filter_map(|row| row["x_RequestCount"].parse::<i128>().ok()).sum();
            prop_assert_eq!(requests, priced().map(|sums| sums.exchanges).sum::<i128>());
            let tokens = rows.iter().filter(|row| row["ConsumedUnit"] == "Tokens");
            let tokens: i128 = tokens.map(|row| row["ConsumedQuantity"].parse::<i128>().expect("a count")).sum();
            prop_assert_eq!(tokens, priced().map(|sums| sums.input() + sums.output()).sum::<i128>());
        } else {
            prop_assert!(rows.iter().any(|row| row["ResourceId"] == "__idle__" && row["SubAccountId"].is_empty()));
            prop_assert!(rows.iter().any(|row| row["SkuMeter"] == "GPU Hours"));
        }
    }
}

/// The id of a price differs exactly if the price differs, and nothing else splits rows.
#[track_caller]
fn each_price_has_one_id_and_each_article_one_row(rows: &[Row]) {
    let (mut ids, mut prices) = (BTreeMap::new(), BTreeMap::new());
    let mut articles = BTreeSet::new();
    for row in rows.iter().filter(|row| !row["SkuPriceId"].is_empty()) {
        let of = |names: &[&str]| names.iter().map(|name| row[*name].clone()).collect::<Vec<_>>();
        let price = of(&["SkuId", "ListUnitPrice", "BillingCurrency", "SkuPriceDetails"]);
        let id = row["SkuPriceId"].clone();
        assert_eq!(ids.entry(id.clone()).or_insert_with(|| price.clone()), &price);
        assert_eq!(prices.entry(price).or_insert_with(|| id.clone()), &id);
        let article = of(&[
            "BillingPeriodStart",
            "ChargePeriodStart",
            "SubAccountId",
            "SkuPriceId",
            "ChargeCategory",
            "ChargeClass",
        ]);
        assert!(articles.insert(article), "two rows of one SKU: {row:?}");
    }
}

/// A ledger of llama-3 alone, with one rate for some rows and another for the rest.
fn of_two(one: &Arc<Rate>, two: &Arc<Rate>) -> Memory {
    let mut memory = Memory::of_chance(7, 200);
    memory.rates = vec![Arc::clone(one), Arc::clone(two)];
    memory.shed.clear();
    memory.corrections.clear();
    memory.rows.retain(|(_, row, _)| &*row.model == "llama-3");
    for (at, (_, row, _)) in memory.rows.iter_mut().enumerate() {
        let rate = Arc::clone(if at % 2 == 0 { one } else { two });
        row.charge = Charge::Priced { cost: cost(&rate, &row.tokens), rate };
    }
    memory
}

#[test]
fn only_different_prices_split_rows() {
    let one = rate("2026-10", "llama*", b"USD", 150_000, 0);
    let other = |change: &dyn Fn(&mut Rate)| {
        let mut rate = Rate { id: [9; 16], book: "another text".into(), ..(*one).clone() };
        change(&mut rate);
        Arc::new(rate)
    };
    let options = options(Version::V1_2, Billing::Chargeback);
    let asked = query(&[], Basis::Price);
    let of = |rate: &Arc<Rate>| {
        let (_, rows) = rows(&of_two(&one, rate), &asked, &options);
        each_price_has_one_id_and_each_article_one_row(&rows);
        rows
    };
    let alone = of(&one);
    assert_eq!(of(&other(&|_| {})), alone, "the same prices");
    assert_eq!(of(&other(&|rate| rate.version = "2026-11".into())), alone, "a version of the same prices");
    let dearer = of(&other(&|rate| rate.per_token[TokenType::Output as usize] = Some(700_000)));
    let count = |rows: &[Row], meter: &str| rows.iter().filter(|row| row["SkuMeter"] == meter).count();
    assert_eq!(count(&dearer, "Input Tokens"), count(&alone, "Input Tokens"));
    assert!(count(&dearer, "Output Tokens") > count(&alone, "Output Tokens"));
    let prices: BTreeSet<_> = dearer
        .iter()
        .filter(|row| row["SkuMeter"] == "Output Tokens")
        .map(|row| &row["SkuPriceId"])
        .collect();
    let expected = ["llama-3-output:0.60-USD".to_owned(), "llama-3-output:0.70-USD".to_owned()];
    assert_eq!(prices, expected.iter().collect());
}

/// The provenance of one type of token does not affect another: within one rate, within two rates in one row, but
/// together where two types are one SKU.
#[test]
fn provenance_of_article_is_that_of_its_tokens() {
    use Provenance::{Frames, Reported, Tokenized};
    use TokenType::{Input, InputCached, Output, OutputReasoning};
    let one = rate("2026-10", "llama*", b"USD", 150_000, 0);
    let again = Arc::new(Rate { id: [9; 16], book: "another text".into(), ..(*one).clone() });
    let mut together = (*one).clone();
    together.per_token[OutputReasoning as usize] = together.per_token[Output as usize];
    let together = Arc::new(together);
    let exchanges = [
        (Reported, Reported, &[(Input, 100), (InputCached, 900), (Output, 30), (OutputReasoning, 70)][..]),
        (Tokenized, Frames, &[(Input, 500), (Output, 300)][..]),
    ];
    for (rates, known) in [
        ([&one, &one], ["0.166666 0.833334", "reported", "0.090909 0.909091", "reported"]),
        ([&one, &again], ["0.166666 0.833334", "reported", "0.090909 0.909091", "reported"]),
        ([&together, &together], ["0.166666 0.833334", "reported", "0.25 0.75", ""]),
    ] {
        let mut memory = Memory::of_chance(7, 60);
        let (billed, template, _) = memory.rows.remove(0);
        memory.rates = rates.map(Arc::clone).to_vec();
        memory.shed.clear();
        memory.corrections.clear();
        memory.rows.clear();
        for (rate, (input, output, tokens)) in rates.into_iter().zip(exchanges) {
            let mut row = template.clone();
            row.tokens.by_type = [0; TokenType::ALL.len()];
            tokens.iter().for_each(|(kind, count)| row.tokens.by_type[*kind as usize] = *count);
            (row.tokens.input_provenance, row.tokens.output_provenance) = (input, output);
            row.charge = Charge::Priced { cost: cost(rate, &row.tokens), rate: Arc::clone(rate) };
            memory.rows.push((billed, row, None));
        }
        let (_, rows) = rows(&memory, &query(&[], Basis::Price), &options(Version::V1_2, Billing::Showback));
        let meters = ["Input Tokens", "Cache Read Input Tokens", "Output Tokens", "Reasoning Output Tokens"];
        for (meter, known) in meters.into_iter().zip(known) {
            let mut of_it = rows.iter().filter(|row| row["SkuMeter"] == meter);
            let said = of_it.next().map(|row| row["x_UsageSource"].clone()).unwrap_or_default();
            assert!(of_it.next().is_none(), "{meter} has two rows");
            let other = if meter.contains("Output") { "frames" } else { "tokenized" };
            let expected = match known.split_once(' ') {
                Some((reported, rest)) => serde_json::json!({ "reported": reported, other: rest }),
                None => known.into(),
            };
            let said: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|_| said.into());
            assert_eq!(said, expected, "{meter}");
        }
    }
}

/// Only the metadata of models comes from the price book.
#[test]
fn model_metadata_comes_from_the_price_book() {
    let (book, _) = Book::read(
        "version: later\ncurrency: EUR\nmodels:\n\
         - {pattern: 'llama*', input: 9, developer: Meta, family: Llama}\n\
         - {name: llama-3, input: 9, family: Llama 3, model_version: '3.1'}\n",
    )
    .expect("it is a book");
    let (memory, options) = (Memory::of_chance(5, 200), options(Version::V1_4, Billing::Chargeback));
    let asked = query(&[], Basis::Price);
    let (_, without) = rows(&memory, &asked, &options);
    let (_, with) = rows_and(Some(&book), &memory, &asked, &options);
    each_price_has_one_id_and_each_article_one_row(&with);
    assert_eq!(with.len(), without.len());
    let mut told = BTreeSet::new();
    for (with, without) in with.iter().zip(&without) {
        let mut plain = with.clone();
        let details = |row: &Row| serde_json::from_str::<serde_json::Value>(&row["SkuPriceDetails"]).ok();
        if let Some(mut said) = details(with) {
            let said = said.as_object_mut().expect("an object");
            let model = said["x_ModelId"].as_str().expect("a name");
            let (llama, three) = (model.starts_with("llama"), model == "llama-3");
            let words = ["x_ModelDeveloper", "x_ModelFamily", "x_ModelVersion"].map(|key| said.remove(key));
            assert_eq!(words[0], llama.then(|| "Meta".into()), "{with:?}");
            assert_eq!(words[2], three.then(|| "3.1".into()), "{with:?}");
            told.extend(words[1].as_ref().map(ToString::to_string));
            plain.insert("SkuPriceDetails".to_owned(), serde_json::Value::Object(said.clone()).to_string());
        }
        assert_eq!(&plain, without);
    }
    assert_eq!(told, ["\"Llama 3\"", "\"Llama\""].map(str::to_owned).into(), "a name precedes a pattern");
}

#[test]
fn model_metadata_is_that_of_the_ranges_end() {
    let (book, _) = Book::read(
        "version: v\ncurrency: EUR\nmodels:\n\
         - {name: llama-3, input: 9, family: first}\n\
         - {name: llama-3, input: 9, family: second, valid_from: 2026-11-01}\n\
         - {name: llama-3, input: 9, family: not yet, valid_from: 2999-01-01}\n",
    )
    .expect("it is a book");
    let (memory, options) = (Memory::of_chance(5, 200), options(Version::V1_4, Billing::Chargeback));
    let november = price::instant::read("2026-11-01").expect("a date");
    for (until_us, family) in
        [(november, "\"first\""), (november + 86_400_000_000, "\"second\""), (i64::MAX, "\"second\"")]
    {
        let asked = Query { range: Range { since_us: i64::MIN, until_us }, ..query(&[], Basis::Price) };
        let (_, rows) = rows_and(Some(&book), &memory, &asked, &options);
        let details =
            rows.iter().map(|row| &row["SkuPriceDetails"]).filter(|said| said.contains("\"llama-3\""));
        let mut count = 0;
        for said in details {
            assert!(said.contains(family), "until {until_us}: {said}");
            count += 1;
        }
        assert!(count > 0, "until {until_us}: no row of the model");
    }
}

#[test]
fn unrecognised_server_has_its_upstreams_name() {
    let mut memory = Memory::of_chance(3, 60);
    memory.shed.clear();
    memory.corrections.clear();
    for (at, (_, row, _)) in memory.rows.iter_mut().enumerate() {
        row.provider = if at % 2 == 0 { "openai".into() } else { "vllm".into() };
        row.upstream = if at % 4 == 0 { "api.openai.com:443".into() } else { "".into() };
    }
    let (_, rows) = rows(&memory, &query(&[], Basis::Price), &options(Version::V1_2, Billing::Showback));
    let names: BTreeSet<_> = rows.iter().map(|row| &*row["ProviderName"]).collect();
    assert_eq!(names, BTreeSet::from(["api.openai.com:443", "unknown", "vllm"]));
}

#[test]
fn columns_are_those_of_the_version() {
    for (version, mandatory) in [
        (Version::V1_2, MANDATORY_1_2),
        (Version::V1_3, MANDATORY_1_2),
        (Version::V1_3, MANDATORY_1_3),
        (Version::V1_4, MANDATORY_1_4),
    ] {
        let (header, _) =
            rows(&Memory::default(), &query(&[], Basis::Price), &options(version, Billing::Showback));
        for name in mandatory.split_whitespace() {
            assert!(header.iter().any(|has| has == name), "{name} is not in {}", version.name());
        }
        let (theirs, ours): (Vec<_>, Vec<_>) = header.iter().partition(|name| !name.starts_with("x_"));
        assert_eq!(header, theirs.iter().chain(&ours).map(|name| (*name).clone()).collect::<Vec<_>>());
        assert!(theirs.is_sorted() && ours.is_sorted(), "{header:?}");
        assert!(columns(version).all(|column| !column.from.is_empty()));
    }
    let (header, _) =
        rows(&Memory::default(), &query(&[], Basis::Price), &options(Version::V1_4, Billing::Showback));
    for gone in ["ProviderName", "PublisherName"] {
        assert!(!header.iter().any(|name| name == gone), "1.4 has no {gone}");
    }
}

#[test]
fn keys_without_focus_column_are_refused() {
    let error = write(
        &Memory::default(),
        &query(&[Key::Ending], Basis::Price),
        &options(Version::V1_2, Billing::Showback),
        None,
        &mut Vec::new(),
    );
    assert!(error.expect_err("it is").to_string().contains("`ending`"));
    let by = [Key::Day, Key::Principal, Key::Consumer, Key::Upstream];
    let (_, rows) = rows(
        &Memory::of_chance(9, 80),
        &query(&by, Basis::Price),
        &options(Version::V1_2, Billing::Showback),
    );
    assert!(rows.iter().any(|row| row["x_ConsumerId"] == "user-1"));
    assert!(rows.iter().any(|row| row["x_PrincipalId"] == "key-1" && row["ResourceId"] == "a"));
    assert!(rows.iter().all(|row| period::instant(&row["ChargePeriodStart"]).is_ok()));
}

/// A ledger of exchanges of llama-3 on October 29, by one rate.
fn of_exchanges(rate: &Arc<Rate>, exchanges: &[&[(TokenType, u64)]]) -> Memory {
    let mut memory = Memory { rates: vec![Arc::clone(rate)], ..Memory::default() };
    let (_, mut row, _) = Memory::of_chance(7, 60).rows.remove(0);
    row.ended_us = i64::from(FIRST_DAY) * DAY_US;
    (row.tenant, row.model) = ("acme".into(), "llama-3".into());
    for tokens in exchanges {
        row.tokens.by_type = [0; TokenType::ALL.len()];
        tokens.iter().for_each(|(kind, count)| row.tokens.by_type[*kind as usize] = *count);
        row.charge = Charge::Priced { cost: cost(rate, &row.tokens), rate: Arc::clone(rate) };
        memory.rows.push((month::of_day(FIRST_DAY), row.clone(), None));
    }
    memory
}

/// Gives the first exchange another rate, in the month after.
fn correct(memory: &mut Memory, to: &Rate, sums: Sums) {
    let (billed, row, _) = &memory.rows[0];
    let key = TotalKey { rate: Some(to.id), ..TotalKey::of_row(row, Class::Correction) };
    let (id, line) = (id_of(&row.id, row.ended_us, 0), DailyTotal { key, sums });
    let made = Correction { id, made_us: row.ended_us + 1, exchange: row.id, line, ended_us: row.ended_us };
    memory.corrections.push((*billed + 1, made));
}

/// Some cells of the rows of October 29 by month.
fn cells(memory: &Memory, basis: Basis, names: &str) -> Vec<String> {
    let (_, rows) = rows(memory, &query(&[], basis), &options(Version::V1_2, Billing::Chargeback));
    for row in &rows {
        assert_eq!(row["ChargePeriodStart"], "2026-10-01T00:00:00Z");
        assert_eq!(row["ChargePeriodEnd"], "2026-11-01T00:00:00Z");
    }
    rows.iter()
        .map(|row| names.split_whitespace().map(|name| &*row[name]).collect::<Vec<_>>().join("|"))
        .collect()
}

const CHARGE: &str = "ChargeCategory ChargeClass ChargeDescription ConsumedQuantity ListUnitPrice EffectiveCost \
    x_RequestCount x_ReasoningTokens x_EnergyJoules";

#[test]
fn charges_of_two_exchanges_by_hand() {
    use TokenType::{Input, Output, OutputReasoning};
    let one = rate("2026-10", "llama*", b"USD", 150_000, 1_000_000);
    let exchanges = [&[(Input, 100), (Output, 30), (OutputReasoning, 70)][..], &[(Input, 20)]];
    let mut memory = of_exchanges(&one, &exchanges);
    let tokens = [
        "Usage||Input Tokens for llama-3|120|0.15|0.000018|2||",
        "Usage||Output Tokens for llama-3|30|0.60|0.000018|||",
        "Usage||Reasoning Output Tokens for llama-3|70|0.15|0.0000105||70|",
    ];
    let with = |last: &[&str]| tokens.iter().chain(last).map(|row| (*row).to_owned()).collect::<Vec<_>>();
    let requests = "Usage||Requests to llama-3|2|0.000001|0.000002|||";
    assert_eq!(cells(&memory, Basis::Price, CHARGE), with(&[requests]));
    let mut charge = |sum: i64| {
        let Charge::Priced { cost, .. } = &mut memory.rows[1].1.charge else { panic!("it has a price") };
        *cost += sum;
        cells(&memory, Basis::Price, CHARGE)
    };
    let difference = "Difference between charges and unit prices for llama-3";
    assert_eq!(charge(1), with(&[&format!("Adjustment||{difference}|||0.000002000001|||")]));
    assert_eq!(charge(-2_000_001), with(&[]));
    for (billed, _, _) in &mut memory.rows {
        *billed += 1;
    }
    let Charge::Priced { cost, .. } = &mut memory.rows[0].1.charge else { panic!("it has a price") };
    *cost += 1;
    let late = with(&[&format!("Usage||{difference}|||0.000000000001|||")]);
    let late: Vec<_> = late.iter().map(|row| row.replacen("Usage||", "Usage|Correction|", 1)).collect();
    assert_eq!(cells(&memory, Basis::Price, CHARGE), late);
}

#[test]
fn exchange_without_tokens_and_cost_is_one_charge() {
    let free = rate("2026-10", "llama*", b"USD", 150_000, 0);
    let mut memory = of_exchanges(&free, &[&[]]);
    let said = cells(&memory, Basis::Price, CHARGE);
    assert_eq!(said, ["Usage||Input Tokens for llama-3|0|0.15|0.00|1||"]);
    memory.rows[0].2 = Some(Used { energy_nj: Some(0), gpu_ns: Some(1), ..Used::default() });
    let said = cells(&memory, Basis::Price, CHARGE);
    assert_eq!(said, ["Usage||Input Tokens for llama-3|0|0.15|0.00|1||0"]);
}

#[test]
fn price_of_later_month_is_a_correction() {
    let old = rate("2026-10", "llama*", b"USD", 150_000, 0);
    let new = rate("2026-11", "llama*", b"USD", 170_000, 0);
    let mut memory = of_exchanges(&old, &[&[(TokenType::Input, 10)]]);
    memory.rates.push(Arc::clone(&new));
    correct(&mut memory, &new, Sums { cost_pico: 5, ..Sums::default() });
    let said = cells(&memory, Basis::Price, CHARGE);
    assert_eq!(said[0], "Usage||Input Tokens for llama-3|10|0.15|0.0000015|1||");
    assert_eq!(
        said[1..],
        ["Usage|Correction|Price of llama-3 changed to that of version 2026-11|||0.000000000005|||"]
    );
}

#[test]
fn merged_charge_keeps_known_provenance() {
    let one = rate("2026-10", "llama*", b"USD", 150_000, 0);
    let again = Arc::new(Rate { id: [9; 16], ..(*one).clone() });
    for exchanges in [[&[][..], &[(TokenType::Input, 5)]], [&[(TokenType::Input, 5)][..], &[]]] {
        let mut memory = of_exchanges(&one, &exchanges);
        memory.rates.push(Arc::clone(&again));
        memory.rows.iter_mut().for_each(|(_, row, _)| row.tokens.input_provenance = Provenance::Reported);
        let row = &mut memory.rows[1].1;
        row.charge = Charge::Priced { cost: cost(&again, &row.tokens), rate: Arc::clone(&again) };
        let said =
            cells(&memory, Basis::Price, "ConsumedQuantity PricingQuantity x_RequestCount x_UsageSource");
        assert_eq!(said, ["5|0.000005|2|reported"]);
    }
}

#[test]
fn first_price_of_zero_is_a_price() {
    let free = rate("2026-11", "llama*", b"USD", 0, 0);
    let mut memory = of_exchanges(&free, &[&[(TokenType::Input, 10)]]);
    memory.rows[0].1.charge = Charge::Unpriced(price::Unpriced::Model);
    correct(&mut memory, &free, Sums { exchanges: 1, ..Sums::default() });
    // From daily totals, and from rows.
    for by in [&[Key::Billed][..], &[Key::Billed, Key::Dialect]] {
        let report = make(&memory, &query(by, Basis::Price)).expect("it can be read");
        let sums = report.groups.iter().map(|group| (group.values[0].to_string(), &group.sums));
        let said: Vec<_> =
            sums.map(|(month, sums)| (month, sums.exchanges, sums.unpriced, sums.priced)).collect();
        assert_eq!(said, [("2026-10".to_owned(), 1, 1, false), ("2026-11".to_owned(), 0, 0, true)]);
    }
}

#[test]
fn price_details_name_modality_tier_and_prompt_length() {
    let mut rate = (*rate("2026-10", "llama*", b"USD", 150_000, 0)).clone();
    let all = TokenType::ALL.map(|kind| (kind, 1));
    let names = "SkuMeter SkuPriceId SkuPriceDetails";
    let plain = cells(&of_exchanges(&Arc::new(rate.clone()), &[&all]), Basis::Price, names);
    (rate.tier, rate.above_input_tokens) = ("priority".into(), 200_000);
    let long = cells(&of_exchanges(&Arc::new(rate), &[&all]), Basis::Price, names);
    assert_eq!((plain.len(), long.len()), (TokenType::ALL.len(), TokenType::ALL.len()));
    for (plain, long) in plain.iter().zip(&long) {
        for kind in ["Audio", "Image", "Video"] {
            let said = plain.contains(&format!("\"x_TokenModality\":\"{kind}\""));
            let name = plain.trim_start_matches("Cached ");
            assert_eq!(said, name.starts_with(kind), "{plain}");
        }
        assert!(!plain.contains("x_AboveInputTokens") && !plain.contains("above-"), "{plain}");
        assert!(long.contains("\"x_AboveInputTokens\":200000"), "{long}");
        assert!(long.contains(":priority:above-200000:"), "{long}");
    }
}

/// An hour and a nanosecond, and a kilowatt-hour and two nanojoules: both are rounded to 15 decimals.
#[test]
fn gpu_charges_by_hand() {
    const NAMES: &str = "ChargeDescription ConsumedQuantity ListUnitPrice EffectiveCost x_RequestCount \
        x_EnergyJoules x_UsageSource";
    let sums = GpuSums {
        energy_nj: 3_600_000_000_000_002,
        gpu_ns: 3_600_000_000_001,
        gpu_hours_pico: 2_000_000_000_000,
        gpu_energy_pico: 300_000_000_000,
    };
    let idle = |sums| DeviceTotal { day: FIRST_DAY, hw_id: "GPU-1".into(), share: Share::Idle, sums };
    let of = |sums| cells(&Memory { devices: vec![idle(sums)], ..Memory::default() }, Basis::Gpu, NAMES);
    let hours = "GPU Hours of __idle__|1.000000000000278|1.999999999999|2.00||";
    let energy = "GPU Energy of __idle__|1.000000000000001|0.299999999999|0.30||";
    assert_eq!(of(sums), [format!("{hours}3600000.000000002|measured"), format!("{energy}|measured")]);
    let without_energy = GpuSums { energy_nj: 0, gpu_energy_pico: 0, ..sums };
    assert_eq!(of(without_energy), [format!("{hours}0|measured")]);
    let money_alone = GpuSums { gpu_energy_pico: 1, ..GpuSums::default() };
    assert_eq!(of(money_alone), ["GPU Energy of __idle__|0||0.000000000001||0|measured"]);
    let one = rate("2026-10", "llama*", b"USD", 150_000, 0);
    let mut memory = of_exchanges(&one, &[&[], &[]]);
    let used =
        Used { energy_nj: Some(18_000_000_000), gpu_ns: Some(0), gpu_hours_pico: 0, gpu_energy_pico: 7 };
    memory.rows[1].2 = Some(used);
    let said = cells(&memory, Basis::Gpu, NAMES);
    assert_eq!(said, ["GPU Energy for llama-3|0.000005|0.0000014|0.000000000007|2|18|measured"]);
}
