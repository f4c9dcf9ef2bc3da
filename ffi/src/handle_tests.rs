//! Handles that are freed, forged or of another type.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use chance::Chance;

use super::{CHUNK_SLOTS, CHUNKS, GENERATION_MAX, KIND_BITS, SLOT_BITS, Table, lock};
use crate::status::Status;

fn status<R>(result: Result<R, crate::status::Fault>) -> Status {
    result.map_or_else(|fault| fault.status, |_| Status::Ok)
}

#[test]
fn freed_handle_is_refused_though_its_slot_lives() {
    let table = Table::new(1);
    let first = table.insert("first").unwrap();
    assert_eq!(table.take(first).unwrap().as_deref(), Some(&"first"));
    let second = table.insert("second").unwrap();
    assert_eq!(first & ((1 << SLOT_BITS) - 1), second & ((1 << SLOT_BITS) - 1), "the slot is used again");
    assert_eq!(status(table.with(first, |_| Ok(()))), Status::Handle);
    assert_eq!(status(table.take(first)), Status::Handle);
    assert_eq!(table.with(second, |object| Ok(*object)).unwrap(), "second");
}

#[test]
fn null_and_other_types_are_refused() {
    let (one, other) = (Table::new(1), Table::new(2));
    let handle = one.insert(7).unwrap();
    other.insert(8).unwrap();
    assert_eq!(status(one.with(0, |_| Ok(()))), Status::Null);
    assert_eq!(status(other.with(handle, |_| Ok(()))), Status::Handle);
    for forged in [1, handle + 1, handle | 0xFF_FFFF, handle + (1 << (SLOT_BITS + KIND_BITS)), u64::MAX] {
        assert_eq!(status(one.with(forged, |_| Ok(()))), Status::Handle, "{forged:#x}");
    }
}

#[test]
fn panic_breaks_its_object_only() {
    let table = Table::new(3);
    let (broken, whole) = (table.insert(1).unwrap(), table.insert(2).unwrap());
    assert_eq!(status(table.with::<()>(broken, |_| panic!("a test"))), Status::Panic);
    assert_eq!(status(table.with(broken, |_| Ok(()))), Status::Panic);
    assert_eq!(table.with(whole, |object| Ok(*object)).unwrap(), 2);
    let mut salvaged = Vec::new();
    assert!(table.take_or(broken, |object| salvaged.push(*object)).unwrap().is_none());
    assert_eq!(status(table.take_or(broken, |_| unreachable!())), Status::Handle);
    assert_eq!(salvaged, [1], "an exchange leaves the gauges");
    assert_eq!(status(table.with::<()>(whole, |_| panic!("a test"))), Status::Panic);
    assert!(table.take_or(whole, |_| panic!("again")).unwrap().is_none());
}

#[test]
fn object_whose_last_call_panics_is_salvaged() {
    let table = Table::new(3);
    let salvaged = Cell::new(0);
    let salvage = |object: &mut i32| salvaged.set(salvaged.get() + *object);
    let handle = table.insert(1).unwrap();
    assert_eq!(status(table.take_with::<()>(handle, |_| panic!("a test"), salvage)), Status::Panic);
    assert_eq!(salvaged.get(), 1);
    assert_eq!(status(table.take_with(handle, |_| (), salvage)), Status::Handle);
    let broken = table.insert(10).unwrap();
    assert_eq!(status(table.with::<()>(broken, |_| panic!("a test"))), Status::Panic);
    assert_eq!(status(table.take_with(broken, |_| (), salvage)), Status::Panic);
    assert_eq!(salvaged.get(), 11);
    let whole = table.insert(100).unwrap();
    assert_eq!(table.take_with(whole, |object| *object, salvage).unwrap(), 100);
    assert_eq!(status(table.take_with(whole, |_| (), salvage)), Status::Handle);
    assert_eq!(salvaged.get(), 11);
}

#[test]
fn slot_without_further_generations_is_retired() {
    let table = Table::new(1);
    let handle = table.insert(1).unwrap();
    {
        let (_, mut state) = table.find(handle).unwrap();
        state.generation = GENERATION_MAX;
    }
    let last = GENERATION_MAX << (SLOT_BITS + KIND_BITS) | handle & ((1 << (SLOT_BITS + KIND_BITS)) - 1);
    table.take(last).unwrap();
    let next = table.insert(2).unwrap();
    assert_ne!(next & ((1 << SLOT_BITS) - 1), handle & ((1 << SLOT_BITS) - 1));
}

#[test]
fn full_table_makes_no_object() {
    let table: Table<u64> = Table::new(1);
    lock(&table.unused).next = CHUNKS * CHUNK_SLOTS;
    let made = table.insert_with(|| panic!("an exchange that begins is in flight"));
    assert_eq!(status(made), Status::Limit);
}

#[test]
fn random_histories_agree_with_a_map() {
    let mut rng = Chance::new(0x7AB1E);
    let table = Table::new(5);
    let (mut twin, mut freed) = (HashMap::new(), Vec::new());
    for number in 0..if chance::is_long() { 1_000_000 } else { 20_000 } {
        match rng.below(4) {
            0 | 1 => drop(twin.insert(table.insert(number).unwrap(), number)),
            2 => {
                let Some(handle) = twin.keys().next().copied() else { continue };
                assert_eq!(table.take(handle).unwrap().as_deref(), twin.remove(&handle).as_ref());
                freed.push(handle);
            }
            _ => {
                for (handle, number) in twin.iter().take(3) {
                    assert_eq!(table.with(*handle, |object| Ok(*object)).unwrap(), *number);
                }
                if let Some(handle) = freed.get(rng.place(freed.len().max(1))) {
                    assert_eq!(status(table.with(*handle, |_| Ok(()))), Status::Handle);
                }
            }
        }
    }
    assert!(twin.len() > CHUNK_SLOTS, "more than one chunk was used");
}

#[test]
fn threads_share_objects_and_own_theirs() {
    let table = Arc::new(Table::new(6));
    let shared = table.insert(0u64).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                for round in 0..2_000u64 {
                    let own = table.insert(round).unwrap();
                    table
                        .with(shared, |sum| {
                            *sum += 1;
                            Ok(())
                        })
                        .unwrap();
                    assert_eq!(table.take(own).unwrap().as_deref(), Some(&round));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(table.with(shared, |sum| Ok(*sum)).unwrap(), 8_000);
}
