//! The dataset with allocated idle cost, attributes of tenants and metadata.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger::GpuSums;
use proptest::prelude::*;
use serde_json::Value as Json;

use super::{metadata, write};
use crate::focus::tests::{options, pico, query, rows};
use crate::focus::{Billing, Version, columns};
use crate::memory::{Memory, attributes};
use crate::{Basis, Filter, Idle, Key, Query, make};

fn allocated(idle: Idle) -> Query {
    Query { idle, attributes: attributes(), ..query(&[Key::Month], Basis::Gpu) }
}

proptest! {
    #![proptest_config(chance::cases(24))]

    #[test]
    fn allocated_charges_are_those_of_the_report(seed in any::<u64>(), even in any::<bool>(), at in 0_usize..3) {
        let memory = Memory::of_chance(seed, 100).with_late_energy();
        let (idle, version) = (if even { Idle::Even } else { Idle::Proportional }, Version::ALL[at]);
        let options = options(version, Billing::Chargeback);
        let (_, rows) = rows(&memory, &allocated(idle), &options);
        let report = make(&memory, &Query { idle, basis: Basis::Gpu, ..query(&[Key::Tenant], Basis::Gpu) })
            .expect("it is readable");
        // A row is of the tenant that bears it.
        let mut seen: BTreeMap<String, i128> = BTreeMap::new();
        let mut ratios: BTreeMap<[String; 4], i128> = BTreeMap::new();
        for row in &rows {
            let bearer = match version {
                Version::V1_2 => &row["SubAccountId"],
                _ if row["ResourceType"] == "GPU" => &row["AllocatedResourceId"],
                _ => &row["SubAccountId"],
            };
            let bearer = if bearer.is_empty() { &row["ResourceId"] } else { bearer };
            *seen.entry(bearer.clone()).or_default() += pico(&row["EffectiveCost"]);
            if version == Version::V1_2 {
                continue;
            }
            let is_split = row["ResourceType"] == "GPU";
            prop_assert_eq!(row["AllocatedMethodId"].is_empty(), !is_split);
            prop_assert_eq!(row["AllocatedMethodDetails"].is_empty(), !is_split);
            prop_assert_eq!(&row["AllocatedResourceName"], &row["AllocatedResourceId"]);
            prop_assert!(is_split || row["AllocatedResourceId"].is_empty());
            // Other columns of an allocated charge are those of its origin.
            prop_assert!(!is_split || (row["SubAccountId"].is_empty() && row["Tags"].is_empty()));
            prop_assert_eq!(row["AllocatedTags"].is_empty(), row["AllocatedResourceId"].is_empty());
            if is_split {
                let name = if even { "tokenmeter-idle-even" } else { "tokenmeter-idle-proportional" };
                prop_assert_eq!(&row["AllocatedMethodId"], name);
                let details: Json = serde_json::from_str(&row["AllocatedMethodDetails"]).expect("JSON");
                let ratio = row["AllocatedMethodDetails"].split("Ratio\":").nth(1).expect("a ratio");
                prop_assert!(details["Elements"][0]["AllocatedRatio"].is_number());
                let origin = ["BillingPeriodStart", "ChargePeriodStart", "ResourceId", "SkuMeter"];
                *ratios.entry(origin.map(|name| row[name].clone())).or_default() += pico(ratio.trim_end_matches(['}', ']']));
            }
        }
        prop_assert!(ratios.values().all(|sum| *sum == 10_i128.pow(12)), "{:?}", ratios);
        let mut expected: BTreeMap<String, i128> = BTreeMap::new();
        for group in &report.groups {
            let name = crate::cell::plain(&group.values[0].to_string()).into_owned();
            *expected.entry(name).or_default() += group.sums.gpu.cost_pico();
        }
        // The bills of all months are the whole.
        let whole: i128 = expected.values().sum();
        let billed = (681..685).map(|month| {
            let asked = Query { billed: Some(month), ..allocated(idle) };
            let (_, rows) = self::rows(&memory, &asked, &options);
            rows.iter().map(|row| pico(&row["EffectiveCost"])).sum::<i128>()
        });
        prop_assert_eq!(billed.sum::<i128>(), whole);
        expected.retain(|_, cost| *cost != 0);
        seen.retain(|_, cost| *cost != 0);
        prop_assert_eq!(seen, expected);
    }
}

/// Attributes change within the month: the rows of a tenant are split.
#[test]
fn tags_are_the_attributes_of_the_day() {
    let memory = Memory::of_chance(9, 200);
    let asked = Query { attributes: attributes(), ..query(&[], Basis::Price) };
    let (_, rows) = rows(&memory, &asked, &options(Version::V1_2, Billing::Showback));
    let of = |tenant: &str| {
        let mut tags: Vec<_> =
            rows.iter().filter(|row| row["SubAccountId"] == tenant).map(|row| row["Tags"].clone()).collect();
        tags.sort();
        tags.dedup();
        tags
    };
    let expected = [
        r#"{"cost_center":"00417","department":"Search","env":"prod","tenant":"acme"}"#,
        r#"{"cost_center":"00418","owner":"ann","tenant":"acme"}"#,
    ];
    assert_eq!(of("acme"), expected);
    assert_eq!(of("default"), [r#"{"tenant":"default"}"#]);
    let notes = write(&memory, &asked, &options(Version::V1_2, Billing::Showback), None, &mut Vec::new());
    let said = notes.expect("memory takes it").sentences(&ledger::Range::ALL).join("; ");
    assert!(said.contains("2 tenants have no entry in the attributes file: "), "{said}");
}

#[test]
fn publisher_is_never_an_address() {
    let mut memory = Memory::of_chance(3, 40);
    memory.shed.clear();
    memory.corrections.clear();
    for (_, row, _) in &mut memory.rows {
        (row.provider, row.upstream) = ("openai".into(), "127.0.0.1:8111".into());
    }
    for version in [Version::V1_2, Version::V1_3] {
        let (_, rows) = rows(&memory, &query(&[], Basis::Price), &options(version, Billing::Showback));
        assert!(!rows.is_empty() && rows.iter().all(|row| row["PublisherName"] == "platform"));
        assert!(rows.iter().all(|row| row["ProviderName"] == "127.0.0.1:8111"));
    }
}

#[test]
fn metadata_describes_columns_and_months() {
    let memory = Memory::of_chance(3, 40);
    let asked = query(&[Key::Day], Basis::Price);
    for version in Version::ALL {
        let options = options(version, Billing::Showback);
        let notes = write(&memory, &asked, &options, None, &mut Vec::new()).expect("memory takes it");
        let mut bytes = Vec::new();
        metadata::write(&asked, &options, &notes, &mut bytes).expect("memory takes it");
        let json: Json = serde_json::from_slice(&bytes).expect("JSON");
        let schema = &json["Schema"][0];
        assert_eq!(schema["FocusVersion"], version.name());
        let names: Vec<_> = schema["ColumnDefinition"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| &one["ColumnName"])
            .collect();
        assert_eq!(names, columns(version).map(|column| column.name).collect::<Vec<_>>());
        let of = |name: &str| {
            let mut all = schema["ColumnDefinition"].as_array().expect("a list").iter();
            all.find(|one| one["ColumnName"] == name).expect("a column")["DataType"].clone()
        };
        for (name, kind) in [
            ("BilledCost", "DECIMAL"),
            ("ListUnitPrice", "DECIMAL"),
            ("x_RequestCount", "DECIMAL"),
            ("BillingPeriodEnd", "DATETIME"),
            ("Tags", "JSON"),
            ("SkuPriceDetails", "JSON"),
            ("BillingCurrency", "STRING"),
            ("InvoiceId", "STRING"),
        ] {
            assert_eq!(of(name), kind, "{name}");
        }
        let sectors = &json["Recency"][0]["TimeSectors"];
        if version == Version::V1_2 {
            assert!(json["DatasetInstance"].is_null() && sectors.is_null());
        } else {
            assert_eq!(schema["DatasetInstanceId"], json["DatasetInstance"][0]["DatasetInstanceId"]);
            assert_eq!(sectors[0]["TimeSectorStart"], "2026-10-01T00:00:00Z");
            assert_eq!(sectors[0]["TimeSectorComplete"], false);
        }
    }
}

/// Without a price, the time is allocated, and the ratios are those of the time.
#[test]
fn ratios_without_a_price_are_of_the_quantity() {
    let mut memory = crate::allocation::tests::by_hand();
    memory.rows.iter_mut().for_each(|(_, _, used)| used.as_mut().expect("known").gpu_hours_pico = 0);
    memory.devices.truncate(1);
    memory.devices[0].sums = GpuSums { gpu_ns: 9_000, ..GpuSums::default() };
    let (_, rows) = rows(&memory, &allocated(Idle::Even), &options(Version::V1_4, Billing::Showback));
    let details: Vec<_> = rows.iter().map(|row| &*row["AllocatedMethodDetails"]).collect();
    let ratio = |ratio: &str| format!(r#"{{"Elements":[{{"AllocatedRatio":{ratio}}}]}}"#);
    assert_eq!(details, ["0.333333333334", "0.333333333333", "0.333333333333"].map(ratio));
}

/// Half of the idle cost of a dollar is of a day without usage.
#[test]
fn allocated_charges_by_hand() {
    let mut memory = crate::allocation::tests::by_hand();
    memory.devices.iter_mut().for_each(|device| device.sums = GpuSums { gpu_ns: 0, ..device.sums });
    let asked = Query { attributes: Arc::default(), ..allocated(Idle::Proportional) };
    let (_, rows) = rows(&memory, &asked, &options(Version::V1_3, Billing::Chargeback));
    let said: Vec<_> = rows
        .iter()
        .filter(|row| row["ResourceType"] == "GPU")
        .map(|row| {
            let names =
                ["ChargeDescription", "EffectiveCost", "AllocatedResourceId", "AllocatedMethodDetails"];
            names.map(|name| row[name].clone()).join("|")
        })
        .collect();
    let expected = [
        r#"GPU Hours of __idle__, allocated to acme|0.666666666667|acme|{"Elements":[{"AllocatedRatio":0.333333333334}]}"#,
        r#"GPU Hours of __idle__, allocated to beta|0.333333333333|beta|{"Elements":[{"AllocatedRatio":0.166666666666}]}"#,
        r#"GPU Hours of __idle__|1.00||{"Elements":[{"AllocatedRatio":0.5}]}"#,
    ];
    let (mut said, mut expected) = (said, expected.map(str::to_owned));
    said.sort();
    expected.sort();
    assert_eq!(said, expected);
    // A filter excludes rows; ratios are still to the whole, but for the rounding of the last digit.
    let filters = vec![Filter::read("tenant=beta").expect("a filter")];
    let (_, rows) =
        self::rows(&memory, &Query { filters, ..asked }, &options(Version::V1_3, Billing::Chargeback));
    let details: Vec<_> =
        rows.iter().map(|row| &*row["AllocatedMethodDetails"]).filter(|said| !said.is_empty()).collect();
    assert_eq!(details, [r#"{"Elements":[{"AllocatedRatio":0.166666666667}]}"#]);
}
