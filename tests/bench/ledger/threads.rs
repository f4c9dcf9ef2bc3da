//! The CPU time of this process's threads, by name, and the disk of a folder.

use std::fs;
use std::path::Path;

/// Nanoseconds of CPU of all threads with a name.
pub(crate) fn on_cpu_ns(name: &str) -> u64 {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let used = threads.filter_map(|thread| {
        let of = |file: &str| fs::read_to_string(thread.path().join(file)).ok();
        if of("comm")?.trim() != name {
            return None;
        }
        of("schedstat")?.split_whitespace().next()?.parse::<u64>().ok()
    });
    used.sum()
}

/// The file system of a folder, and its device.
pub(crate) fn disk(folder: &Path) -> String {
    let folder = fs::canonicalize(folder).unwrap_or_default();
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let on = mounts.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (device, at, kind) = (fields.next()?, fields.next()?, fields.next()?);
        folder.starts_with(at).then_some((at.len(), format!("{kind} on {device}")))
    });
    on.max().map_or_else(|| "an unknown disk".to_owned(), |(_, named)| named)
}
