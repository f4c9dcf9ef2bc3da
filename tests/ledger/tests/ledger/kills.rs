//! Repeated kills at random times.

use std::time::Duration;

use chance::Chance;

use crate::life::Desk;

/// Kills of one ledger, after which a new one begins.
const EACH: usize = 25;

#[test]
fn acknowledged_rows_survive_every_kill() {
    let kills = if chance::is_long() { 1000 } else { 100 };
    let mut chance = Chance::new(20_261_121);
    let (mut acknowledged, mut found) = (0, 0);
    for round in 0..kills / EACH {
        let mut desk = Desk::new(&format!("kills-{round}"));
        for _ in 0..EACH {
            let mut scribe = desk.begin(&[], 1_000_000, 5 + u32::try_from(chance.below(40)).unwrap());
            // Short lives end while the file is opened, long ones among many commits.
            scribe.kill_after(Duration::from_millis(chance.below(120)));
            desk.over(scribe);
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
        acknowledged > 10 * kills as u64,
        "{kills} kills, and only {acknowledged} rows were acknowledged"
    );
    assert!(found >= acknowledged, "{found} rows are there, {acknowledged} were acknowledged");
}
