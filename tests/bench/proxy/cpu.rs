//! CPU time and memory of processes and the machine, read from `/proc`.
//!
//! A process's CPU time is the time its threads were on a core (`schedstat`, nanoseconds): the same sum as utime +
//! stime, without their steps of 10 ms. It excludes ended threads; no measured proxy ends one.

use std::collections::BTreeMap;
use std::fs;

/// A process and all its descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = processes().filter_map(|id| Some((id, parent(id)?))).collect();
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(&id) = tree.get(at) {
        tree.extend(parents.iter().filter(|(_, parent)| *parent == id).map(|(child, _)| child));
        at += 1;
    }
    tree
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(id: u32) -> Option<u32> {
    // The name in parentheses may contain anything; the state and the parent follow it.
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The CPU time of these processes, user and system.
pub(crate) fn on_cpu_ns(tree: &[u32]) -> u64 {
    threads_ns(tree).values().sum()
}

/// The CPU time of each thread of these processes, by its id.
pub(crate) fn threads_ns(tree: &[u32]) -> BTreeMap<u32, u64> {
    let threads = tree.iter().flat_map(|id| fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten());
    let used = threads.flatten().filter_map(|thread| {
        let schedstat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let id = thread.file_name().to_str()?.parse().ok()?;
        Some((id, schedstat.split_whitespace().next()?.parse::<u64>().ok()?))
    });
    used.collect()
}

/// The memory of a proxy, KiB. Pages that two of its processes share are counted twice.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) resident_kib: u64,
    /// Without pages of files. With a page that is used, the kernel maps the cached pages around it, so their number
    /// depends on what else was read, not on the proxy.
    pub(crate) own_kib: u64,
}

/// The memory of these processes.
pub(crate) fn memory(tree: &[u32]) -> Memory {
    let status = tree.iter().filter_map(|id| fs::read_to_string(format!("/proc/{id}/status")).ok());
    let status: String = status.collect();
    let sum = |field: &str| {
        let lines = status.lines().filter_map(|line| line.strip_prefix(field)?.split_whitespace().next());
        lines.filter_map(|kib| kib.parse::<u64>().ok()).sum::<u64>()
    };
    Memory { resident_kib: sum("VmRSS:"), own_kib: sum("RssAnon:") + sum("RssShmem:") }
}

/// The busy time of the whole machine, nanoseconds over all cores, including the time taken by the hypervisor.
pub(crate) fn machine_busy_ns() -> u64 {
    const TICK_NS: u64 = 10_000_000;
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = stat.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = all.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user nice system (idle iowait) irq softirq steal
    [0, 1, 2, 5, 6, 7].iter().filter_map(|&at| ticks.get(at)).sum::<u64>() * TICK_NS
}

/// The machine, on one line.
pub(crate) fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, value)| value).to_owned()
    };
    let cores = info.lines().filter(|line| line.starts_with("processor")).count();
    let virtual_machine = if info.contains(" hypervisor") { ", a virtual machine" } else { "" };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{} (family {}, model {}), {cores} cores{virtual_machine}, Linux {}",
        field("model name"),
        field("cpu family"),
        field("model\t"),
        kernel.trim()
    )
}

/// The number of runnable processes, as a mean of the last minute.
pub(crate) fn load_average() -> String {
    let all = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split_whitespace().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_tree_has_used_cpu_time() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        let tree = tree(std::process::id());
        assert!(tree.contains(&child.id()));
        assert!(on_cpu_ns(&tree) > 0);
        assert!(threads_ns(&tree).contains_key(&child.id()));
        let memory = memory(&tree);
        assert!(memory.resident_kib > memory.own_kib && memory.own_kib > 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
