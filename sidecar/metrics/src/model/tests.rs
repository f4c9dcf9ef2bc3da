//! A model's cells, one law each.

use std::mem::size_of;

use meter::edges::{CONCURRENCY_NAMES, GAP_S};
use meter::{Ending, ErrorType};
use scan::Dialect;

use super::*;
use crate::histogram::Histogram;

/// Dialects one model is spoken to in: two of OpenAI's, Anthropic's, the server's own.
const DIALECTS: usize = 4;

#[test]
fn a_models_block_is_small_until_it_is_used() {
    let most = size_of::<ModelCells>()
        + link::<Arc<str>, UpstreamCells>()
        + link::<Dialect, [Count; Ending::ALL.len()]>() * DIALECTS
        + size_of::<Served>()
        + size_of::<[Count; TokenType::ALL.len()]>() * Provenance::ALL.len()
        + size_of::<Timed>()
        + size_of::<Histogram<{ GAP_S.len() + 1 }>>() * 2 * WEIGHTS.len()
        + size_of::<Loaded>() * CONCURRENCY_NAMES.len();
    println!("idle {} B, all but gen_ai {most} B", size_of::<ModelCells>());
    let flavour = link::<Flavour, GenAi>() + link::<Option<ErrorType>, Operations>();
    println!("a flavour of gen_ai with successes alone {flavour} B");
    println!("a worker's own {} B", size_of::<crate::proxy::ProxyCells>());
    println!("an upstream of a model {} B", link::<Arc<str>, UpstreamCells>());
    assert!(size_of::<ModelCells>() <= 256);
    assert!(link::<Arc<str>, UpstreamCells>() <= 288, "a model at one more upstream");
    assert!(most + 3 * flavour <= 12 * 1024, "every cell in use, with three flavours");
}

/// Bytes of one link of a chain: its key, its cells and the way to the next.
fn link<K, T>() -> usize {
    size_of::<(K, T, Chain<K, T>)>()
}
