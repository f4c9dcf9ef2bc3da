//! The machine as the plan sees it. A trait, so that tests need no name server and no particular number of cores.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The properties of a machine that a plan needs.
pub trait Machine {
    /// Returns the number of available cores.
    fn cores(&self) -> usize;
    /// Resolves a host name; empty on failure or timeout.
    fn resolve(&self, host: &str) -> Vec<IpAddr>;
    /// Returns the limit on file descriptors of the process, if known.
    fn descriptors(&self) -> Option<usize> {
        None
    }
    /// Returns true if an address belongs to this machine.
    fn owns(&self, address: IpAddr) -> bool;
    /// Returns the host name; empty if there is none.
    fn host(&self) -> String;
    /// Returns an environment variable, read lossily as UTF-8.
    fn variable(&self, name: &str) -> Option<String>;
    /// Returns the names of the environment variables that begin with `prefix`.
    fn variables(&self, prefix: &str) -> Vec<String>;
}

/// The machine of this process.
#[derive(Clone, Copy, Debug)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn cores(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn resolve(&self, host: &str) -> Vec<IpAddr> {
        let (answer, answered) = channel();
        let host = host.to_owned();
        // The resolver has no timeout; a thread that it blocks ends when it gives up.
        std::thread::spawn(move || {
            let found = (host.as_str(), 0).to_socket_addrs();
            let addresses = found.map(|all| all.map(|address| address.ip()).collect()).unwrap_or_default();
            // The receiver is gone after a timeout.
            let _ = answer.send(addresses);
        });
        answered.recv_timeout(RESOLVE_TIME).unwrap_or_default()
    }

    fn descriptors(&self) -> Option<usize> {
        // Columns: the limit's name in three words, the soft limit, the hard one, the unit.
        let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    fn owns(&self, address: IpAddr) -> bool {
        // A socket can be bound to own addresses only; the bind sends nothing.
        UdpSocket::bind((address, 0)).is_ok()
    }

    fn host(&self) -> String {
        std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    }

    fn variables(&self, prefix: &str) -> Vec<String> {
        let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(prefix)).collect()
    }
}

/// The timeout of a name resolution at the start.
const RESOLVE_TIME: Duration = Duration::from_secs(2);

/// A machine for tests with one core and these variables.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct Alone(pub(crate) &'static [(&'static str, &'static str)]);

#[cfg(test)]
impl Machine for Alone {
    fn cores(&self) -> usize {
        1
    }

    fn resolve(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }

    fn owns(&self, _: IpAddr) -> bool {
        false
    }

    fn host(&self) -> String {
        "node-1".to_owned()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    fn variables(&self, prefix: &str) -> Vec<String> {
        let names = self.0.iter().map(|(name, _)| (*name).to_owned());
        names.filter(|name| name.starts_with(prefix)).collect()
    }
}
