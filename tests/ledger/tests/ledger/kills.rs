//! Repeated kills at random times.

use std::time::Duration;

use chance::Chance;

use crate::life::Desk;

/// Kills of one ledger, after which a new one begins.
const EACH: usize = 25;

/// The limits of the longest life: that of an idle machine, in which a life reaches many commits, and of a busy one.
const SHORTEST_MS: u64 = 120;
const LONGEST_MS: u64 = 5_000;

#[test]
fn acknowledged_rows_survive_every_kill() {
    let kills = if chance::is_long() { 1000 } else { 100 };
    let mut chance = Chance::new(20_261_121);
    let (mut acknowledged, mut found) = (0, 0);
    let mut longest_ms = SHORTEST_MS;
    for round in 0..kills / EACH {
        let mut desk = Desk::new(&format!("kills-{round}"));
        for _ in 0..EACH {
            let mut scribe = desk.begin(&[], 1_000_000, 5 + u32::try_from(chance.below(40)).unwrap());
            // Short lives end while the file is opened, long ones among many commits. On a busy machine lives are longer.
            scribe.kill_after(Duration::from_millis(chance.below(longest_ms)));
            desk.over(scribe);
            let has_committed = desk.lives.last().is_some_and(|life| life.acknowledged > 0);
            longest_ms = if has_committed { longest_ms * 3 / 4 } else { longest_ms * 5 / 4 };
            longest_ms = longest_ms.clamp(SHORTEST_MS, LONGEST_MS);
        }
        found += desk.audit().rows;
        acknowledged += desk.lives.iter().map(|life| u64::from(life.acknowledged)).sum::<u64>();
        // The process after the last kill continues normally.
        let said = desk.live(&[], 300, 300);
        assert_eq!(said.last().map(String::as_str), Some("ended 300"), "{said:?}");
        let whole = desk.audit();
        assert!(whole.gaps > 0, "a kill leaves a gap");
    }
    assert!(
        // Many times that on an idle machine.
        acknowledged > kills as u64,
        "{kills} kills, and only {acknowledged} rows were acknowledged"
    );
    assert!(found >= acknowledged, "{found} rows are there, {acknowledged} were acknowledged");
}
