//! Savings by hand and against sums over rows.

use std::collections::BTreeMap;

use meter::TokenType;
use proptest::prelude::*;

use super::{Kind, Savings};
use crate::memory::Memory;
use crate::tests::query;
use crate::{Basis, Filter, Key, Query, json, make, table};

/// Success, the end, the id and the cost.
type Exchange = (bool, i64, [u8; 16], i128);

fn of_usd(memory: &Memory, query: &Query) -> Savings {
    let report = make(memory, query).expect("a store in memory is readable");
    let usd = report.savings.into_iter().find(|(currency, _)| currency.is_some_and(|is| is.code() == "USD"));
    usd.map(|(_, savings)| savings).unwrap_or_default()
}

proptest! {
    #![proptest_config(chance::cases(32))]

    #[test]
    fn savings_are_sums_over_rows(seed in any::<u64>()) {
        let memory = Memory { corrections: Vec::new(), ..Memory::of_chance(seed, 120) };
        let mut naive: BTreeMap<Kind, i128> = BTreeMap::new();
        let mut all = 0;
        let rows = memory.rows.iter().map(|(_, row, _)| ledger::DailyTotal::of_row(row, None));
        for line in rows.chain(memory.shed.iter().map(|(_, line)| line.clone())) {
            let rate = memory.rates.iter().find(|rate| Some(rate.id) == line.key.rate);
            let Some(rate) = rate.filter(|rate| rate.currency.code() == "USD") else { continue };
            let price = |kind: TokenType| i128::from(rate.per_token[kind as usize].expect("a price"));
            let count = |kind: TokenType| i128::from(line.sums.tokens[kind as usize]);
            let plain = TokenType::Input;
            let (write, hour) = (TokenType::InputCacheWrite, TokenType::InputCacheWrite1h);
            *naive.entry(Kind::CacheReads).or_default() += count(TokenType::InputCached)
                * (price(plain) - price(TokenType::InputCached))
                + count(TokenType::InputCachedAudio)
                    * (price(TokenType::InputAudio) - price(TokenType::InputCachedAudio))
                + count(TokenType::InputCachedImage)
                    * (price(TokenType::InputImage) - price(TokenType::InputCachedImage));
            *naive.entry(Kind::CacheWrites).or_default() +=
                count(write) * (price(write) - price(plain)) + count(hour) * (price(hour) - price(plain));
            let kind = match &*line.key.ending {
                "client_abort" => Some(Kind::Aborted),
                "error_status" => Some(Kind::Failed),
                _ => None,
            };
            if let Some(kind) = kind {
                *naive.entry(kind).or_default() += line.sums.cost_pico;
            }
            all += line.sums.cost_pico;
        }
        // Keys and rows in place of totals change nothing.
        let from_rows = Query { filters: vec![Filter::read("consumer=*").expect("a filter")], ..query(&[]) };
        for asked in [query(&[]), query(&[Key::Model]), from_rows] {
            let savings = of_usd(&memory, &asked);
            prop_assert_eq!(savings.cost_pico, all);
            for kind in Kind::of(Basis::Price) {
                let expected = Some(naive.get(kind).copied().unwrap_or(0)).filter(|_| *kind != Kind::Repeated);
                prop_assert_eq!(savings.amount(*kind), expected, "{}", kind.name());
            }
        }
        let savings = of_usd(&memory, &Query { basis: Basis::Gpu, ..query(&[]) });
        let idle: i128 = memory.devices.iter().map(|device| device.sums.cost_pico()).sum();
        let amount = |kind| savings.amount(kind).expect("known");
        prop_assert_eq!(amount(Kind::Idle) + amount(Kind::Unattributed), idle);
        prop_assert!(amount(Kind::Aborted) + amount(Kind::Failed) + idle <= savings.cost_pico);
    }
}

proptest! {
    #![proptest_config(chance::cases(32))]

    /// Of each request, all exchanges but one are repeated, each at its present cost.
    #[test]
    fn repetitions_are_those_of_requests(seed in any::<u64>(), requests in 1_usize..20, gpu in any::<bool>()) {
        let mut memory = Memory { kept_since_us: i64::MIN, ..Memory::of_chance(seed, 80) };
        memory.shed.clear();
        for (at, (_, row, _)) in memory.rows.iter_mut().enumerate() {
            row.request_id = (at % 3 > 0).then(|| format!("request-{}", at % requests).into());
        }
        let kept: Vec<_> = memory.rows.iter().map(|(_, row, _)| row.id).collect();
        memory.corrections.retain(|(_, made)| kept.contains(&made.exchange));
        let memory = memory.with_legs();
        let mut naive: BTreeMap<(String, String), Vec<Exchange>> = BTreeMap::new();
        for (_, row, used) in memory.rows.iter().filter(|(_, row, _)| row.role.is_counted()) {
            let Some(id) = &row.request_id else { continue };
            let made = memory.corrections.iter().filter(|(_, made)| made.exchange == row.id);
            let rates = made.clone().filter_map(|(_, made)| made.line.key.rate).chain(row.rate());
            let is_usd = rates.into_iter().any(|id| {
                memory.rates.iter().any(|rate| rate.id == id && rate.currency.code() == "USD")
            });
            let changes: i128 = made.map(|(_, made)| made.line.sums.cost_pico).sum();
            let price = if is_usd { row.charge.cost().map_or(0, i128::from) + changes } else { 0 };
            let of_gpu = used.map_or(0, |used| i128::from(used.gpu_hours_pico) + i128::from(used.gpu_energy_pico));
            let success = matches!(&*row.ending, "complete" | "length");
            let exchange = (success, row.ended_us, row.id.0, if gpu { of_gpu } else { price });
            naive.entry((row.tenant.to_string(), id.to_string())).or_default().push(exchange);
        }
        let repeated: i128 = naive.into_values().map(|mut exchanges| {
            exchanges.sort_unstable();
            exchanges.pop();
            exchanges.into_iter().map(|(.., cost)| cost).sum::<i128>()
        }).sum();
        let basis = if gpu { Basis::Gpu } else { Basis::Price };
        for by in [&[][..], &[Key::Tenant, Key::Day]] {
            let asked = Query { repeats: true, basis, ..query(by) };
            let savings = of_usd(&memory, &asked);
            prop_assert_eq!(savings.amount(Kind::Repeated), Some(repeated));
        }
        // Without a row, an exchange may be a repetition of any.
        let gone = Memory { kept_since_us: i64::MAX, ..memory };
        let savings = of_usd(&gone, &Query { repeats: true, basis, ..query(&[]) });
        prop_assert_eq!(savings.amount(Kind::Repeated), None);
    }
}

/// An amount that is of no exchange has no ending.
#[test]
fn only_known_endings_are_failures() {
    let mut memory = Memory { corrections: Vec::new(), ..Memory::of_chance(3, 60) };
    let failed = |memory: &Memory| of_usd(memory, &query(&[])).amount(Kind::Failed).expect("known");
    assert!(failed(&memory) > 0);
    memory.rows.iter_mut().for_each(|(_, row, _)| row.ending = "".into());
    memory.shed.iter_mut().for_each(|(_, line)| line.key.ending = "".into());
    assert_eq!(failed(&memory), 0);
}

#[test]
fn savings_have_shares_and_name_what_is_unknown() {
    let report = make(&Memory::of_chance(3, 200), &query(&[Key::Tenant])).expect("it is readable");
    let mut bytes = Vec::new();
    json::write(&report, Some(4), &mut bytes).expect("memory takes it");
    let json: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    let of = |savings: &serde_json::Value| {
        assert!(savings["repeated"].is_null());
        let names: Vec<_> = savings.as_object().expect("an object").keys().map(String::as_str).collect();
        let kinds = Kind::of(Basis::Price).iter().map(|kind| kind.name());
        let mut expected: Vec<_> = ["currency", "cost"].into_iter().chain(kinds).collect();
        expected.sort_unstable();
        assert_eq!(names, expected, "nothing that no row has");
        let amount =
            |text: &serde_json::Value| text.as_str().expect("a decimal").parse::<f64>().expect("a number");
        let share = amount(&savings["aborted"]["share"]);
        assert!((share - amount(&savings["aborted"]["amount"]) / amount(&savings["cost"])).abs() < 0.01);
        savings["currency"].as_str().expect("a code").to_owned()
    };
    let currencies: Vec<_> = json["savings"].as_array().expect("a list").iter().map(of).collect();
    assert_eq!(currencies, ["EUR", "USD"]);
    let mut bytes = Vec::new();
    let layout = table::Layout { round: Some(4), savings: true, ..table::Layout::default() };
    table::write_with(&report, &layout, &mut bytes).expect("memory takes it");
    let text = String::from_utf8(bytes).expect("text");
    for said in ["worth", "saved_by_cache_reads", "of cost", "%", "tokenmeter_tenant_refused_total"] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
}
