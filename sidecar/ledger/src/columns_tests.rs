//! Each column holds the value that was set, and setting it changes no other.

use std::sync::Arc;

use price::Rate;

use crate::audit_event::AuditEvent;
use crate::column::{RowReader, Sql, Stored, Value};
use crate::energy::Energy;
use crate::source::{DeviceTotal, Gap, MadeCorrection};
use crate::{DailyTotal, Row};

/// Words of which each closed vocabulary has one that is not its first.
const WORDS: [&str; 8] = ["EUR", "shed", "ids", "unattributed", "decode", "token_type", "part", "free text"];

/// Columns of what several of them describe together: a charge, and the key of a total that is there or not.
const TOGETHER: [&str; 4] = ["rate", "cost_pico", "unpriced", "tenant"];

fn columns_are_independent<T: Stored>() {
    let mut reader = RowReader::with_rates(|id| Ok(Some(Arc::new(Rate { id: *id, ..Rate::blank() }))));
    for column in T::columns() {
        let values: Vec<Value<'_>> = match column.sql {
            Sql::Text => WORDS.into_iter().map(Value::Text).collect(),
            Sql::Id => vec![Value::Id(&[7; 16])],
            Sql::Flag => vec![Value::Number(1)],
            _ => vec![Value::Number(77)],
        };
        let mut item = T::blank();
        let set = values.into_iter().find(|value| column.set(&mut item, *value, &mut reader).is_ok());
        let changed = |item: &T| {
            let is_changed =
                |other: &&crate::column::Column<T>| other.value(item) != other.value(&T::blank());
            T::columns().iter().filter(is_changed).map(|other| other.name).collect::<Vec<_>>()
        };
        let is_of_key = T::TABLE == Energy::TABLE
            && <DailyTotal as Stored>::columns()[..DailyTotal::KEYS]
                .iter()
                .any(|key| key.name == column.name);
        if TOGETHER.contains(&column.name) || is_of_key {
            continue;
        }
        assert_eq!(Some(column.value(&item)), set, "{}.{}", T::TABLE, column.name);
        assert_eq!(changed(&item), [column.name], "{}.{}", T::TABLE, column.name);
    }
}

#[test]
fn set_column_changes_no_other() {
    columns_are_independent::<Row>();
    columns_are_independent::<Rate>();
    columns_are_independent::<Energy>();
    columns_are_independent::<DailyTotal>();
    columns_are_independent::<DeviceTotal>();
    columns_are_independent::<MadeCorrection>();
    columns_are_independent::<AuditEvent>();
    columns_are_independent::<Gap>();
}
