//! Failing system calls: a sync or a write fails for a while or permanently. Needs strace, which injects the errors.

use std::time::Duration;

use crate::life::Desk;

fn under(inject: &str) -> (Vec<String>, scribe::audit::Found) {
    let mut desk = Desk::new(&format!("faults-{}", inject.replace([':', '=', '.', '+'], "-")));
    let expression = format!("inject={inject}");
    let said = desk.live(&["strace", "-f", "-qq", "-o", "/dev/null", "-e", &expression], 2_000, 4);
    let after = desk.live(&[], 10, 10);
    assert_eq!(after.last().map(String::as_str), Some("ended 10"), "{inject}: {after:?}");
    (said, desk.audit())
}

#[test]
#[ignore = "needs strace"]
fn a_sync_that_fails_once_loses_nothing() {
    let (said, found) = under("fsync:error=EIO:when=3");
    assert!(said.iter().any(|line| line.starts_with("trouble")), "it is said: {said:?}");
    assert_eq!((found.rows + found.shed, found.lost), (2_010, 0), "{said:?}");
}

/// From the first one on, when no file can be opened, and once there is one.
#[test]
#[ignore = "needs strace"]
fn faults_that_last_leave_a_gap() {
    for inject in [
        "fsync:error=EIO:when=1+",
        "fsync:error=EIO:when=9+",
        "fdatasync:error=EIO:when=9+",
        // The file system becomes read-only under open files.
        "pwrite64:error=EROFS:when=40+",
    ] {
        let (said, found) = under(inject);
        let is_whole = said.iter().any(|line| line.starts_with("ended"));
        // A row whose commit returned an error may be there, and count as lost, too.
        let is_counted = found.rows + found.shed + found.lost >= 2_010;
        // An attempt that lasts longer than the end may take leaves no number, and the gap of a kill.
        assert!(is_counted || found.gaps > 0, "{inject}: {found:?} {said:?}");
        assert!(is_whole || found.gaps > 0, "{inject}: {found:?} {said:?}");
    }
}

#[test]
#[ignore = "needs strace"]
fn temporarily_full_disk_loses_nothing() {
    let (said, found) = under("pwrite64:error=ENOSPC:when=40..60");
    assert!(said.iter().any(|line| line.starts_with("trouble")), "it is said: {said:?}");
    assert_eq!((found.rows + found.shed, found.lost), (2_010, 0), "{said:?}");
}

#[test]
#[ignore = "needs strace"]
fn a_slow_sync_delays_and_loses_nothing() {
    let (said, found) = under("fsync:delay_enter=300000:when=2+5");
    assert!(said.last().is_some_and(|line| line == "ended 2000"), "{said:?}");
    assert_eq!(found.rows, 2_010);
}

#[test]
#[ignore = "needs strace"]
fn second_writer_is_rejected_first_continues() {
    let mut desk = Desk::new("second");
    let first = desk.begin(&[], 4_000, 4);
    std::thread::sleep(Duration::from_millis(200));
    let mut second = desk.begin(&[], 10, 10);
    second.hear_until(|said| said.starts_with("trouble"));
    // Left alone it would start when the first has ended.
    second.kill_after(Duration::ZERO);
    let refused = desk.over(second);
    assert!(refused.iter().any(|said| said.starts_with("trouble")), "it says so: {refused:?}");
    let entered = desk.lives.pop().expect("the second's");
    assert_eq!(entered.acknowledged, 0, "{refused:?}");
    let said = desk.over(first);
    assert_eq!(said.last().map(String::as_str), Some("ended 4000"), "{said:?}");
    assert_eq!(desk.audit().rows, 4_000);
}
