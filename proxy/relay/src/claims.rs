//! Claims on a shared capacity: how much of it a holder may take, and which claims give way once it is full. These are
//! pure functions, so that all protocols have the same rules.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use crate::limits::SHARES;

/// A part of a capacity that one exchange or tunnel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim<H> {
    /// Its holder; `None` if no share limits it.
    pub(crate) holder: Option<H>,
    /// The amount by which that holder exceeds its share.
    pub(crate) excess: usize,
    pub(crate) amount: usize,
    pub(crate) progress: Progress,
}

/// The progress of a client, in the order in which claims give way: of the first two the bytes of recent seconds, then
/// the number of seconds without a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// The proxy waits for the client, which has moved next to nothing for several seconds.
    Slow(u64, Reverse<u64>),
    /// The proxy waits for the client, and has for a second.
    Awaited(u64, Reverse<u64>),
    /// A tunnel, with the tick at which its client last sent bytes.
    Tunnel(u64),
    /// The client takes or sends all that it can: its claim never gives way.
    Flowing,
}

/// The amounts of a capacity to free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Need {
    /// For holders within their shares, from those above theirs.
    pub(crate) within_shares: usize,
    /// For all that wait, from clients that are slow.
    pub(crate) in_all: usize,
}

/// Returns true if a holder that has `held` of a capacity may take `more` of the free rest. It may take as much as leaves
/// a third of its own amount free, so that all holders together leave some for a further one. The first part may be any.
pub(crate) fn may_take(held: usize, more: usize, free: usize) -> bool {
    let Some(left) = free.checked_sub(more) else { return false };
    held == 0 || held.saturating_add(more) <= (SHARES - 1).saturating_mul(left)
}

/// Returns the indexes of the claims that give way, in their order. Holders above their share lose claims until they are
/// within it, if one within its share needs that. Beyond that only slow clients give way: to any request if their holder
/// is above its share or has none, else to holders within their shares.
pub(crate) fn give_way<H: Copy + Eq + Hash>(need: Need, claims: &[Claim<H>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..claims.len())
        .filter(|at| claims[*at].amount > 0 && claims[*at].progress != Progress::Flowing)
        .collect();
    order.sort_by_key(|at| claims[*at].progress);
    let (mut freed, mut freed_of) = (0, HashMap::<Option<H>, usize>::new());
    let (mut ended, mut rest) = (Vec::new(), Vec::new());
    for at in order {
        let Claim { holder, excess, amount, .. } = claims[at];
        let of_holder = freed_of.entry(holder).or_default();
        if freed < need.within_shares && *of_holder < excess {
            freed += amount;
            *of_holder += amount;
            ended.push(at);
        } else {
            rest.push(at);
        }
    }
    for at in rest {
        let Claim { holder, excess, amount, progress } = claims[at];
        let has_share = excess == 0 && holder.is_some();
        let needed = if has_share { need.within_shares } else { need.in_all.max(need.within_shares) };
        if freed < needed && matches!(progress, Progress::Slow(..)) {
            freed += amount;
            ended.push(at);
        }
    }
    ended
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
