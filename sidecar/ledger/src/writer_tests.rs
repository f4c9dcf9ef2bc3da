//! A batch that is entered again, because it was not known whether it was.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Shared, Writer};
use crate::GpuSums;
use crate::queue::{Batch, Item};
use crate::source::{DeviceTotal, Range, Share, Source, Used};
use crate::testing::{NOON_US, Place, row};
use crate::{EnergyRow, Plan, Store, close, month};

/// The part of a past month is on the disk, and the month is closed before the batch is tried again.
#[test]
fn rows_entered_before_close_are_not_repeated() {
    let october = month::of(NOON_US);
    let november_us = month::begin_us(october + 1) + 1_000_000;
    let place = Place::new();
    let mut writer = Writer::new(Plan::new(place.ledger()), Arc::new(Shared::default()));
    writer.month_files.ready(november_us).unwrap();
    let device = DeviceTotal {
        day: month::day(NOON_US),
        hw_id: "GPU-0".into(),
        share: Share::Idle,
        sums: GpuSums { energy_nj: 5, gpu_ns: 5, gpu_hours_pico: 0, gpu_energy_pico: 0 },
    };
    let used = Used { gpu_ns: Some(5), ..Used::default() };
    let items = [
        Item::Row(Box::new(row(1))),
        Item::Energy(Box::new(EnergyRow::of(&row(1), used))),
        Item::Device(Box::new(device.clone())),
    ];
    // Nothing of the open month, which would have the batch's token too.
    let batch = Batch { items: items.into(), ..Batch::default() };
    let mut enter = |batch: &Batch, token: u8| {
        writer.enter_whole(batch, &[token; 16], &mut BTreeSet::new(), november_us).unwrap();
    };
    enter(&batch, 1);
    close(&place.ledger(), october, "ann", november_us).unwrap();
    enter(&batch, 1);
    // In another batch, what has a name is found by it.
    let named = Batch { items: batch.items.iter().take(2).cloned().collect(), ..Batch::default() };
    enter(&named, 2);
    writer.month_files.end(november_us).unwrap();
    let store = Store::open_read(&place.ledger()).unwrap();
    let mut months = Vec::new();
    store
        .daily_totals(&Range::ALL, &mut |month, line| {
            months.push((month, line.sums.exchanges, line.sums.gpu.gpu_ns));
            Ok(())
        })
        .unwrap();
    months.sort_unstable();
    assert_eq!(months, [(october, 1, 5)]);
    assert_eq!(store.devices(&Range::ALL).unwrap(), [device]);
}

/// The commit was on the disk and its answer was an error, so that the batch is tried again; totals have no id.
#[test]
fn repeated_batch_adds_its_totals_once() {
    let place = Place::new();
    let mut writer = Writer::new(Plan::new(place.ledger()), Arc::new(Shared::default()));
    writer.month_files.ready(NOON_US).unwrap();
    let device = DeviceTotal {
        day: month::day(NOON_US),
        hw_id: "GPU-0".into(),
        share: Share::Idle,
        sums: GpuSums { energy_nj: 5, gpu_ns: 5, gpu_hours_pico: 0, gpu_energy_pico: 0 },
    };
    let batch = Batch { items: [Item::Device(Box::new(device.clone()))].into(), ..Batch::default() };
    for _ in 0..2 {
        writer.enter_whole(&batch, &[1; 16], &mut BTreeSet::new(), NOON_US).unwrap();
    }
    writer.month_files.end(NOON_US).unwrap();
    assert_eq!(Store::open_read(&place.ledger()).unwrap().devices(&Range::ALL).unwrap(), [device]);
}
