//! Reports against a twin that adds up rows one by one, and reports from daily totals against those from rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ledger::source::{DAY_US, Gap};
use ledger::{Calendar, Range, Zone, month};
use ledger::{Class, DailyTotal};
use meter::{Disagreement, Provenance, TokenType};
use price::Charge;
use proptest::prelude::*;
use serde_json::Value as Json;
use text::Glob;

use super::focus::{self, Billing, Options, Version};
use super::key::{NO_DETAIL, Value};
use super::memory::{DAYS, FIRST_DAY, Memory, attributes, cost, rate};
use super::query::RowsFor;
use super::twin::{has_tokens_that_stay, seen, twin};
use super::units::UnitSums;
use super::{Basis, Column, Filter, Group, Key, Order, Query, Report, json, make, sheet, table};

pub(crate) fn query(by: &[Key]) -> Query {
    Query { by: by.to_vec(), attributes: attributes(), ..Query::all(i64::MAX) }
}

fn report(memory: &Memory, query: &Query) -> Report {
    make(memory, query).expect("a store in memory is readable")
}

fn parsed(report: &Report) -> Vec<Json> {
    let mut text = Vec::new();
    json::write(report, None, &mut text).expect("memory takes it");
    let json: Json = serde_json::from_slice(&text).expect("it is JSON");
    json["rows"].as_array().expect("an array").clone()
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut text = Vec::new();
    write(&mut text);
    String::from_utf8(text).expect("it is text")
}

fn line_keys() -> Vec<Key> {
    let tag = Key::named("tag.env").expect("a key");
    Key::ALL.into_iter().filter(|key| key.in_lines()).chain([tag]).collect()
}

/// Returns one of several calendars. In the last, the zone changes within the book.
pub(crate) fn calendar(at: usize) -> Calendar {
    let zone = |name| Zone::named(name).expect("a zone");
    match at {
        0 => Calendar::default(),
        1 => Calendar::of(zone("Europe/Berlin")),
        2 => Calendar::of(zone("America/Los_Angeles")),
        _ => Calendar::default().changed(zone("Pacific/Kiritimati"), month::of_day(FIRST_DAY)),
    }
}

proptest! {
    #![proptest_config(chance::cases(48))]

    #[test]
    fn report_equals_naive_twin(
        zone in 0_usize..4, seed in any::<u64>(), chosen in prop::collection::vec(0_usize..21, 0..4),
    ) {
        let memory = Memory::of_calendar(calendar(zone), seed, 150);
        let mut by: Vec<Key> = chosen.into_iter().map(|at| line_keys()[at]).collect();
        by.dedup();
        prop_assume!(!has_tokens_that_stay(&memory));
        let report = report(&memory, &query(&by));
        prop_assert!(report.notes.rows_for.is_none_or(|why| why == RowsFor::Rates));
        prop_assert_eq!(seen(&report), twin(&memory, &by, |_| true));
    }

    #[test]
    fn rows_and_totals_give_the_same_report(
        zone in 0_usize..4, seed in any::<u64>(), chosen in 0_usize..21, detail in 0_usize..3,
    ) {
        let memory = Memory::of_calendar(calendar(zone), seed, 150);
        let by = [line_keys()[chosen]];
        let from_lines = report(&memory, &query(&by));
        // A filter that matches everything, by a key that daily totals do not have: rows must be read.
        let key = [Key::Consumer, Key::ResponseModel, Key::Dialect][detail];
        let filters = vec![Filter { key, except: false, patterns: vec![Glob::new("*")] }];
        let from_rows = report(&memory, &Query { filters, ..query(&by) });
        prop_assert!(from_rows.notes.rows_for.is_some());
        // Only rows tell the price of each token that was repriced.
        let sums = |groups: &[Group]| {
            let without = |group: &Group| {
                let sums = super::sums::Sums { units: UnitSums::default(), ..group.sums.clone() };
                Group { sums, ..group.clone() }
            };
            groups.iter().map(without).collect::<Vec<_>>()
        };
        prop_assert_eq!(sums(&from_rows.groups), sums(&from_lines.groups));
        prop_assert_eq!(sums(&from_rows.totals), sums(&from_lines.totals));
    }

    /// Whole days are complete; of parts of days, the report has the remaining rows only.
    #[test]
    fn part_of_a_day_is_made_from_rows(
        zone in 0_usize..4, seed in any::<u64>(), since in 0_i64..DAY_US, long in 1_i64..4 * DAY_US,
        kept in -DAY_US..4 * DAY_US,
    ) {
        let first_us = i64::from(FIRST_DAY) * DAY_US;
        let memory = Memory::of_calendar(calendar(zone), seed, 150);
        let memory = Memory { kept_since_us: first_us + kept, ..memory };
        prop_assume!(!has_tokens_that_stay(&memory));
        let range = Range { since_us: first_us + since, until_us: first_us + since + long };
        let part = report(&memory, &Query { range, ..query(&[Key::Tenant, Key::Version]) });
        let whole = |day: i32| range.whole_days(&memory.calendar).contains(&day);
        let touched = |day: i32| range.days(&memory.calendar).contains(&day);
        let (mut only, mut left_out) = (memory.clone(), 0);
        only.rows.retain(|(_, row, _)| {
            let (day, kept) = (DailyTotal::of_row(row, None).key.day, row.ended_us >= memory.kept_since_us);
            left_out += i128::from(touched(day) && !whole(day) && !kept);
            whole(day) || kept && range.holds(row.ended_us)
        });
        only.shed.retain(|(_, line)| {
            left_out += i128::from(touched(line.key.day) && !whole(line.key.day));
            whole(line.key.day)
        });
        let there: BTreeSet<_> = only.rows.iter().map(|(_, row, _)| row.id.0).collect();
        only.corrections.retain(|(_, made)| whole(made.line.key.day) || there.contains(&made.exchange.0));
        prop_assert_eq!(seen(&part), twin(&only, &[Key::Tenant, Key::Version], |_| true));
        prop_assert_eq!(part.notes.left_out, left_out);
    }

    /// As a ledger of that time zone, while all rows are kept; of others, the report says how many are elsewhere.
    #[test]
    fn days_of_another_time_zone_are_made_from_rows(zone in 0_usize..4, other in 1_usize..3, seed in any::<u64>()) {
        let by = [Key::Day, Key::Tenant];
        let [ledger, wanted] = [calendar(zone), calendar(other)].map(|calendar| {
            let memory = Memory::of_calendar(calendar, seed, 150);
            Memory { kept_since_us: i64::MIN, shed: Vec::new(), ..memory }
        });
        let time_zone = Some(wanted.calendar.last_zone().clone());
        let asked = Query { time_zone, ..query(&by) };
        let report_of = |memory: &Memory| report(memory, &asked);
        prop_assert_eq!(seen(&report_of(&ledger)), seen(&report(&wanted, &query(&by))));
        prop_assert_eq!(report_of(&ledger).notes.rows_for, (zone != other).then_some(RowsFor::TimeZone));
        let gone = Memory { kept_since_us: i64::MAX, ..ledger.clone() };
        let from_totals = report_of(&gone);
        prop_assert_eq!(seen(&from_totals), seen(&report(&ledger, &query(&by))), "the days of the ledger");
        let all = i128::try_from(ledger.rows.len()).expect("small");
        prop_assert_eq!(from_totals.notes.other_days, if zone == other { 0 } else { all });
        let sentence = format!("{all} exchanges are on a day of the ledger's time zone, not of the requested one");
        let said = from_totals.sentences(None).iter().any(|said| said.contains(&sentence));
        prop_assert_eq!(said, zone != other);
    }

    #[test]
    fn gpu_money_is_conserved(seed in any::<u64>()) {
        let memory = Memory::of_chance(seed, 100);
        let asked = Query { basis: Basis::Gpu, ..query(&[Key::Month, Key::Tenant]) };
        let report = report(&memory, &asked);
        let of_rows: i128 = memory.rows.iter().map(|(_, row, used)| DailyTotal::of_row(row, used.as_ref()))
            .chain(memory.shed.iter().map(|(_, line)| line.clone()))
            .map(|line| line.sums.gpu.gpu_hours_pico + line.sums.gpu.gpu_energy_pico).sum();
        let of_devices: i128 = memory.devices.iter().map(|line| line.sums.gpu_hours_pico + line.sums.gpu_energy_pico).sum();
        let sum: i128 = report.groups.iter().map(|group| group.sums.gpu.cost_pico()).sum();
        prop_assert_eq!(sum, of_rows + of_devices);
        prop_assert_eq!(report.totals.len(), 1);
        prop_assert_eq!(report.totals[0].sums.gpu.cost_pico(), sum);
        for mark in ["__idle__", "__unattributed__"] {
            prop_assert!(report.groups.iter().any(|group| group.values[1].to_string() == mark));
        }
    }

    /// All money by GPU is US dollars, also for exchanges charged in another currency, or in none.
    #[test]
    fn gpu_report_filters_by_shown_currency(seed in any::<u64>()) {
        let memory = Memory::of_chance(seed, 100);
        let of = |filter: &[&str], by: &[Key]| {
            let filters = filter.iter().map(|text| Filter::read(text).expect("a filter")).collect();
            report(&memory, &Query { basis: Basis::Gpu, filters, ..query(by) })
        };
        for by in [&[Key::Currency][..], &[Key::Tenant, Key::Class]] {
            let all = of(&[], by);
            let dollars = of(&["currency=USD"], by);
            prop_assert_eq!(&dollars.groups, &all.groups);
            prop_assert_eq!(dollars.notes.unmeasured, all.notes.unmeasured);
            prop_assert_eq!(of(&["currency=EUR"], by).groups, []);
            prop_assert_eq!(of(&["currency="], by).groups, []);
        }
    }

    #[test]
    fn json_and_csv_match_the_report(seed in any::<u64>()) {
        let memory = Memory::of_chance(seed, 60);
        let report = report(&memory, &query(&[Key::Tenant, Key::Model, Key::Currency]));
        let json = parsed(&report);
        let sheet = text(|to| sheet::write(&report, &Column::all(&report.query), None, to).expect("memory takes it"));
        let mut sheet = csv::Reader::from_reader(sheet.as_bytes());
        let header = sheet.headers().expect("a header").clone();
        let records: Vec<_> = sheet.records().map(|record| record.expect("a record")).collect();
        prop_assert_eq!(json.len(), report.groups.len());
        prop_assert_eq!(records.len(), report.groups.len());
        for ((object, record), group) in json.iter().zip(&records).zip(&report.groups) {
            let cell = |name: &str| record[header.iter().position(|is| is == name).expect("a column")].to_owned();
            prop_assert_eq!(&object["tenant"], &group.values[0].to_string());
            let tenant = cell("tenant");
            let name = group.values[0].to_string();
            prop_assert_eq!(tenant.trim_start_matches('\''), crate::cell::plain(&name));
            prop_assert!(!tenant.starts_with('=') && !tenant.contains(char::is_control));
            prop_assert_eq!(object["exchanges"].to_string(), cell("exchanges"));
            let sum = |input: bool| TokenType::ALL.iter().filter(|kind| kind.is_input() == input)
                .map(|kind| object[kind.name()].as_i64().expect("a count")).sum::<i64>();
            prop_assert_eq!(object["input_tokens"].as_i64(), Some(sum(true)));
            prop_assert_eq!(object["output_tokens"].as_i64(), Some(sum(false)));
            prop_assert_eq!(object["uncounted_prompts"].to_string(), cell("uncounted_prompts"));
            prop_assert_eq!(object["cost"].as_str().unwrap_or_default(), cell("cost"));
            prop_assert_eq!(object["currency"].as_str().unwrap_or_default(), cell("currency"));
            prop_assert_eq!(object["cost"].is_null(), object["currency"].is_null());
            for side in ["input", "output"] {
                let shares = object["provenance"][side].as_object().expect("shares");
                let millionths = |share: &Json| {
                    let share: f64 = share.as_str().expect("a decimal").parse().expect("a number");
                    (share * 1e6).round()
                };
                let whole: f64 = shares.values().map(millionths).sum();
                prop_assert!(shares.is_empty() || whole == 1e6, "{:?}", shares);
                for known in Provenance::ALL {
                    let share = shares.get(known.name()).and_then(Json::as_str).unwrap_or_default();
                    prop_assert_eq!(share, cell(&format!("{side}_{}", known.name())));
                }
            }
        }
    }
}

#[test]
fn totals_without_rows_have_their_own_group() {
    let memory = Memory::of_chance(7, 200);
    let report = report(&memory, &query(&[Key::Consumer]));
    let all: i128 = report.groups.iter().map(|group| group.sums.exchanges).sum();
    assert_eq!(all, 200);
    let gone: i128 = report
        .groups
        .iter()
        .filter(|group| group.values[0].to_string() == NO_DETAIL)
        .map(|group| group.sums.exchanges)
        .sum();
    let kept = memory.rows.iter().filter(|(_, row, _)| row.ended_us >= memory.kept_since_us).count();
    assert_eq!(gone, 200 - i128::try_from(kept).expect("small"));
    assert!(gone > 0);
}

#[test]
fn report_notes_what_sums_leave_out() {
    let mut memory = Memory::of_chance(3, 200);
    let from_us = i64::from(FIRST_DAY) * DAY_US;
    memory.gaps.push(Gap::unknown(from_us, from_us + 90_000_000, "crash"));
    let report = report(&memory, &query(&[Key::Tenant]));
    let text = text(|to| table::write(&report, None, to).expect("memory takes it"));
    for said in [
        "gap from 2026-10-29T00:00:00Z to 2026-10-29T00:01:30Z (crash): what it lacks is not known",
        "known only as totals",
        "no price, not in the cost: unlisted/model",
        "no output token count",
        "no prompt token count",
        "total",
        "=evil(),\\\"\\n",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    let widths: Vec<_> =
        text.lines().filter(|line| line.contains("USD")).map(|line| line.find("USD")).collect();
    assert!(widths.windows(2).all(|two| two[0] == two[1]), "columns are aligned\n{text}");
}

/// Two groups of 0.005 each: rounded, each row is 0.00 and the total is 0.01.
#[test]
fn rounded_total_notes_its_distance_from_rows() {
    let mut report = report(&Memory::of_chance(3, 50), &query(&[Key::Tenant]));
    let dollars = report.groups.iter().position(|group| group.currency.is_some_and(|is| is.code() == "USD"));
    let group = report.groups.swap_remove(dollars.expect("one in dollars"));
    let of = |cost_pico, group: &Group| {
        let sums = super::sums::Sums { cost_pico, ..group.sums.clone() };
        Group { values: [Value::Text("acme".into())].into(), sums, ..group.clone() }
    };
    report.groups = vec![of(5_000_000_000, &group), of(5_000_000_000, &group)];
    report.totals = vec![Group { values: Box::default(), is_total: true, ..of(10_000_000_000, &group) }];
    let apart = "the rounded rows add up to 0.00 USD, and the total is 0.01 USD";
    assert!(!report.sentences(None).iter().any(|said| said.contains("rounded")));
    assert!(!report.sentences(Some(3)).iter().any(|said| said.contains("rounded")));
    let json = text(|to| json::write(&report, Some(2), to).expect("memory takes it"));
    let json: Json = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!((&json["rows"][0]["cost"], &json["totals"][0]["cost"]), (&"0.00".into(), &"0.01".into()));
    assert!(
        json["notes"].as_array().expect("notes").iter().any(|said| said.as_str().unwrap().starts_with(apart))
    );
    let table = text(|to| table::write(&report, Some(2), to).expect("memory takes it"));
    assert!(table.contains(apart), "{table}");
    let columns = [Column::Cost, Column::Currency];
    let sheet = |round| text(|to| sheet::write(&report, &columns, round, to).expect("memory takes it"));
    assert_eq!(sheet(None), "tenant,cost,currency\nacme,0.005,USD\nacme,0.005,USD\n");
    let rounded = "row,tenant,cost,currency\ngroup,acme,0.00,USD\ngroup,acme,0.00,USD\ntotal,,0.01,USD\n";
    assert_eq!(sheet(Some(2)), rounded);
}

#[test]
fn top_groups_keep_the_total_of_all() {
    let mut report =
        report(&Memory::of_chance(3, 200), &Query { order: Order::Cost, ..query(&[Key::Tenant]) });
    let (all, totals) = (report.groups.clone(), report.totals.clone());
    report.keep_first(1);
    assert_eq!((&report.groups[..], &report.totals), (&all[..1], &totals));
    let text = text(|to| table::write(&report, Some(2), to).expect("memory takes it"));
    assert!(
        text.contains(&format!("{} more rows are not listed; the total includes them", all.len() - 1)),
        "{text}"
    );
    assert!(text.contains("\ntotal") && !text.contains("rounded"), "{text}");
}

#[test]
fn report_notes_state_of_its_months() {
    let memory = Memory::of_chance(3, 200);
    let october_ended_us = month::begin_us(682);
    let report = report(&memory, &Query { now_us: october_ended_us, ..query(&[Key::Tenant]) });
    let json = text(|to| json::write(&report, None, to).expect("memory takes it"));
    let json: Json = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["months"], serde_json::json!({"2026-10": "ended", "2026-11": "open"}));
    let said = "2026-10 is over and not closed, so that late exchanges may still be added; 2026-11 is open";
    assert!(text(|to| table::write(&report, None, to).expect("memory takes it")).contains(said));
    let billed = Query { billed: Some(682), now_us: 0, ..query(&[]) };
    assert!(
        make(&memory, &billed)
            .unwrap()
            .notes
            .sentences(&Range::ALL)
            .iter()
            .any(|said| said.starts_with("2026-11 is in the future"))
    );
}

/// The column and the note count the same exchanges.
#[test]
fn uncounted_prompts_are_shown_by_row() {
    let report = report(&Memory::of_chance(3, 200), &query(&[Key::Tenant]));
    let rows: i128 = report.groups.iter().map(|group| group.sums.uncounted_prompts).sum();
    assert_eq!(rows, report.notes.uncounted_prompts);
    assert!(rows > 0);
    let text = text(|to| table::write(&report, None, to).expect("memory takes it"));
    assert!(text.lines().nth(1).expect("a header").contains("unpriced  uncounted  input known"), "{text}");
}

#[test]
fn contradicted_counts_are_noted() {
    let mut memory = Memory::of_chance(3, 50);
    let is_counted = |row: &ledger::Row| row.role.is_counted() && row.ended_us >= memory.kept_since_us;
    let counted: Vec<_> = (0..memory.rows.len()).filter(|n| is_counted(&memory.rows[*n].1)).collect();
    let marks = [Disagreement::Total, Disagreement::Part, Disagreement::Sequence, Disagreement::CachedExcess];
    for (n, mark) in counted.iter().zip(marks) {
        memory.rows[*n].1.usage_disagreement = Some(mark);
    }
    let tenant = Arc::clone(&memory.rows[counted[0]].1.tenant);
    let expected = counted[..3].iter().filter(|n| memory.rows[**n].1.tenant == tenant).count();
    let notes = report(&memory, &query(&[])).notes;
    assert_eq!(notes.contradicted, 3);
    let said = notes.sentences(&Range::ALL).join("\n");
    assert!(said.contains("3 exchanges have token counts that contradict one another"), "{said}");
    let filters = vec![Filter { key: Key::Tenant, except: false, patterns: vec![Glob::new(&tenant)] }];
    let notes = report(&memory, &Query { filters, ..query(&[]) }).notes;
    assert_eq!(notes.contradicted, expected as i128);
}

#[test]
fn total_is_shown_for_several_groups() {
    let mut memory = Memory::of_chance(3, 50);
    let dollars = |line: &DailyTotal| line.key.model.starts_with("llama");
    memory.rows.retain(|(_, row, used)| dollars(&DailyTotal::of_row(row, used.as_ref())));
    memory.shed.retain(|(_, line)| dollars(line));
    memory.corrections.retain(|(_, made)| dollars(&made.line));
    for (by, basis, lines) in [
        (vec![], Basis::Price, 1),
        (vec![], Basis::Gpu, 5),
        (vec![Key::Currency], Basis::Price, 1),
        (vec![Key::Model], Basis::Price, 4),
    ] {
        let report = report(&memory, &Query { basis, ..query(&by) });
        let text = text(|to| table::write(&report, None, to).expect("memory takes it"));
        let rows = text.lines().skip(2).take_while(|line| !line.starts_with("Note")).count();
        assert_eq!(rows, lines, "by {by:?}\n{text}");
        assert_eq!(text.contains("used"), basis == Basis::Gpu, "{text}");
    }
}

/// A correction is grouped with its exchange, so that an exchange priced later is not unpriced.
#[test]
fn unpriced_key_includes_later_corrections() {
    let whole = Memory::of_chance(3, 200);
    let mut memory = Memory { kept_since_us: i64::MIN, shed: Vec::new(), ..whole };
    let rows = &memory.rows;
    memory.corrections.retain(|(_, made)| rows.iter().any(|(_, row, _)| row.id == made.exchange));
    let unpriced = |row: &ledger::Row| matches!(row.charge, Charge::Unpriced(_));
    let first = memory.rows.iter().filter(|(_, row, _)| unpriced(row)).count();
    let since: u64 = memory.corrections.iter().map(|(_, made)| made.line.sums.exchanges).sum();
    assert!(first > 0 && since > 0);
    let of = |filter: &str| {
        let filters = vec![Filter::read(filter).expect("a filter")];
        let report = report(&memory, &Query { filters, ..query(&[Key::Unpriced, Key::Model]) });
        assert!(report.notes.rows_for.is_some());
        report.groups
    };
    let groups = of("unpriced!=");
    let sum = |of: &dyn Fn(&Group) -> i128| groups.iter().map(of).sum::<i128>();
    assert_eq!(sum(&|group| group.sums.exchanges), i128::try_from(first).expect("few"));
    assert_eq!(sum(&|group| group.sums.unpriced), sum(&|group| group.sums.exchanges) - i128::from(since));
    assert!(groups.iter().all(|group| group.sums.unpriced >= 0), "{groups:?}");
    assert!(of("unpriced=").iter().all(|group| group.sums.unpriced == 0 && group.sums.priced));
}

/// The counts of rows by what daily totals lack.
#[test]
fn groups_by_detail_are_those_of_rows() {
    let memory = Memory { kept_since_us: i64::MIN, ..Memory::of_chance(4, 100) };
    let of_key = |key: Key, row: &ledger::Row| match key {
        Key::Consumer => row.consumer.clone(),
        Key::ResponseModel => row.response_model.clone(),
        _ => Some(row.dialect.clone()),
    };
    for key in [Key::Consumer, Key::ResponseModel, Key::Dialect] {
        let (mut counts, mut reported) = (BTreeMap::new(), BTreeMap::new());
        for (_, row, _) in &memory.rows {
            let value = of_key(key, row).unwrap_or_default();
            *counts.entry(value.to_string()).or_insert(0) += 1;
        }
        counts.insert(NO_DETAIL.to_owned(), i128::try_from(memory.shed.len()).expect("few"));
        for group in report(&memory, &query(&[key])).groups {
            *reported.entry(group.values[0].to_string()).or_insert(0) += group.sums.exchanges;
        }
        assert_eq!(reported, counts, "{}", key.name());
    }
}

#[test]
fn damaged_ledger_is_not_summed() {
    let mut memory = Memory::of_chance(5, 50);
    memory.rates.remove(1);
    let error = make(&memory, &query(&[Key::Tenant])).expect_err("a rate is missing").to_string();
    assert!(error.contains("ledger verify"), "{error}");
}

#[test]
fn filters_and_billing_months() {
    let memory = Memory::of_chance(11, 300);
    let filters = ["tenant=acme", "ending!=error*", "day=2026-10-*"];
    let filters = filters.iter().map(|text| Filter::read(text).expect("a filter")).collect();
    let filtered = report(&memory, &Query { filters, ..query(&[Key::Model]) });
    let november = month::read("2026-11").expect("a month");
    let day = |line: &DailyTotal| month::of_day(line.key.day) < november;
    let expected = twin(&memory, &[Key::Model], |line| {
        &*line.key.tenant == "acme" && !line.key.ending.starts_with("error") && day(line)
    });
    assert_eq!(seen(&filtered), expected);
    let by_month = report(&memory, &query(&[Key::Billed]));
    for group in by_month.groups {
        let month = month::read(&group.values[0].to_string());
        let alone = report(&memory, &Query { billed: month, ..query(&[Key::Billed]) });
        assert!(alone.groups.contains(&group));
    }
}

/// For a part of a day without rows, the note counts only exchanges that the query may select.
#[test]
fn left_out_counts_only_selected_exchanges() {
    let memory = Memory { kept_since_us: i64::MAX, ..Memory::of_chance(13, 300) };
    let first_us = i64::from(FIRST_DAY) * DAY_US;
    let range = Range { since_us: first_us + DAY_US / 4, until_us: first_us + DAY_US / 2 };
    let rows =
        memory.rows.iter().map(|(billed, row, used)| (*billed, DailyTotal::of_row(row, used.as_ref())));
    let lines: Vec<_> =
        rows.chain(memory.shed.iter().cloned()).filter(|(_, line)| line.key.day == FIRST_DAY).collect();
    let options = Options {
        version: Version::V1_4,
        billing: Billing::Showback,
        issuer: "platform".into(),
        service: "LLM Inference".into(),
    };
    let of = |filters: &[&str], billed| {
        let filters = filters.iter().map(|text| Filter::read(text).expect("a filter")).collect();
        let asked = Query { range, billed, filters, ..query(&[Key::Tenant]) };
        let report = report(&memory, &asked);
        assert!(report.groups.is_empty(), "{:?}", report.groups);
        let text = text(|to| table::write(&report, None, to).expect("memory takes it"));
        assert!(text.contains("\nNo exchange of this period matches.\n"), "{text}");
        let notes = focus::write(&memory, &asked, &options, None, &mut Vec::new()).expect("memory takes it");
        assert_eq!(notes.left_out, report.notes.left_out);
        report.notes.left_out
    };
    let count = |keep: &dyn Fn(&DailyTotal) -> bool| {
        i128::try_from(lines.iter().filter(|(_, line)| keep(line)).count()).expect("few")
    };
    let dollars = |line: &DailyTotal| line.key.model.starts_with("llama");
    for (filters, expected) in [
        (&[][..], count(&|_| true)),
        (&["tenant=acme"], count(&|line| &*line.key.tenant == "acme")),
        (&["tenant!=acme", "model=llama*"], count(&|line| &*line.key.tenant != "acme" && dollars(line))),
        (&["currency=USD"], count(&dollars)),
        (&["class=shed"], count(&|line| line.key.class == Class::Shed)),
        (&["tenant=acme", "consumer=user-1"], count(&|line| &*line.key.tenant == "acme")),
        (&["consumer!=user-1"], count(&|_| true)),
        (&["unpriced!="], count(&|line| line.key.rate.is_none())),
        (&["consumer!=__no_detail__"], 0),
        (&["tenant=nobody"], 0),
    ] {
        assert_eq!(of(filters, None), expected, "{filters:?}");
    }
    let october = month::read("2026-10").expect("a month");
    for billed in [october, october + 1] {
        let expected = lines.iter().filter(|(month, _)| *month == billed).count();
        assert_eq!(of(&[], Some(billed)), i128::try_from(expected).expect("few"), "{billed}");
        assert!(expected > 0);
    }
}

#[test]
fn rows_follow_the_requested_order() {
    let memory = Memory::of_chance(2, 200);
    for order in Order::ALL {
        let report = report(&memory, &Query { order, ..query(&[Key::Tenant, Key::Day]) });
        let number = |group: &Group| match order {
            Order::Keys => 0,
            Order::Cost => group.cost(Basis::Price).unwrap_or(i128::MIN),
            Order::Tokens => group.sums.input() + group.sums.output(),
            Order::Exchanges => group.sums.exchanges,
        };
        assert!(report.groups.windows(2).all(|two| number(&two[0]) >= number(&two[1])), "{}", order.name());
    }
    let days = i128::from(DAYS);
    assert!(days > 1, "the report has several groups");
}

#[test]
fn report_of_one_row_by_hand() {
    let rate = rate("v1", "llama*", b"USD", 1_500_000, 0);
    let mut memory = Memory::of_chance(1, 1);
    memory.rates = vec![rate.clone()];
    memory.corrections.clear();
    let (billed, mut row, _) = memory.rows.pop().expect("one");
    row.tokens.by_type = [0; TokenType::ALL.len()];
    row.tokens.by_type[TokenType::Input as usize] = 1000;
    row.tokens.by_type[TokenType::Output as usize] = 10;
    row.tokens.input_provenance = Provenance::Engine;
    row.tokens.output_provenance = Provenance::Frames;
    row.charge = Charge::Priced { cost: cost(&rate, &row.tokens), rate };
    row.tenant = "acme".into();
    memory.rows.push((billed, row, None));
    memory.kept_since_us = i64::MIN;
    let json = parsed(&report(&memory, &query(&[Key::Tenant])));
    assert_eq!(json[0]["cost"], "0.00156");
    assert_eq!(json[0]["provenance"]["input"]["engine"], "1");
    assert_eq!(json[0]["provenance"]["output"]["frames"], "1");
    assert_eq!(json[0]["unpriced_exchanges"], 0);
    assert_eq!(json[0]["input_tokens"], 1000);
}

/// By every key, and for a part of a day, which needs rows.
#[test]
fn prefill_legs_change_no_report() {
    let (plain, legs) = (Memory::of_chance(17, 200), Memory::of_chance(17, 200).with_legs());
    let part =
        Range { since_us: i64::from(FIRST_DAY) * DAY_US + 7, until_us: i64::from(FIRST_DAY + 3) * DAY_US };
    let more = [Query { range: part, ..query(&[Key::Tenant]) }, query(&[])];
    for asked in Key::ALL.map(|key| query(&[key])).into_iter().chain(more) {
        let (plain, legs) = (make(&plain, &asked).unwrap(), make(&legs, &asked).unwrap());
        assert_eq!(legs.groups, plain.groups, "{asked:?}");
        assert_eq!(legs.totals, plain.totals, "{asked:?}");
        assert_eq!(legs.notes, plain.notes, "{asked:?}");
    }
    let written = |memory: &Memory| {
        let options = Options {
            version: Version::V1_4,
            billing: Billing::Chargeback,
            issuer: "i".into(),
            service: "s".into(),
        };
        let mut sheet = Vec::new();
        focus::write(memory, &query(&[]), &options, None, &mut sheet).unwrap();
        String::from_utf8(sheet).unwrap()
    };
    assert_eq!(written(&legs), written(&plain));
}
