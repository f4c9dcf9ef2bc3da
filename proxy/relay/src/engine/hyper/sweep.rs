//! Once a second: bodies whose client is too slow end, and where something that is shared runs short, it is
//! taken from the slowest uploads, first from those whose holder is above its share.

use std::sync::Arc;

use meter::Tick;

use super::Engine;
use super::pace::{Least, Verdict};
use super::visit::Visit;
use crate::capacity::Capacity;
use crate::holder::Holder;
use crate::{Dropped, clock, limits};

pub(super) fn sweep(engine: &Engine) {
    judge(engine);
    let now = clock::now();
    give_way(&engine.worker.common.room, engine, now, 1, Verdict::Ungathered, |visit| visit.gathering.get());
    for (index, room) in engine.worker.common.upstreams.iter().enumerate() {
        let carried = |visit: &Visit| usize::from(visit.carried.get() == Some(index));
        give_way(room, engine, now, limits::SILENT_SWEEPS, Verdict::Crowding, carried);
    }
    let sockets = |visit: &Visit| usize::from(visit.carried.get().is_some()) + usize::from(visit.alone);
    give_way(&engine.worker.common.sockets, engine, now, limits::SILENT_SWEEPS, Verdict::Crowding, sockets);
    unread(engine);
}

/// Ends what is too slow, and lets go of what needs no watch any more.
fn judge(engine: &Engine) {
    let shares = &engine.worker.plan.shares;
    let rate = shares.body_min_rate_bytes;
    let whole_s = shares.body_time.as_secs();
    let sent = Least { silent_s: shares.body_idle.as_secs(), bytes_per_s: rate, whole_s };
    let taken = Least { silent_s: shares.client_stall.as_secs(), bytes_per_s: rate, whole_s: u64::MAX };
    for visit in engine.watched.all() {
        let sends = visit.is_sending();
        if sends && !visit.uploading.sweep(sent) && !visit.may_pause() {
            visit.uploading.decide(Verdict::Slow);
        }
        let takes = visit.stream.is_some() && visit.answering.get();
        if takes && !visit.downloading.sweep(taken) {
            engine.worker.lose(Dropped::SlowClient);
            visit.cut();
        }
        if !sends && !takes {
            visit.unwatch();
        }
    }
}

/// Makes room for one share by deciding against uploads, the slowest first and of equals the most silent: those of
/// holders above their share until they are within it; if there are none, one that has been silent for at least
/// `silent` sweeps, or slow. Uploads that are not silent give way only to another holder within its share.
fn give_way(
    room: &Capacity,
    engine: &Engine,
    now: Tick,
    silent: u64,
    verdict: Verdict,
    holds: impl Fn(&Visit) -> usize,
) {
    if !room.is_short(now) {
        return;
    }
    let is_crowded = room.is_crowded(now);
    let mut candidates = engine.watched.all();
    candidates.retain(|visit| {
        let pace = &visit.uploading;
        let is_undecided = pace.verdict().is_none_or(|known| known == Verdict::Ungathered);
        let may_end = pace.silent_sweeps() > 0 || is_crowded && pace.is_known();
        visit.is_sending() && is_undecided && may_end && holds(visit) > 0
    });
    candidates.sort_by_cached_key(|visit| visit.uploading.standing());
    let (mut missing, mut freed) = (room.missing().max(1), Vec::<(&Arc<Holder>, usize)>::new());
    for visit in &candidates {
        let Some(holder) = &visit.holder else { continue };
        let at = freed.iter().position(|(known, _)| Arc::ptr_eq(known, holder)).unwrap_or_else(|| {
            freed.push((holder, 0));
            freed.len() - 1
        });
        if missing > 0 && room.excess(Some(holder)) > freed[at].1 {
            freed[at].1 += holds(visit);
            missing = missing.saturating_sub(holds(visit));
            end(engine, visit, verdict);
        }
    }
    let gives_way =
        |visit: &Visit| visit.uploading.silent_sweeps() >= silent || is_crowded && visit.uploading.is_slow();
    if freed.iter().all(|(_, freed)| *freed == 0)
        && let Some(visit) = candidates.iter().find(|visit| gives_way(visit))
    {
        end(engine, visit, verdict);
    }
}

fn end(engine: &Engine, visit: &Visit, verdict: Verdict) {
    if verdict == Verdict::Ungathered {
        engine.worker.lose(Dropped::Gathering);
    }
    visit.uploading.decide(verdict);
}

/// Has the kernel end connections whose client takes nothing of what was sent, and ends those whose client takes
/// too little. HTTP/2 streams have windows of their own.
fn unread(engine: &Engine) {
    let shares = &engine.worker.plan.shares;
    let least = Least { silent_s: u64::MAX, bytes_per_s: shares.body_min_rate_bytes, whole_s: u64::MAX };
    for (client, task) in engine.clients.borrow().values() {
        if client.is_blocked() {
            client.end_unread_after(shares.client_stall);
        }
        if !client.taking.sweep(least) {
            engine.worker.lose(Dropped::SlowClient);
            task.abort();
        }
    }
}
