//! The sweep, once a second: ends client connections without a request for too long, the requests of clients that are too
//! slow, and, where a shared capacity is short, those that give way by the rules of [`claims`](crate::claims).

use std::rc::Rc;
use std::sync::Arc;

use crate::capacity::Capacity;
use crate::claims::{self, Claim, Need, Progress};
use crate::conn::client::{Client, Stage};
use crate::conn::pace::{MinimumSpeed, Verdict};
use crate::connections::Connections;
use crate::holder::Holder;
use crate::request::in_flight::{Carrier, InFlight};
use crate::state::WorkerState;
use crate::{Dropped, clock, limits};

/// Checks the requests and connections of one worker; called once a second.
pub(crate) fn sweep(connections: &Connections) {
    end_overdue(connections);
    check_requests(connections);
    check_sockets(connections);
    let capacities = &connections.worker.capacities;
    give_way(&capacities.gathered_bytes, connections, Verdict::Ungathered, InFlight::gathered_bytes, None);
    for (index, capacity) in capacities.upstreams.iter().enumerate() {
        let carried = |in_flight: &InFlight| {
            usize::from(in_flight.carrier.get() != Carrier::None && in_flight.upstream == index)
        };
        give_way(capacity, connections, Verdict::OverShare, carried, Some(index));
    }
    let sockets = |in_flight: &InFlight| {
        usize::from(in_flight.carrier.get() == Carrier::Socket) + usize::from(in_flight.is_http1())
    };
    give_way(&capacities.sockets, connections, Verdict::OverShare, sockets, None);
}

/// Ends client connections that have waited too long for a request. An idle one of HTTP/2 announces its end first.
pub(crate) fn end_overdue(connections: &Connections) {
    let worker = &connections.worker;
    for (client, task) in connections.clients.borrow().values() {
        if !is_overdue(worker, client) {
            continue;
        }
        let is_idle = client.stage() == Stage::Idle;
        if is_idle && client.is_http2() && client.announce_end() {
            continue;
        }
        client.count_overdue(worker);
        client.cut(task);
        let client = Rc::clone(client);
        connections.read_on(async move { client.linger().await });
    }
}

/// Returns true if a connection has waited too long for a request.
fn is_overdue(worker: &WorkerState, client: &Client) -> bool {
    let since = client.since();
    let (since, limit) = match (client.stage(), worker.leaving.get()) {
        (Stage::Busy | Stage::Ended, _) => return false,
        (Stage::Fresh | Stage::Idle, Some(ordered)) => (since.max(ordered), limits::LAST_IDLE),
        (Stage::Idle, None) => (since, limits::CLIENT_IDLE),
        (Stage::Fresh | Stage::Head, _) => (since, worker.plan.head_timeout),
    };
    u128::from(clock::now().since(since)) >= limit.as_nanos()
}

/// Ends requests that are too slow, and removes those that need no more checks.
fn check_requests(connections: &Connections) {
    let shares = &connections.worker.plan.shares;
    let rate = shares.body_min_rate_bytes;
    let whole_s = shares.body_time.as_secs();
    let sent = MinimumSpeed { silent_s: shares.body_idle.as_secs(), bytes_per_s: rate, whole_s };
    let taken =
        MinimumSpeed { silent_s: shares.client_stall.as_secs(), bytes_per_s: rate, whole_s: u64::MAX };
    for in_flight in connections.watched.all() {
        let sends = in_flight.is_sending();
        if sends && !in_flight.uploading.sweep(sent) && !in_flight.may_pause() {
            in_flight.uploading.decide(Verdict::Slow);
        }
        let takes = in_flight.is_answering();
        if takes && in_flight.stream.as_ref().is_some_and(|stream| !stream.taking.sweep(taken)) {
            connections.end_unread(&in_flight);
        }
        if !sends && !takes {
            in_flight.unwatch();
        }
    }
}

/// Frees what is needed of a capacity: ends exchanges, each of which holds an amount of it, and the tunnels of an
/// upstream. `verdict`: the end of an upload.
fn give_way(
    capacity: &Capacity,
    connections: &Connections,
    verdict: Verdict,
    holds: impl Fn(&InFlight) -> usize,
    upstream: Option<usize>,
) {
    let need = capacity.need(clock::now());
    if need == Need::default() {
        return;
    }
    let claim = |holder: Option<&Arc<Holder>>, amount, progress| {
        let excess = capacity.excess(holder);
        Claim { holder: holder.map(Arc::as_ptr), excess, amount, progress }
    };
    let watched = connections.watched.all();
    let exchanges = watched.iter();
    let mut claims: Vec<_> = exchanges
        .map(|in_flight| claim(in_flight.holder.as_ref(), holds(in_flight), in_flight.progress()))
        .collect();
    let (clients, mut tunnels) = (connections.clients.borrow(), Vec::new());
    for (client, task) in clients.values() {
        if let Some(read) = client.tunnel_read()
            && let Some(holder) = upstream.and_then(|upstream| client.tunnel_holder(upstream))
        {
            claims.push(claim(Some(&holder), 1, Progress::Tunnel(read.0)));
            tunnels.push(task);
        }
    }
    for at in claims::give_way(need, &claims) {
        match watched.get(at) {
            Some(in_flight) if in_flight.is_sending() => {
                if verdict == Verdict::Ungathered {
                    connections.worker.dropped(Dropped::Gathering);
                }
                in_flight.uploading.decide(verdict);
            }
            Some(in_flight) => connections.end_unread(in_flight),
            None => {
                connections.worker.dropped(Dropped::Connection);
                tunnels[at - watched.len()].abort();
            }
        }
    }
}

/// Sets the kernel to end connections whose client reads nothing or has vanished, and ends those whose client reads too
/// slowly. HTTP/2 streams have windows of their own.
fn check_sockets(connections: &Connections) {
    let shares = &connections.worker.plan.shares;
    let least =
        MinimumSpeed { silent_s: u64::MAX, bytes_per_s: shares.body_min_rate_bytes, whole_s: u64::MAX };
    let now = clock::now();
    for (client, task) in connections.clients.borrow().values() {
        client.probe_if_long(now, shares.client_stall);
        if client.writes.is_blocked() {
            client.end_unread_after(shares.client_stall);
        }
        if !client.writes.taking.sweep(least) {
            connections.worker.dropped(Dropped::SlowClient);
            client.cut(task);
        }
    }
}
