//! Allocated idle cost against a naive twin, and against reports without allocation.

use std::collections::BTreeMap;

use ledger::source::{DeviceTotal, Share};
use ledger::{GpuSums, month};
use proptest::prelude::*;

use super::split;
use crate::memory::{DAYS, FIRST_DAY, Memory};
use crate::tests::query;
use crate::{Basis, Column, Filter, Idle, Key, Query, Report, json, make, sheet, table};

fn allocated(idle: Idle, by: &[Key]) -> Query {
    Query { basis: Basis::Gpu, idle, ..query(by) }
}

fn report(memory: &Memory, query: &Query) -> Report {
    make(memory, query).expect("a store in memory is readable")
}

fn numbers(sums: &GpuSums) -> [i128; 4] {
    [sums.energy_nj, sums.gpu_ns, sums.gpu_hours_pico, sums.gpu_energy_pico]
}

/// The sums of the rows of each tenant, `__idle__` and `__unattributed__` included.
fn of_tenants(report: &Report) -> BTreeMap<String, [i128; 4]> {
    let at = report.query.by.iter().position(|key| *key == Key::Tenant).expect("by tenant");
    let mut sums: BTreeMap<String, [i128; 4]> = BTreeMap::new();
    for group in &report.groups {
        let sum = sums.entry(group.values[at].to_string()).or_default();
        sum.iter_mut().zip(numbers(&group.sums.gpu)).for_each(|(sum, more)| *sum += more);
    }
    sums
}

fn filtered(query: Query, filters: &[String]) -> Query {
    Query { filters: filters.iter().map(|text| Filter::read(text).expect("a filter")).collect(), ..query }
}

/// The largest remainders, one unit after the other.
fn naive_split(amount: i128, weights: &[i128]) -> Vec<i128> {
    let all: i128 = weights.iter().sum();
    let mut parts: Vec<_> = weights.iter().map(|weight| amount * weight / all).collect();
    let mut remainders: Vec<_> = weights.iter().map(|weight| amount * weight % all).collect();
    while parts.iter().sum::<i128>() < amount {
        let largest = *remainders.iter().max().expect("a part");
        let at = remainders.iter().position(|remainder| *remainder == largest).expect("it is there");
        parts[at] += 1;
        remainders[at] = -1;
    }
    parts
}

/// The use of each tenant with its share of idle GPUs, row by row.
fn naive(memory: &Memory, idle: Idle) -> BTreeMap<String, [i128; 4]> {
    let mut sums: BTreeMap<String, [i128; 4]> = BTreeMap::new();
    let mut weights: BTreeMap<i32, BTreeMap<String, i128>> = BTreeMap::new();
    let rows = memory
        .rows
        .iter()
        .map(|(billed, row, used)| (*billed, ledger::DailyTotal::of_row(row, used.as_ref())));
    for (billed, line) in rows.chain(memory.shed.iter().cloned()) {
        let tenant = line.key.tenant.to_string();
        let used = numbers(&line.sums.gpu);
        sums.entry(tenant.clone()).or_default().iter_mut().zip(used).for_each(|(sum, more)| *sum += more);
        if billed == month::of_day(line.key.day) {
            let weight = weights.entry(line.key.day).or_default().entry(tenant).or_default();
            *weight = if idle == Idle::Even { 1 } else { *weight + used[2] + used[3] };
        }
    }
    let mut pools: BTreeMap<(i32, Share), [i128; 4]> = BTreeMap::new();
    for device in &memory.devices {
        let pool = pools.entry((device.day, device.share)).or_default();
        pool.iter_mut().zip(numbers(&device.sums)).for_each(|(sum, more)| *sum += more);
    }
    for ((day, share), amounts) in pools {
        let mut tenants = weights.get(&day).cloned().unwrap_or_default();
        tenants.retain(|_, weight| *weight > 0);
        let weights: Vec<_> = tenants.values().copied().collect();
        for (at, amount) in amounts.into_iter().enumerate() {
            if tenants.is_empty() {
                sums.entry(share.mark().to_owned()).or_default()[at] += amount;
                continue;
            }
            for (tenant, part) in tenants.keys().zip(naive_split(amount, &weights)) {
                sums.entry(tenant.clone()).or_default()[at] += part;
            }
        }
    }
    sums
}

/// The book of chance without usage on the second day.
fn with_a_free_day(seed: u64) -> Memory {
    let mut memory = Memory::of_chance(seed, 80).with_legs();
    let free = FIRST_DAY + 1;
    memory.rows.retain(|(_, row, _)| row.day() != free);
    memory.shed.retain(|(_, line)| line.key.day != free);
    let kept: Vec<_> = memory.rows.iter().map(|(_, row, _)| row.id).collect();
    memory.corrections.retain(|(_, made)| kept.contains(&made.exchange));
    memory
}

proptest! {
    #![proptest_config(chance::cases(48))]

    #[test]
    fn parts_sum_to_the_amount(amount in 0..1_i128 << 40, weights in prop::collection::vec(0..1_i128 << 40, 1..9)) {
        prop_assume!(weights.iter().any(|weight| *weight > 0));
        prop_assert_eq!(split(amount, &weights), naive_split(amount, &weights));
        // Beyond the digits of a product.
        let far = amount << 80;
        let parts = split(far, &weights.iter().map(|weight| weight << 60).collect::<Vec<_>>());
        prop_assert_eq!(parts.iter().sum::<i128>(), far);
        prop_assert!(parts.iter().all(|part| *part >= 0));
    }

    #[test]
    fn allocated_cost_equals_naive_twin(seed in any::<u64>(), even in any::<bool>(), key in 0_usize..24) {
        let memory = with_a_free_day(seed);
        let idle = if even { Idle::Even } else { Idle::Proportional };
        let expected = naive(&memory, idle);
        // The keys beside the tenant, and rows in place of totals, change no tenant's sum.
        prop_assert_eq!(&of_tenants(&report(&memory, &allocated(idle, &[Key::Tenant]))), &expected);
        let by = [Key::ALL[key], Key::Tenant];
        prop_assert_eq!(&of_tenants(&report(&memory, &allocated(idle, &by))), &expected);
        let from_rows = filtered(allocated(idle, &[Key::Tenant]), &["consumer=*".to_owned()]);
        let from_rows = report(&memory, &from_rows);
        prop_assert!(from_rows.notes.rows_for.is_some());
        let mut expected_of_rows = expected.clone();
        // The filter excludes devices, which have no consumer.
        let none = from_rows.groups.iter().any(|group| group.share.is_some());
        if !none {
            expected_of_rows.retain(|tenant, _| !tenant.starts_with("__"));
        }
        prop_assert_eq!(&of_tenants(&from_rows), &expected_of_rows);
        for tenant in ["acme", "beta"] {
            let alone = filtered(allocated(idle, &[Key::Tenant, Key::Model]), &[format!("tenant={tenant}")]);
            let alone = of_tenants(&report(&memory, &alone));
            prop_assert_eq!(alone.get(tenant), expected.get(tenant));
            // Two halves of a tenant's usage.
            let half = |sign: &str| {
                let filters = [format!("tenant={tenant}"), format!("model{sign}llama-3")];
                of_tenants(&report(&memory, &filtered(allocated(idle, &[Key::Tenant]), &filters)))
                    .remove(tenant).unwrap_or_default()
            };
            let (one, other) = (half("="), half("!="));
            // If their remainders are equal, neither half gets the last unit of a day's idle or unattributed use.
            let whole = expected.get(tenant).copied().unwrap_or_default();
            let missing: [i128; 4] = std::array::from_fn(|at| whole[at] - one[at] - other[at]);
            prop_assert!(missing.iter().all(|units| (0..=2 * i128::from(DAYS)).contains(units)), "{missing:?}");
        }
    }

    /// The bills of all months sum to the whole, and to the report without allocation.
    #[test]
    fn allocated_cost_is_conserved(seed in any::<u64>(), even in any::<bool>(), key in 0_usize..24) {
        let memory = with_a_free_day(seed).with_late_energy();
        let idle = if even { Idle::Even } else { Idle::Proportional };
        let total = |query: &Query| {
            let report = report(&memory, query);
            let mut sum = GpuSums::default();
            report.groups.iter().for_each(|group| sum.add(&group.sums.gpu));
            let allocated: i128 = report.groups.iter().map(|group| group.sums.allocated_pico).sum();
            let in_total: i128 = report.totals.iter().map(|total| total.sums.allocated_pico).sum();
            assert_eq!(allocated, in_total);
            let noted = report.notes.idle.as_ref().map_or(0, |idle| idle.allocated_pico);
            assert_eq!(allocated, noted);
            sum
        };
        let by = [Key::ALL[key]];
        let whole = total(&allocated(Idle::None, &by));
        prop_assert_eq!(total(&allocated(idle, &by)), whole);
        let mut billed = GpuSums::default();
        for month in 681..685 {
            billed.add(&total(&Query { billed: Some(month), ..allocated(idle, &by) }));
        }
        prop_assert_eq!(billed, whole);
    }
}

/// Three tenants with 2, 1 and 0 dollars of GPU on one day, one dollar of idle GPUs.
pub(crate) fn by_hand() -> Memory {
    let whole = Memory::of_chance(7, 60);
    let (_, template, _) = whole.rows[0].clone();
    let mut memory = Memory { rates: whole.rates, ..Memory::default() };
    for (at, (tenant, pico)) in
        [("acme", 2_000_000_000_000), ("beta", 1_000_000_000_000), ("idler", 0)].into_iter().enumerate()
    {
        let mut row = template.clone();
        row.id.0[15] = u8::try_from(at).expect("few");
        row.tenant = tenant.into();
        row.ended_us = i64::from(FIRST_DAY) * ledger::source::DAY_US + 1;
        let used = ledger::source::Used { gpu_hours_pico: pico, gpu_ns: Some(0), ..Default::default() };
        memory.rows.push((month::of_day(FIRST_DAY), row, Some(used)));
    }
    for day in [FIRST_DAY, FIRST_DAY + 1] {
        for hw_id in ["GPU-1", "GPU-2"] {
            let sums = GpuSums { gpu_hours_pico: 500_000_000_000, ..GpuSums::default() };
            memory.devices.push(DeviceTotal { day, hw_id: hw_id.into(), share: Share::Idle, sums });
        }
    }
    memory
}

#[test]
fn idle_cost_is_allocated_by_hand() {
    let memory = by_hand();
    let cost = |idle| {
        let report = report(&memory, &allocated(idle, &[Key::Tenant]));
        let cell = |group: &crate::Group, column: Column| column.cell(group, &report.query, None).to_string();
        let rows = report.groups.iter();
        rows.map(|group| {
            let columns = [Column::Cost, Column::Allocated].map(|column| cell(group, column));
            format!("{} {}", group.values[0], columns.join(" "))
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(
        cost(Idle::None),
        ["acme 2.00 0.00", "beta 1.00 0.00", "idler 0.00 0.00", "__idle__ 2.00 0.00"]
    );
    let expected = [
        "acme 2.666666666667 0.666666666667",
        "beta 1.333333333333 0.333333333333",
        "idler 0.00 0.00",
        // The second day has no usage.
        "__idle__ 1.00 0.00",
    ];
    assert_eq!(cost(Idle::Proportional), expected);
    let expected = [
        "acme 2.333333333334 0.333333333334",
        "beta 1.333333333333 0.333333333333",
        "idler 0.333333333333 0.333333333333",
        "__idle__ 1.00 0.00",
    ];
    assert_eq!(cost(Idle::Even), expected);
}

#[test]
fn total_has_its_name_without_keys() {
    let mut bytes = Vec::new();
    table::write(&report(&by_hand(), &allocated(Idle::None, &[])), None, &mut bytes)
        .expect("memory takes it");
    let text = String::from_utf8(bytes).expect("text");
    let first = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = first.filter(|word| !word.starts_with("---")).take(4).collect();
    assert_eq!(names, ["share", "used", "__idle__", "total"], "{text}");
}

#[test]
fn allocation_is_marked_in_each_format() {
    let memory = by_hand();
    let report = report(&memory, &allocated(Idle::Proportional, &[Key::Tenant]));
    let written = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        String::from_utf8(bytes).expect("text")
    };
    let text = written(&|to| table::write(&report, Some(2), to).expect("memory takes it"));
    assert!(text.lines().nth(1).expect("a header").contains("cost  allocated  currency"), "{text}");
    assert!(text.starts_with("Spend by GPU time and energy, idle in proportion, all time"), "{text}");
    let note = "1.00 USD of idle and unattributed GPU cost is allocated to the tenants with usage on its day, in \
                proportion to their GPU cost (`allocated`); 1.00 USD of days without such usage stays idle";
    assert!(text.contains(note), "{text}");
    let csv = written(&|to| {
        sheet::write(&report, &Column::usual(&report.query), Some(2), to).expect("memory takes it")
    });
    assert!(csv.lines().next().expect("a header").contains("cost,allocated,currency"), "{csv}");
    assert!(csv.contains("2.67,0.67,USD"), "{csv}");
    let json = written(&|to| json::write(&report, Some(2), to).expect("memory takes it"));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["rows"][0]["allocated"], "0.67");
    assert_eq!(json["totals"][0]["allocated"], "1.00");
    assert_eq!(json["savings"][0]["idle_gpu"]["amount"], "2.00");
}

/// Legs are no exchanges, and use GPUs.
#[test]
fn tenant_of_legs_bears_an_even_share() {
    let mut memory = by_hand();
    let (_, row, used) = &mut memory.rows[0];
    row.role = meter::Role::Prefill;
    used.as_mut().expect("known").gpu_hours_pico = 6_000_000_000_000;
    let sums = of_tenants(&report(&memory, &allocated(Idle::Even, &[Key::Tenant])));
    assert_eq!(sums["acme"][2], 6_333_333_333_334);
}

/// What arrives after a month was closed changes no share of it.
#[test]
fn late_usage_has_no_share() {
    let mut memory = by_hand();
    let before = of_tenants(&report(&memory, &allocated(Idle::Proportional, &[Key::Tenant])));
    let (billed, mut late, used) = memory.rows[0].clone();
    late.tenant = "late".into();
    late.id.0[15] = 100;
    memory.rows.push((billed + 1, late, used));
    let mut after = of_tenants(&report(&memory, &allocated(Idle::Proportional, &[Key::Tenant])));
    assert_eq!(after.remove("late"), Some([0, 0, 2_000_000_000_000, 0]), "its own use only");
    assert_eq!(after, before);
}
