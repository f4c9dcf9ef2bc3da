//! Kills at each system call by which a commit reaches the disk. Needs strace.

use std::collections::BTreeMap;
use std::process::Command;

use chance::Chance;

use crate::life::Desk;

/// Rows of a life: three commits and an end.
const ROWS: u32 = 600;

/// The system calls that change a file, its name or its length, or sync it.
pub(crate) const CALLS: [&str; 8] =
    ["pwrite64", "write", "fsync", "fdatasync", "ftruncate", "unlink", "rename", "fallocate"];

/// Up to this number of calls, each is tried.
const FEW: u32 = 30;

/// The number of each system call of the busiest thread of an undisturbed life.
fn counted() -> BTreeMap<&'static str, u32> {
    let desk = &mut Desk::new("syscalls-counted");
    let log = desk.folder().join("strace");
    let log = log.to_str().expect("it is UTF-8");
    let trace = format!("trace={}", CALLS.join(","));
    desk.live(&["strace", "-f", "-qq", "-o", log, "-e", &trace], ROWS, 1);
    let mut counts: BTreeMap<(&'static str, String), u32> = BTreeMap::new();
    for line in std::fs::read_to_string(log).expect("strace wrote it").lines() {
        let mut words = line.split_whitespace();
        let (Some(thread), Some(call)) = (words.next(), words.next()) else { continue };
        if let Some(call) = CALLS.into_iter().find(|name| call.starts_with(&format!("{name}("))) {
            *counts.entry((call, thread.to_owned())).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((call, _), count) in counts {
        let known: &mut u32 = most.entry(call).or_default();
        *known = count.max(*known);
    }
    most
}

#[test]
#[ignore = "needs strace"]
fn kill_at_any_system_call_loses_nothing() {
    let found = Command::new("strace").arg("-V").output();
    assert!(found.is_ok(), "strace is not installed: apt-get install strace");
    let counts = counted();
    assert!(counts.get("fsync").is_some_and(|times| *times >= 3), "commits reach the disk: {counts:?}");
    let mut chance = Chance::new(20_261_125);
    let (mut killed, mut in_a_later_sync) = (0, 0);
    for (call, times) in counts {
        // `write` is also used for stdout; of the many calls, a seeded part is enough for an ordinary run.
        let step: u8 = if chance::is_long() || times <= FEW { 1 } else { 10 };
        let first = 1 + u32::try_from(chance.below(step.into())).expect("it is below ten");
        for at in (first..=times).step_by(step.into()) {
            let mut desk = Desk::new(&format!("syscalls-{call}-{at}"));
            let inject = format!("inject={call}:signal=KILL:when={at}");
            let said = desk.live(&["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject], ROWS, 1);
            let was_killed = !said.iter().any(|line| line.starts_with("ended"));
            let had_rows = said.iter().any(|line| line.starts_with("acknowledged"));
            killed += u32::from(was_killed);
            in_a_later_sync += u32::from(was_killed && had_rows && matches!(call, "fsync" | "fdatasync"));
            let said = desk.live(&[], 10, 10);
            assert_eq!(said.last().map(String::as_str), Some("ended 10"), "{call} {at}: {said:?}");
            desk.audit();
        }
    }
    assert!(killed > 20, "only {killed} lives were cut short");
    assert!(in_a_later_sync > 0, "no commit after the first was killed before it was on the disk");
}
