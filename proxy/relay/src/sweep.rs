//! Once a second: ends bodies of clients that are too slow, and, where a shared capacity is short, the slowest uploads,
//! those of holders above their share first, and the quietest tunnels of such holders.

use std::sync::Arc;

use meter::Tick;

use crate::capacity::Capacity;
use crate::connections::Connections;
use crate::engine::Engine;
use crate::engine::net::pace::{MinimumSpeed, Verdict};
use crate::holder::Holder;
use crate::request::in_flight::InFlight;
use crate::{Dropped, clock, limits};

/// Checks the requests and connections of one worker; called once a second.
pub(crate) fn sweep<E: Engine>(connections: &Connections<E>) {
    judge(connections);
    let now = clock::now();
    give_way(
        &connections.worker.capacities.gathered_bytes,
        connections,
        now,
        1,
        Verdict::Ungathered,
        |in_flight| in_flight.gathering.get(),
    );
    for (index, capacity) in connections.worker.capacities.upstreams.iter().enumerate() {
        let carried =
            |in_flight: &InFlight| usize::from(in_flight.is_carried.get() && in_flight.upstream == index);
        give_way(capacity, connections, now, limits::SILENT_SWEEPS, Verdict::OverShare, carried);
        tunnels_give_way(capacity, connections, now, index);
    }
    let sockets =
        |in_flight: &InFlight| usize::from(in_flight.has_socket.get()) + usize::from(in_flight.is_http1);
    give_way(
        &connections.worker.capacities.sockets,
        connections,
        now,
        limits::SILENT_SWEEPS,
        Verdict::OverShare,
        sockets,
    );
    unread(connections);
}

/// Ends requests that are too slow, and removes those that need no more checks.
fn judge<E: Engine>(connections: &Connections<E>) {
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
        let takes = in_flight.stream.is_some() && in_flight.answering.get();
        if takes && !in_flight.downloading.sweep(taken) {
            connections.worker.dropped(Dropped::SlowClient);
            in_flight.cut();
        }
        if !sends && !takes {
            in_flight.unwatch();
        }
    }
}

/// Frees one share by ending uploads, the slowest first and of equals the longest silent: those of holders above their
/// share until they are within it; if there are none, one that has been silent for at least `silent` sweeps, or slow.
/// Uploads that are not silent are ended only for another holder within its share.
fn give_way<E: Engine>(
    capacity: &Capacity,
    connections: &Connections<E>,
    now: Tick,
    silent: u64,
    verdict: Verdict,
    holds: impl Fn(&InFlight) -> usize,
) {
    if !capacity.is_short(now) {
        return;
    }
    let is_crowded = capacity.is_crowded(now);
    let mut candidates = connections.watched.all();
    candidates.retain(|in_flight| {
        let pace = &in_flight.uploading;
        let is_undecided = pace.verdict().is_none_or(|known| known == Verdict::Ungathered);
        let may_end = pace.silent_sweeps() > 0 || is_crowded && pace.is_known();
        in_flight.is_sending() && is_undecided && may_end && holds(in_flight) > 0
    });
    candidates.sort_by_cached_key(|in_flight| in_flight.uploading.standing());
    let (mut missing, mut freed) = (capacity.missing().max(1), Vec::<(&Arc<Holder>, usize)>::new());
    for in_flight in &candidates {
        let Some(holder) = &in_flight.holder else { continue };
        let at = freed.iter().position(|(known, _)| Arc::ptr_eq(known, holder)).unwrap_or_else(|| {
            freed.push((holder, 0));
            freed.len() - 1
        });
        if missing > 0 && capacity.excess(Some(holder)) > freed[at].1 {
            freed[at].1 += holds(in_flight);
            missing = missing.saturating_sub(holds(in_flight));
            end(connections, in_flight, verdict);
        }
    }
    let gives_way = |in_flight: &InFlight| {
        in_flight.uploading.silent_sweeps() >= silent || is_crowded && in_flight.uploading.is_slow()
    };
    if freed.iter().all(|(_, freed)| *freed == 0)
        && let Some(in_flight) = candidates.iter().find(|in_flight| gives_way(in_flight))
    {
        end(connections, in_flight, verdict);
    }
}

/// Frees one share of an upstream's connections for another holder: ends tunnels of holders above their share until
/// they are within it, first those whose clients have sent nothing for longest.
fn tunnels_give_way<E: Engine>(
    capacity: &Capacity,
    connections: &Connections<E>,
    now: Tick,
    upstream: usize,
) {
    if !capacity.is_crowded(now) {
        return;
    }
    let clients = connections.clients.borrow();
    let mut tunnels: Vec<_> = clients
        .values()
        .filter_map(|(client, task)| Some((client.tunnel_read()?.0, client.tunnel_holder(upstream)?, task)))
        .collect();
    tunnels.sort_by_key(|(read, ..)| *read);
    let (mut missing, mut freed) = (capacity.missing(), Vec::<Arc<Holder>>::new());
    for (_, holder, task) in tunnels {
        let of_holder = freed.iter().filter(|other| Arc::ptr_eq(other, &holder)).count();
        if missing > 0 && capacity.excess(Some(&holder)) > of_holder {
            missing -= 1;
            freed.push(holder);
            connections.worker.dropped(Dropped::Connection);
            task.abort();
        }
    }
}

fn end<E: Engine>(connections: &Connections<E>, in_flight: &InFlight, verdict: Verdict) {
    if verdict == Verdict::Ungathered {
        connections.worker.dropped(Dropped::Gathering);
    }
    in_flight.uploading.decide(verdict);
}

/// Sets the kernel to end connections whose client reads nothing, and ends those whose client reads too slowly. HTTP/2
/// streams have windows of their own.
fn unread<E: Engine>(connections: &Connections<E>) {
    let shares = &connections.worker.plan.shares;
    let least =
        MinimumSpeed { silent_s: u64::MAX, bytes_per_s: shares.body_min_rate_bytes, whole_s: u64::MAX };
    for (client, task) in connections.clients.borrow().values() {
        if client.writes.is_blocked() {
            client.end_unread_after(shares.client_stall);
        }
        if !client.writes.taking.sweep(least) {
            connections.worker.dropped(Dropped::SlowClient);
            task.abort();
        }
    }
}
