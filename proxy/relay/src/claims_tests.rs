//! The rules of claims, as properties of any claims.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

type Holder = Option<usize>;

/// Claims of up to five holders, of which the last is without a share.
fn claims(capacity: usize, parts: Vec<(usize, usize, u8, u64, u64)>) -> Vec<Claim<usize>> {
    let holder = |n: usize| (n < 4).then_some(n);
    let held = |of: Holder| -> usize {
        parts.iter().filter(|(n, ..)| holder(*n) == of).map(|(_, amount, ..)| amount).sum()
    };
    let claim = |(n, amount, kind, rate, silent): &(usize, usize, u8, u64, u64)| Claim {
        holder: holder(*n),
        excess: holder(*n).map_or(0, |n| held(Some(n)).saturating_sub(capacity / SHARES)),
        amount: *amount,
        progress: match kind {
            0 => Progress::Slow(*rate, Reverse(*silent)),
            1 => Progress::Awaited(*rate, Reverse(*silent)),
            2 => Progress::Tunnel(*silent),
            _ => Progress::Flowing,
        },
    };
    parts.iter().map(claim).collect()
}

fn any_claims() -> impl Strategy<Value = Vec<Claim<usize>>> {
    let part = (0..5_usize, 0..6_usize, 0..4_u8, 0..5_u64, 0..5_u64);
    (0..60_usize, vec(part, 0..40)).prop_map(|(capacity, parts)| claims(capacity, parts))
}

fn any_need() -> impl Strategy<Value = Need> {
    (0..30_usize, 0..30_usize).prop_map(|(within_shares, in_all)| Need { within_shares, in_all })
}

fn is_slow(claim: &Claim<usize>) -> bool {
    matches!(claim.progress, Progress::Slow(..))
}

proptest! {
    #![proptest_config(chance::cases(2000))]

    #[test]
    fn only_awaited_clients_give_way(need in any_need(), claims in any_claims()) {
        for at in give_way(need, &claims) {
            prop_assert!(claims[at].progress != Progress::Flowing && claims[at].amount > 0);
        }
    }

    #[test]
    fn no_more_gives_way_than_is_needed(need in any_need(), claims in any_claims()) {
        let ended = give_way(need, &claims);
        let freed: usize = ended.iter().map(|at| claims[*at].amount).sum();
        if let Some(last) = ended.last() {
            prop_assert!(freed - claims[*last].amount < need.within_shares.max(need.in_all));
        }
        let mut once = ended.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), ended.len());
    }

    /// Without a request of a holder within its share, only slow clients of others lose anything.
    #[test]
    fn shares_protect_those_within_them(need in any_need(), claims in any_claims()) {
        let ended = give_way(need, &claims);
        for at in &ended {
            let Claim { holder, excess, .. } = claims[*at];
            prop_assert!(is_slow(&claims[*at]) || excess > 0 && need.within_shares > 0);
            prop_assert!(excess > 0 || holder.is_none() || need.within_shares > 0);
        }
        for holder in 0..4 {
            let of_holder = ended.iter().filter(|at| claims[**at].holder == Some(holder));
            let lost: Vec<&Claim<usize>> = of_holder.map(|at| &claims[*at]).collect();
            // The last one that is not slow was ended above the share.
            if let Some(last) = lost.iter().rposition(|claim| !is_slow(claim)) {
                let before: usize = lost[..last].iter().map(|claim| claim.amount).sum();
                prop_assert!(before < lost[last].excess);
            }
        }
    }

    #[test]
    fn slowest_of_a_holder_gives_way_first(need in any_need(), claims in any_claims()) {
        let ended = give_way(need, &claims);
        for at in &ended {
            for (other, claim) in claims.iter().enumerate() {
                let is_slower = claim.holder == claims[*at].holder && claim.progress < claims[*at].progress;
                prop_assert!(!is_slower || claim.amount == 0 || ended.contains(&other));
            }
        }
    }

    #[test]
    fn slow_clients_leave_what_others_need(need in any_need(), claims in any_claims()) {
        let ended = give_way(need, &claims);
        let freed: usize = ended.iter().map(|at| claims[*at].amount).sum();
        let left = || (0..claims.len()).filter(|at| !ended.contains(at)).map(|at| &claims[at]);
        let is_left = |claim: &Claim<usize>| is_slow(claim) && claim.amount > 0;
        prop_assert!(freed >= need.within_shares || !left().any(is_left));
        let has_share = |claim: &Claim<usize>| claim.excess == 0 && claim.holder.is_some();
        prop_assert!(freed >= need.in_all || !left().any(|claim| is_left(claim) && !has_share(claim)));
    }

    #[test]
    fn holder_within_its_share_yields_to_no_other(in_all in 0..30_usize, claims in any_claims()) {
        let need = Need { within_shares: 0, in_all };
        for at in give_way(need, &claims) {
            let Claim { holder, excess, .. } = claims[at];
            prop_assert!(is_slow(&claims[at]) && (excess > 0 || holder.is_none()));
        }
    }

    #[test]
    fn order_of_claims_does_not_matter(need in any_need(), claims in any_claims()) {
        let mut reversed = claims.clone();
        reversed.reverse();
        let progress = |of: &[Claim<usize>]| -> Vec<_> {
            give_way(need, of).into_iter().map(|at| of[at].progress).collect()
        };
        // Claims of equal progress differ in their amounts.
        let is_unique = claims.iter().all(|one| claims.iter().filter(|other| other.progress == one.progress).count() == 1);
        prop_assert!(!is_unique || progress(&claims) == progress(&reversed));
    }

    /// However holders take, a further one finds a place.
    #[test]
    fn another_holder_always_finds_a_place(most in 64..400_usize, takes in vec(0..3_usize, 0..2000)) {
        let mut held = [0; 3];
        for holder in takes {
            let free = most - held.iter().sum::<usize>();
            if may_take(held[holder], 1, free) {
                held[holder] += 1;
            }
        }
        let free = most - held.iter().sum::<usize>();
        prop_assert!(free > 0, "{held:?} of {most}");
        prop_assert!(held.iter().all(|held| *held <= most * 3 / 4));
    }
}

#[test]
fn equal_holders_reach_equal_amounts() {
    for (holders, each) in [(1, 272), (2, 155), (3, 108), (9, 38)] {
        let mut held = vec![0; holders];
        for at in (0..holders).cycle().take(holders * 400) {
            if may_take(held[at], 1, 363 - held.iter().sum::<usize>()) {
                held[at] += 1;
            }
        }
        assert!(held.iter().all(|held| each - 1 <= *held && *held <= each + 1), "{held:?}");
    }
}

/// The newcomers beside a holder that took all it may, and keeps it.
#[test]
fn later_holders_take_parts_of_the_rest() {
    let mut held = vec![0; 5];
    for at in 0..held.len() {
        while may_take(held[at], 1, 363 - held.iter().sum::<usize>()) {
            held[at] += 1;
        }
    }
    assert_eq!(held, [272, 68, 17, 4, 1]);
}
