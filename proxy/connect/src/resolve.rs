//! The addresses of a name, resolved in the background: a connection waits for the first resolution only.
//!
//! The system resolves (getaddrinfo), so that hosts files, search domains and other sources of names count. It
//! reports no TTL; addresses are therefore resolved again every [`REFRESH`], while connections need them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::ConnectError;

/// The addresses of a name. All connections to the name share them.
#[derive(Debug)]
pub(crate) struct Names {
    host: Arc<str>,
    port: u16,
    source: Source,
    known: watch::Sender<Known>,
    /// Connections so far, which take the addresses in turn.
    turn: AtomicUsize,
}

/// The result of the last resolutions.
#[derive(Debug, Default)]
struct Known {
    /// The addresses of the last successful resolution.
    addresses: Vec<SocketAddr>,
    /// The time at which the last resolution ended.
    resolved_at: Option<Instant>,
    /// The failure of the last resolution.
    error: Option<String>,
    is_resolving: bool,
}

impl Known {
    fn is_due(&self) -> bool {
        let age_max = if self.error.is_some() { RETRY } else { REFRESH };
        !self.is_resolving && self.resolved_at.is_none_or(|at| at.elapsed() >= age_max)
    }
}

/// The source of answers.
#[derive(Debug)]
pub(crate) enum Source {
    System,
    #[cfg(test)]
    Script(script::Script),
}

impl Names {
    pub(crate) fn new(host: &Arc<str>, port: u16, source: Source) -> Arc<Self> {
        let (known, turn) = (watch::Sender::default(), AtomicUsize::new(0));
        Arc::new(Self { host: Arc::clone(host), port, source, known, turn })
    }

    /// Returns the addresses in the order in which a new connection tries them. Waits if there has been no answer yet;
    /// an old answer is returned at once and renewed in the background.
    pub(crate) async fn addresses(self: &Arc<Self>) -> Result<Vec<SocketAddr>, ConnectError> {
        let mut known = self.known.subscribe();
        loop {
            self.resolve_if_due();
            {
                let known = known.borrow_and_update();
                if !known.addresses.is_empty() {
                    let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                    return Ok(in_turn(&known.addresses, turn));
                }
                if let (Some(error), false) = (&known.error, known.is_resolving) {
                    return Err(ConnectError::Name(io::Error::other(error.clone())));
                }
            }
            // The sender lives as long as `self`.
            let _ = known.changed().await;
        }
    }

    /// Returns the number of servers that the addresses may stand for: one server may have an address of each family.
    pub(crate) fn server_count(&self) -> usize {
        let known = self.known.borrow();
        let v4 = known.addresses.iter().filter(|address| address.is_ipv4()).count();
        v4.max(known.addresses.len() - v4)
    }

    fn resolve_if_due(self: &Arc<Self>) {
        let starts = self.known.send_if_modified(|known| {
            let is_due = known.is_due();
            known.is_resolving |= is_due;
            is_due
        });
        if starts {
            tokio::spawn(Resolution(Arc::clone(self)).run());
        }
    }

    async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        match &self.source {
            Source::System => {
                let mut addresses = Vec::new();
                for address in tokio::net::lookup_host((&*self.host, self.port)).await? {
                    // A hosts file may list one twice.
                    if !addresses.contains(&address) {
                        addresses.push(address);
                    }
                }
                Ok(addresses)
            }
            #[cfg(test)]
            Source::Script(script) => script.next().await,
        }
    }
}

/// A resolution in progress. Dropping it, as at the end of its runtime, lets another connection start one.
struct Resolution(Arc<Names>);

impl Resolution {
    async fn run(self) {
        let answer = self.0.resolve().await;
        self.0.known.send_modify(|known| {
            known.resolved_at = Some(Instant::now());
            known.error = None;
            match answer {
                Ok(addresses) if !addresses.is_empty() => known.addresses = addresses,
                Ok(_) => known.error = Some("the answer is empty".to_owned()),
                Err(error) => known.error = Some(error.to_string()),
            }
        });
    }
}

impl Drop for Resolution {
    fn drop(&mut self) {
        self.0.known.send_modify(|known| known.is_resolving = false);
    }
}

/// Orders addresses for a connection (RFC 8305 §4): families alternate, beginning with that of the first address, which
/// the system prefers. Within a family, each connection begins one address later, so that all of a headless Service are
/// used.
fn in_turn(addresses: &[SocketAddr], turn: usize) -> Vec<SocketAddr> {
    let is_first_family = |address: &&SocketAddr| address.is_ipv4() == addresses[0].is_ipv4();
    let (mut preferred, mut others): (Vec<SocketAddr>, Vec<SocketAddr>) =
        addresses.iter().partition(|address| is_first_family(address));
    for family in [&mut preferred, &mut others] {
        let by = turn.checked_rem(family.len()).unwrap_or(0);
        family.rotate_left(by);
    }
    let mut ordered = Vec::with_capacity(addresses.len());
    let (mut preferred, mut others) = (preferred.into_iter(), others.into_iter());
    loop {
        let before = ordered.len();
        ordered.extend(preferred.next());
        ordered.extend(others.next());
        if ordered.len() == before {
            return ordered;
        }
    }
}

/// The age from which addresses are resolved again. Changes of a headless Service take effect within this time.
pub(crate) const REFRESH: Duration = Duration::from_secs(5);

/// The time for which a failed resolution is not repeated.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod script {
    //! Answers for tests.

    use std::collections::VecDeque;
    use std::io;
    use std::net::SocketAddr;
    use std::sync::Mutex;
    use std::time::Duration;

    /// Answers in order, each after a delay; the last one repeats.
    #[derive(Debug)]
    pub(crate) struct Script(pub(crate) Mutex<VecDeque<(Duration, Vec<SocketAddr>)>>);

    impl Script {
        pub(super) async fn next(&self) -> io::Result<Vec<SocketAddr>> {
            let (delay, answer) = {
                let mut answers = self.0.lock().unwrap();
                if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() }
            };
            tokio::time::sleep(delay).await;
            if answer.is_empty() { Err(io::Error::other("no such name")) } else { Ok(answer) }
        }
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
