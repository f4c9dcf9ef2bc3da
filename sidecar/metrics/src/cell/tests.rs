//! What a reader may see of a writer on another thread.

use std::sync::atomic::AtomicBool;

use super::*;

#[test]
fn a_reader_sees_all_of_a_write_or_nothing_of_it() {
    const WRITES: u64 = 200_000;
    let cells: [Count; 16] = Default::default();
    let turn = Turn::default();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = Vec::new();
                    while !done.load(Relaxed) || seen.is_empty() {
                        // A writer that was put to sleep in the middle is told as such.
                        if let Ok(read) = turn.read(|| cells.each_ref().map(Count::get)) {
                            seen.push(read);
                        }
                    }
                    seen
                })
            })
            .collect();
        for _ in 0..WRITES {
            turn.write(|| cells.iter().for_each(|cell| cell.add(1)));
        }
        done.store(true, Relaxed);
        for reader in readers {
            let seen = reader.join().unwrap();
            assert!(seen.iter().all(|cells| cells.iter().all(|n| *n == cells[0])), "torn");
            assert!(seen.is_sorted_by_key(|cells| cells[0]), "never back");
        }
    });
    assert_eq!(turn.read(|| cells[15].get()), Ok(WRITES));
}

#[test]
fn a_writer_that_sleeps_in_the_middle_holds_up_no_reader_for_ever() {
    let (cell, turn) = (Count::zero(), Turn::default());
    turn.write(|| {
        cell.add(1);
        assert_eq!(turn.read(|| cell.get()), Err(1));
    });
    assert_eq!(turn.read(|| cell.get()), Ok(1));
}
