//! Resource use of this process as the kernel reports it. A value that the kernel does not report is omitted.

use std::fs;

/// One reading of `/proc/self`.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) start_seconds: Option<f64>,
}

impl Process {
    pub(crate) fn read() -> Self {
        let stat = stat();
        Self {
            memory_bytes: memory_bytes(),
            cpu_seconds: cpu_seconds(&stat),
            open_files: fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64),
            start_seconds: start_seconds(&stat),
        }
    }
}

/// Returns the text of `/proc/self/stat`.
pub(crate) fn stat() -> String {
    fs::read_to_string("/proc/self/stat").unwrap_or_default()
}

/// Returns the resident memory.
pub(crate) fn memory_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(kibibytes.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Returns the user and system CPU time.
pub(crate) fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((ticks(stat, UTIME)? + ticks(stat, STIME)?) / TICKS_PER_SECOND)
}

fn start_seconds(stat: &str) -> Option<f64> {
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(boot.trim().parse::<f64>().ok()? + ticks(stat, STARTTIME)? / TICKS_PER_SECOND)
}

/// Returns a field of `/proc/self/stat`, numbered as in proc(5). Field 2, the program's name, may contain spaces and
/// brackets; the last bracket ends it.
fn ticks(stat: &str, field: usize) -> Option<f64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(field - 3)?.parse().ok()
}

const UTIME: usize = 14;
const STIME: usize = 15;
const STARTTIME: usize = 22;

/// `USER_HZ`, the unit of times in `/proc`: 100 on every supported architecture.
const TICKS_PER_SECOND: f64 = 100.0;
