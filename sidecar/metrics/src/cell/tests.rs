//! Reads of cells that another thread writes.

use std::sync::atomic::AtomicBool;

use super::*;

#[test]
fn reader_sees_whole_write_or_none() {
    const WRITES: u64 = 200_000;
    let cells: [Count; 16] = Default::default();
    let lock = SeqLock::default();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = Vec::new();
                    while !done.load(Relaxed) || seen.is_empty() {
                        // An `Err` says that the writer was suspended during a write.
                        if let Ok(read) = lock.read(|| cells.each_ref().map(Count::get)) {
                            seen.push(read);
                        }
                    }
                    seen
                })
            })
            .collect();
        for _ in 0..WRITES {
            lock.write(|| cells.iter().for_each(|cell| cell.add(1)));
        }
        done.store(true, Relaxed);
        for reader in readers {
            let seen = reader.join().unwrap();
            assert!(seen.iter().all(|cells| cells.iter().all(|n| *n == cells[0])), "torn");
            assert!(seen.is_sorted_by_key(|cells| cells[0]), "never backwards");
        }
    });
    assert_eq!(lock.read(|| cells[15].get()), Ok(WRITES));
}

#[test]
fn suspended_writer_does_not_block_reader() {
    let (cell, lock) = (Count::zero(), SeqLock::default());
    lock.write(|| {
        cell.add(1);
        assert_eq!(lock.read(|| cell.get()), Err(1));
    });
    assert_eq!(lock.read(|| cell.get()), Ok(1));
}
