//! Notes that depend on the rate by which exchanges were charged.

use std::sync::Arc;

use ledger::Range;
use meter::TokenType;
use price::Rate;

use crate::memory::Memory;
use crate::tests::query;
use crate::{Report, make};

fn made(memory: &Memory) -> Report {
    make(memory, &query(&[])).expect("a store in memory is readable")
}

/// A price per request lacks nothing where the prompt is not counted, and an unknown tier may cost more.
#[test]
fn notes_depend_on_the_rate() {
    let memory = Memory { corrections: Vec::new(), ..Memory::of_chance(3, 200) };
    let noted = |change: &dyn Fn(&mut Rate)| {
        let mut memory = memory.clone();
        memory.rates.iter_mut().for_each(|rate| change(Arc::make_mut(rate)));
        let notes = made(&memory).notes;
        let said = notes.sentences(&Range::ALL).join("\n");
        (notes, said)
    };
    let (notes, said) = noted(&|_| ());
    assert!(notes.uncounted_prompts > 0 && said.contains("cost lacks the prompt"), "{said}");
    assert!(notes.unpriced_tiers == 0 && !said.contains("`--by tier`"), "{said}");
    let (per_request, said) = noted(&|rate| rate.per_token = [Some(0); TokenType::ALL.len()]);
    // Those without a price are still noted.
    assert!(per_request.uncounted_prompts < notes.uncounted_prompts, "{said}");
    let (marked, said) = noted(&|rate| rate.tier = "standard?".into());
    let groups = made(&memory).groups;
    let priced: i128 = groups.iter().map(|group| group.sums.exchanges - group.sums.unpriced).sum();
    assert_eq!(marked.unpriced_tiers, priced);
    assert!(said.contains("charged without the price of their service tier"), "{said}");
}
