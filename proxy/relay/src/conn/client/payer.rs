//! The client that is charged for a connection: the one at its other end, or the one that a load balancer names there by
//! the PROXY protocol.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::Client;
use crate::capacity::Permit;
use crate::conn::proxy_header::{self, Source, Step};
use crate::holder::{Holder, Key};
use crate::state::WorkerState;

/// The client that is charged for a connection.
pub(super) struct Payer {
    /// The address at its other end, or the one that a trusted load balancer named there.
    peer: IpAddr,
    /// True until the header of the PROXY protocol was read, where one is expected.
    awaits_header: bool,
    /// The holder that is charged; `None` for a trusted peer, whose requests are charged to their tenants.
    holder: Option<Arc<Holder>>,
    counted: Permit,
    /// The connection's place among all sockets, while it is served.
    socket_place: Option<Permit>,
}

impl Payer {
    /// The client at this address. An IPv4 address mapped into IPv6 becomes IPv4.
    pub(super) fn new(worker: &WorkerState, (peer, awaits_header): (IpAddr, bool)) -> Self {
        let peer = peer.to_canonical();
        let holder = holder(worker, peer);
        let mut counted = worker.capacities.connections.permit(holder.clone());
        counted.add(1);
        Self { peer, awaits_header, holder, counted, socket_place: None }
    }

    /// Charges another client from now on.
    fn change(&mut self, worker: &WorkerState, peer: IpAddr) {
        self.peer = peer;
        self.holder = holder(worker, peer);
        self.counted.charge(self.holder.clone());
        if let Some(place) = &mut self.socket_place {
            place.charge(self.holder.clone());
        }
    }
}

impl Client {
    /// Returns the address at its other end, or the one that a trusted load balancer named there.
    pub(crate) fn peer(&self) -> IpAddr {
        self.payer.borrow().peer
    }

    /// The holder that is charged for it.
    pub(crate) fn holder(&self) -> Option<Arc<Holder>> {
        self.payer.borrow().holder.clone()
    }

    /// Stores its place among all sockets, or removes it.
    pub(crate) fn set_socket_place(&self, place: Option<Permit>) {
        self.payer.borrow_mut().socket_place = place;
    }

    /// Returns true until the header of the PROXY protocol was read, where one is expected.
    pub(crate) fn awaits_header(&self) -> bool {
        self.payer.borrow().awaits_header
    }

    /// Reads the header of the PROXY protocol, where one is expected: from then on the connection is one of the client
    /// that the header names.
    pub(crate) async fn read_proxy_header(&self, worker: &WorkerState) -> io::Result<()> {
        if !self.awaits_header() {
            return Ok(());
        }
        let mut header = Vec::new();
        let source = loop {
            match proxy_header::read(&header) {
                Step::Done(source) => break source,
                Step::Invalid => return Err(io::Error::other("no header of the PROXY protocol")),
                Step::More(more) => {
                    let filled = header.len();
                    header.resize(filled + more, 0);
                    let read = poll_fn(|cx| self.poll_clear(cx, &mut header[filled..])).await?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    header.truncate(filled + read);
                }
            }
        };
        let mut payer = self.payer.borrow_mut();
        payer.awaits_header = false;
        match source {
            Source::Client(address) => payer.change(worker, address.to_canonical()),
            // It has no address, and nothing of the load balancer's trust.
            Source::Unknown => payer.change(worker, Ipv4Addr::UNSPECIFIED.into()),
            Source::Balancer => {}
        }
        Ok(())
    }
}

/// Returns the holder that is charged for a connection of `peer`.
fn holder(worker: &WorkerState, peer: IpAddr) -> Option<Arc<Holder>> {
    let is_trusted = worker.control.tenants.load().trusts(peer);
    (!is_trusted).then(|| worker.capacities.holders.of(Key::network(peer)))
}
