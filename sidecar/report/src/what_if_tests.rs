//! Reports beside another price book, against repricing and against sums over rows.

use std::collections::BTreeMap;

use ledger::month;
use price::{Book, Charge};
use proptest::prelude::*;

use super::WhatIf;
use crate::memory::{FIRST_DAY, Memory};
use crate::tests::query;
use crate::{Basis, Column, Key, Query, Report, Reprice, json, make, rehearse, table};

fn book(currency: &str, output: u32) -> WhatIf {
    let text = format!(
        "version: other\ncurrency: {currency}\nmodels:\n\
         - {{pattern: 'llama*', input: 0.2, cached_input: 0.1, output: {output}, reasoning: 1, cache_write: 1, cache_write_1h: 1, \
         input_audio: 1, input_image: 1, input_video: 1, output_audio: 1, output_image: 1, output_video: 1}}\n"
    );
    WhatIf { book: Book::read(&text).expect("a book").0.into() }
}

fn report(memory: &Memory, what_if: &WhatIf, query: Query) -> Report {
    make(memory, &Query { what_if: Some(what_if.clone()), ..query }).expect("a store in memory is readable")
}

proptest! {
    #![proptest_config(chance::cases(32))]

    #[test]
    fn what_if_equals_charging_each_row(seed in any::<u64>(), key in 0_usize..24) {
        let memory = Memory::of_chance(seed, 120).with_legs();
        let what_if = book("USD", 3);
        let report = report(&memory, &what_if, query(&[Key::Tenant]));
        let mut naive: BTreeMap<String, (i128, i128)> = BTreeMap::new();
        for (_, row, _) in &memory.rows {
            if row.ended_us < memory.kept_since_us || !row.role.is_counted() {
                continue;
            }
            if let Charge::Priced { cost, .. } = row.charge_again(&what_if.book) {
                let sum = naive.entry(row.tenant.to_string()).or_default();
                *sum = (sum.0 + i128::from(cost), sum.1 + 1);
            }
        }
        let mut seen: BTreeMap<String, (i128, i128)> = BTreeMap::new();
        for group in report.groups.iter().filter(|group| group.sums.what_if.exchanges > 0) {
            let sum = seen.entry(group.values[0].to_string()).or_default();
            let of = group.sums.what_if;
            *sum = (sum.0 + of.cost_pico, sum.1 + of.exchanges);
        }
        prop_assert_eq!(seen, naive);
        // The actual sums are those of the report without another book, for every key.
        let by = [Key::ALL[key]];
        let actual = |report: Report| {
            let groups = report.groups.into_iter();
            groups.map(|group| (group.values, group.currency, group.sums.exchanges, group.sums.cost_pico)).collect::<Vec<_>>()
        };
        let plain = make(&memory, &query(&by)).expect("it is readable");
        let beside = make(&memory, &Query { what_if: Some(what_if), ..query(&by) }).expect("it is readable");
        prop_assert_eq!(actual(beside), actual(plain));
    }

    /// Repricing would enter the same sums.
    #[test]
    fn what_if_is_what_repricing_would_charge(seed in any::<u64>()) {
        let mut memory = Memory { kept_since_us: i64::MIN, ..Memory::of_chance(seed, 100) };
        let what_if = book("USD", 7);
        memory.rows.retain(|(_, row, _)| row.model.starts_with("llama") && row.charge_again(&what_if.book).cost().is_some());
        let kept: Vec<_> = memory.rows.iter().map(|(_, row, _)| row.id).collect();
        memory.corrections.retain(|(_, made)| kept.contains(&made.exchange));
        memory.shed.clear();
        let request = Reprice {
            range: ledger::Range::ALL,
            filters: &[],
            unpriced_only: false,
            book: &what_if.book,
            who: "ann",
            at_us: 0,
        };
        let outcome = rehearse(&memory, &request).expect("it is readable");
        let report = report(&memory, &what_if, query(&[]));
        let sum = |of: fn(&crate::Group) -> i128| report.totals.iter().map(of).sum::<i128>();
        let actual = sum(|total| total.sums.cost_pico);
        prop_assert_eq!(
            sum(|total| total.sums.what_if.cost_pico) - actual,
            outcome.after_pico - outcome.before_pico
        );
        prop_assert_eq!(sum(|total| total.sums.what_if.exchanges), i128::from(outcome.exchanges));
    }
}

#[test]
fn missing_charges_are_noted() {
    let mut memory = Memory::of_chance(5, 200);
    memory.rows.iter_mut().for_each(|(_, row, _)| row.response_model = None);
    let report = report(&memory, &book("EUR", 3), query(&[Key::Model]));
    let said = report.sentences(None).join("; ");
    let gone = memory.rows.iter().filter(|(_, row, _)| row.ended_us < memory.kept_since_us).count();
    let without_row = gone + memory.shed.len();
    assert!(without_row > 0);
    assert!(
        said.contains(&format!("{without_row} exchanges have no row, and have no share in `what_if`")),
        "{said}"
    );
    assert!(said.contains("have no price in that book"), "{said}");
    assert!(said.contains("`what_if` is the cost by price book other ("), "{said}");
    assert!(!said.contains("own GPUs"), "{said}");
    let model = report.groups.iter().find(|group| group.values[0].to_string() == "qwen-3").expect("a group");
    let cell = |column: Column| column.cell(model, &report.query, None).to_string();
    assert_eq!([cell(Column::WhatIfCost), cell(Column::WhatIfCurrency)], ["", ""]);
    assert_eq!(cell(Column::WhatIfUnpriced), cell(Column::Exchanges));
}

/// One exchange of 10 output tokens at 3.00 a million, and GPUs of 20 micro-dollars, 5 of them idle.
#[test]
fn own_gpus_are_compared_by_hand() {
    let mut memory = Memory { kept_since_us: i64::MIN, ..Memory::of_chance(1, 5) };
    memory.shed.clear();
    memory.corrections.clear();
    memory.rows.truncate(1);
    let (billed, row, used) = &mut memory.rows[0];
    row.tokens.by_type = [0; meter::TokenType::ALL.len()];
    row.tokens.by_type[meter::TokenType::Output as usize] = 10;
    (row.model, row.tenant, *billed) = ("llama-3".into(), "acme".into(), month::of_day(FIRST_DAY));
    *used = Some(ledger::source::Used { gpu_hours_pico: 15_000_000, gpu_ns: Some(1), ..Default::default() });
    memory.devices.truncate(1);
    memory.devices[0].sums =
        ledger::GpuSums { gpu_hours_pico: 5_000_000, gpu_ns: 1, ..ledger::GpuSums::default() };
    let gpu = Query { basis: Basis::Gpu, ..query(&[Key::Tenant]) };
    for (currency, output, end) in [
        ("USD", 3, "costs 0.00003 USD at these prices: own GPUs are cheaper"),
        ("USD", 2, "costs 0.00002 USD at these prices: both cost the same"),
        ("USD", 1, "costs 0.00001 USD at these prices: these prices are cheaper"),
        ("EUR", 3, "costs 0.00003 EUR at these prices"),
    ] {
        let report = report(&memory, &book(currency, output), gpu.clone());
        let said = report.sentences(None);
        let own = said.iter().find(|said| said.starts_with("own GPUs")).expect("a comparison");
        assert_eq!(*own, format!("own GPUs cost 0.00002 USD; the same usage {end}"));
    }
    let (mut without_use, mut idle_only) = (memory.clone(), memory.clone());
    for memory in [&mut without_use, &mut idle_only] {
        memory.rows[0].2 = None;
    }
    without_use.devices.clear();
    let partial = "own GPUs cost 0.000005 USD; the same usage costs 0.00003 USD at these prices";
    for (memory, expected) in [(without_use, None), (idle_only, Some(partial))] {
        let said = report(&memory, &book("USD", 3), gpu.clone()).sentences(None);
        assert_eq!(said.iter().find(|said| said.starts_with("own GPUs")).map(String::as_str), expected);
    }
    let report = report(&memory, &book("USD", 3), query(&[Key::Tenant]));
    let mut bytes = Vec::new();
    table::write(&report, None, &mut bytes).expect("memory takes it");
    let text = String::from_utf8(bytes).expect("text");
    assert!(text.lines().nth(1).expect("a header").contains("what_if USD  not charged"), "{text}");
    let mut bytes = Vec::new();
    json::write(&report, None, &mut bytes).expect("memory takes it");
    let json: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    let row = &json["rows"][0];
    assert_eq!((&row["what_if_cost"], &row["what_if_currency"]), (&"0.00003".into(), &"USD".into()));
    assert_eq!(row["what_if_unpriced_exchanges"], 0);
}
