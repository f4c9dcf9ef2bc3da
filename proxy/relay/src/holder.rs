//! Holders: the parties among which shared capacity is divided. A holder is a network address, or, behind a trusted
//! peer such as an ingress, a tenant that a request's head names. The lock is taken when a connection begins or ends,
//! and once for each request of a trusted peer; the amounts of a holder are atomic numbers.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Identifies a holder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A peer's address; of IPv6 the /64 network, because one machine commonly has a whole one.
    Network(IpAddr),
    /// A tenant behind a trusted peer.
    Tenant(Arc<str>),
}

/// The resources of which a holder may have only a share while another one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// Client connections.
    Connections,
    /// Bytes of gathered request bodies.
    GatheredBytes,
    /// Sockets of clients, and of the upstream connections that carry their requests.
    Sockets,
    /// Connections to the upstream of this index that carry a request.
    Upstream(usize),
}

impl Resource {
    /// Its index among the numbers of a holder.
    fn index(self) -> usize {
        match self {
            Self::Connections => 0,
            Self::GatheredBytes => 1,
            Self::Sockets => 2,
            Self::Upstream(index) => 3 + index,
        }
    }
}

/// One holder; it exists while it holds anything.
#[derive(Debug)]
pub(crate) struct Holder {
    key: Key,
    all: Weak<Mutex<Map>>,
    /// The amount of each resource.
    held: Box<[AtomicUsize]>,
}

type Map = HashMap<Key, Weak<Holder>>;

/// All holders of the process.
#[derive(Clone, Debug)]
pub(crate) struct Holders {
    all: Arc<Mutex<Map>>,
    upstreams: usize,
}

impl Key {
    /// The key of a peer's address.
    pub(crate) fn network(address: IpAddr) -> Self {
        Self::Network(match address {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            IpAddr::V4(_) => address,
        })
    }
}

impl Holders {
    /// A process without holders, with this number of upstreams.
    pub(crate) fn new(upstreams: usize) -> Self {
        Self { all: Arc::default(), upstreams }
    }

    /// Returns the holder with this key; creates it if necessary.
    pub(crate) fn of(&self, key: Key) -> Arc<Holder> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holder) = all.get(&key).and_then(Weak::upgrade) {
            return holder;
        }
        let all_of_it = Arc::downgrade(&self.all);
        let resources = Resource::Upstream(self.upstreams).index();
        let held = (0..resources).map(|_| AtomicUsize::default()).collect();
        let holder = Arc::new(Holder { key: key.clone(), all: all_of_it, held });
        all.insert(key, Arc::downgrade(&holder));
        holder
    }
}

impl Holder {
    /// The amount it holds.
    pub(crate) fn held(&self, of: Resource) -> usize {
        self.held[of.index()].load(Ordering::Relaxed)
    }

    /// Adds `n`; returns the amount before.
    pub(crate) fn take(&self, of: Resource, n: usize) -> usize {
        self.held[of.index()].fetch_add(n, Ordering::Relaxed)
    }

    /// Subtracts `n`; returns the amount before.
    pub(crate) fn give_back(&self, of: Resource, n: usize) -> usize {
        self.held[of.index()].fetch_sub(n, Ordering::Relaxed)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let Some(all) = self.all.upgrade() else { return };
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        // A new holder with the same key may exist by now.
        if all.get(&self.key).is_some_and(|holder| holder.strong_count() == 0) {
            all.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_holders_are_forgotten() {
        let holders = Holders::new(1);
        let key = Key::network([127, 0, 0, 1].into());
        let one = holders.of(key.clone());
        one.take(Resource::Connections, 2);
        assert_eq!(holders.of(key.clone()).held(Resource::Connections), 2);
        drop(one);
        assert!(holders.all.lock().unwrap().is_empty());
        assert_eq!(holders.of(key).held(Resource::Connections), 0);
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one() {
        let key = |address: &str| Key::network(address.parse().unwrap());
        assert_eq!(key("2001:db8:1:2::3"), key("2001:db8:1:2:ffff::1"));
        assert_ne!(key("2001:db8:1:2::3"), key("2001:db8:1:3::3"));
        assert_ne!(key("10.0.0.1"), key("10.0.0.2"));
    }
}
