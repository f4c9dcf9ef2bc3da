//! What a plan has to ask the machine it will run on. A trait, so that the tests of the plan need
//! no name server and no particular number of cores.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The machine, as the plan sees it.
pub trait Machine {
    /// Cores we may use.
    fn cores(&self) -> usize;
    /// The addresses a host name has now; none if it has none, or none in good time.
    fn resolve(&self, host: &str) -> Vec<IpAddr>;
    /// File descriptors this process may have; `None` where that is not known.
    fn descriptors(&self) -> Option<usize> {
        None
    }
    /// Whether an address is one of this machine's own.
    fn owns(&self, address: IpAddr) -> bool;
    /// Its name; empty if it has none.
    fn host(&self) -> String;
    /// An environment variable, if it is set; what is not UTF-8 in it is made readable.
    fn variable(&self, name: &str) -> Option<String>;
    /// Returns the names of the environment variables that begin with `prefix`.
    fn variables(&self, prefix: &str) -> Vec<String>;
}

/// The machine we are on.
#[derive(Clone, Copy, Debug)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn cores(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn resolve(&self, host: &str) -> Vec<IpAddr> {
        let (answer, answered) = channel();
        let host = host.to_owned();
        // The resolver has no deadline of its own; a thread it blocks ends when it gives up.
        std::thread::spawn(move || {
            let found = (host.as_str(), 0).to_socket_addrs();
            let addresses = found.map(|all| all.map(|address| address.ip()).collect()).unwrap_or_default();
            // Nobody listens any more if it took too long.
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
        // The system lets a socket be bound to its own addresses only, and sends nothing by it.
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

/// A start waits no longer than this for a name: the upstream may be up before its name is.
const RESOLVE_TIME: Duration = Duration::from_secs(2);

/// A machine for tests: alone, with one core and these variables.
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
