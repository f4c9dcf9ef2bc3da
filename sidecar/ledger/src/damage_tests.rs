//! Files that are not as they were written: every page, many bits, shorter files. Whatever is damaged,
//! what is read is either what was written or an error, and a writer that starts on it goes on.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chance::Chance;

use crate::source::Used;
use crate::source::{Range, Source, SourceError};
use crate::testing::{NOON_US, Place, row};
use crate::{EnergyRow, Plan, Store, start, verify};

const LONG: Duration = Duration::from_secs(30);
const PAGE: usize = 4_096;

fn plan(path: &Path) -> Plan {
    Plan { clock: Arc::new(|| NOON_US), ..Plan::new(path) }
}

/// A small ledger that was ended in order; one that was not would say so by a gap anyway.
fn ledger() -> Vec<u8> {
    let place = Place::new();
    let ledger = start(plan(&place.ledger()));
    (0..300).for_each(|n| ledger.enter(row(n)));
    (0..100).for_each(|n| ledger.energy(EnergyRow::of(&row(n), Used { gpu_ns: Some(n), ..Used::default() })));
    assert!(ledger.shutdown(LONG));
    fs::read(place.ledger()).unwrap()
}

/// The values of which reports are made, sorted.
#[derive(Debug, PartialEq)]
struct Read {
    lines: Vec<String>,
    rates: usize,
    gaps: usize,
}

fn read(path: &Path) -> Result<Read, SourceError> {
    let store = Store::open_read(path)?;
    let mut lines = Vec::new();
    store.daily_totals(&Range::ALL, &mut |_, line| {
        lines.push(format!("{line:?}"));
        Ok(())
    })?;
    lines.sort();
    Ok(Read { lines, rates: store.rates()?.len(), gaps: store.gaps(&Range::ALL)?.len() })
}

/// A place with a damaged file.
struct Damaged {
    place: Place,
    right: Read,
}

impl Damaged {
    fn new() -> (Self, Vec<u8>) {
        let (place, content) = (Place::new(), ledger());
        fs::write(place.ledger(), &content).unwrap();
        let right = read(&place.ledger()).unwrap();
        (Self { place, right }, content)
    }

    /// Returns true if a report notices the damage. A report that does not must be right.
    fn report(&self, content: &[u8], what: &str) -> bool {
        for name in self.place.names() {
            fs::remove_file(self.place.path(&name)).unwrap();
        }
        fs::write(self.place.ledger(), content).unwrap();
        match read(&self.place.ledger()) {
            Ok(read) => {
                assert_eq!(read, self.right, "{what}: a wrong sum and no notice");
                false
            }
            Err(_) => true,
        }
    }

    /// Starts a writer on the damaged file and enters a row, in that file or in a new one. If the sums are not those of
    /// before and of the row, a gap records it. Returns true if the file was quarantined.
    fn writer(&self, content: &[u8], what: &str) -> bool {
        self.report(content, what);
        let ledger = start(plan(&self.place.ledger()));
        ledger.enter(row(1_000));
        let ended = ledger.shutdown(LONG);
        let status = ledger.status();
        if status.quarantined_total == 0 {
            // It wrote into the file, or it would not, as into one of a version that it does not know.
            assert!(
                ended || status.fault_message.is_some() && status.lost_rows_total == 1,
                "{what}: {status:?}"
            );
            if ended && let Ok(read) = read(&self.place.ledger()) {
                let of = |read: &Read| read.lines.len();
                assert!(of(&read) >= of(&self.right), "{what}: lines are lost without notice");
            }
            return false;
        }
        let read = read(&self.place.ledger()).unwrap();
        assert_eq!(read.gaps, 1, "{what}");
        assert!(self.place.names().iter().any(|name| name.contains(".corrupt-")), "{what}");
        true
    }
}

#[test]
fn overwritten_page_is_noticed() {
    let (damaged, content) = Damaged::new();
    let mut noticed = 0;
    for page in 0..content.len() / PAGE {
        for fill in [0x00, 0xff] {
            let mut content = content.clone();
            content[page * PAGE..(page + 1) * PAGE].fill(fill);
            noticed += usize::from(damaged.report(&content, &format!("page {page} of {fill:#x}")));
        }
    }
    assert!(noticed > 4, "{noticed}: the pages of the lines at least");
}

#[test]
fn truncated_file_is_noticed() {
    let (damaged, content) = Damaged::new();
    for length in (0..content.len()).step_by(PAGE).chain([1, 100, PAGE + 1]) {
        assert!(
            damaged.report(&content[..length], &format!("{length} bytes")),
            "{length} bytes are not the file"
        );
    }
}

/// One bit in each of many places, by a fixed seed; a fifth of what the long run does.
#[test]
fn flipped_bit_is_noticed() {
    let (damaged, content) = Damaged::new();
    let (mut reports, mut verified) = (0, 0);
    let bits = if chance::is_long() { 1_000 } else { 200 };
    for bit in places(0x5eed, bits, content.len()) {
        let mut content = content.clone();
        content[bit / 8] ^= 1 << (bit % 8);
        reports += usize::from(damaged.report(&content, &format!("bit {bit}")));
        let found = match verify(&damaged.place.ledger(), None) {
            Ok(verdicts) => verdicts.iter().any(|verdict| !verdict.differences.is_empty()),
            Err(_) => true,
        };
        verified += usize::from(found);
    }
    assert!(verified >= reports, "verify sees no less than reports: {verified}, {reports}");
    assert!(verified > bits / 4, "{verified} of {bits}: rows are most of the file");
}

#[test]
fn writer_goes_on_after_any_damage() {
    let (damaged, content) = Damaged::new();
    let mut moved = 0;
    for page in 0..content.len() / PAGE {
        let mut content = content.clone();
        content[page * PAGE..(page + 1) * PAGE].fill(0);
        moved += usize::from(damaged.writer(&content, &format!("page {page}")));
    }
    for length in [0, 1, 100, PAGE, content.len() / 2, content.len() - 1] {
        moved += usize::from(damaged.writer(&content[..length], &format!("{length} bytes")));
    }
    for bit in places(0xf11b, 60, content.len()) {
        let mut content = content.clone();
        content[bit / 8] ^= 1 << (bit % 8);
        moved += usize::from(damaged.writer(&content, &format!("bit {bit}")));
    }
    assert!(moved > 20, "{moved}");
}

/// So many bits of a file, by a seed.
fn places(seed: u64, count: usize, length: usize) -> Vec<usize> {
    let mut chance = Chance::new(seed);
    (0..count).map(|_| chance.place(length * 8)).collect()
}
