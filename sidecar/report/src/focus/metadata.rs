//! The metadata of a dataset, as FOCUS defines it: the generator, the schema and, from 1.3 on, the dataset instance and
//! the months with their completeness. A month is complete if it is closed.

use std::io::{self, Write};

use ledger::period;
use serde_json::{Value, json};

use super::{Options, Version, columns};
use crate::key::Key;
use crate::months::MonthState;
use crate::notes::Notes;
use crate::query::Query;

/// Digits of a decimal: an amount is an `i128` of pico-units; quantities have up to 15 digits after the point.
const PRECISION: u32 = 38;
const SCALE: u32 = 15;

/// Writes the metadata of a dataset, from the notes of its report.
///
/// # Errors
/// Returns the writer's error.
pub fn write(query: &Query, options: &Options, notes: &Notes, to: &mut dyn Write) -> io::Result<()> {
    let instance =
        if query.by.contains(&Key::Day) { "cost-and-usage-by-day" } else { "cost-and-usage-by-month" };
    let now = period::time(query.now_us);
    let definitions: Vec<_> = columns(options.version).map(|column| definition(column.name)).collect();
    let version = env!("CARGO_PKG_VERSION");
    let mut schema = json!({
        "SchemaId": format!("tokenmeter-{version}-focus-{}", options.version.name()),
        "FocusVersion": options.version.name(),
        "CreationDate": now,
        "DataGeneratorVersion": version,
        "ColumnDefinition": definitions,
    });
    let mut metadata = json!({ "DataGenerator": { "DataGenerator": "tokenmeter" } });
    if options.version >= Version::V1_3 {
        schema["DatasetInstanceId"] = instance.into();
        metadata["DatasetInstance"] = json!([{
            "DatasetInstanceId": instance,
            "DatasetInstanceName": options.service,
            "FocusDatasetId": "CostAndUsage",
        }]);
        let sectors: Vec<_> = notes
            .months
            .iter()
            .map(|(month, state)| {
                json!({
                    "TimeSectorStart": period::time(notes.calendar.month_begin_us(*month)),
                    "TimeSectorEnd": period::time(notes.calendar.month_begin_us(*month + 1)),
                    "TimeSectorComplete": *state == MonthState::Closed,
                    "TimeSectorLastUpdated": now,
                })
            })
            .collect();
        // FOCUS requires at least one sector in a collection.
        if !sectors.is_empty() {
            metadata["Recency"] = json!([{
                "DatasetInstanceId": instance,
                "RecencyLastUpdateDate": now,
                "TimeSectors": sectors,
            }]);
        }
    }
    metadata["Schema"] = json!([schema]);
    serde_json::to_writer_pretty(&mut *to, &metadata)?;
    writeln!(to)
}

/// Returns the definition of a column.
fn definition(name: &str) -> Value {
    let ends = |with: &[&str]| with.iter().any(|end| name.ends_with(end));
    if ends(&["PeriodStart", "PeriodEnd"]) {
        json!({ "ColumnName": name, "DataType": "DATETIME" })
    } else if ends(&[
        "Cost",
        "UnitPrice",
        "Quantity",
        "x_EnergyJoules",
        "x_ReasoningTokens",
        "x_RequestCount",
    ]) {
        json!({ "ColumnName": name, "DataType": "DECIMAL", "NumericPrecision": PRECISION, "NumberScale": SCALE })
    } else if name == "Tags" || name == "AllocatedTags" {
        // No tag is tokenmeter's own: all are those of the operator.
        json!({ "ColumnName": name, "DataType": "JSON", "ProviderTagPrefixes": [] })
    } else if ends(&["Details"]) {
        json!({ "ColumnName": name, "DataType": "JSON" })
    } else {
        json!({ "ColumnName": name, "DataType": "STRING", "StringEncoding": "UTF-8" })
    }
}
