//! Memory of a model's cells.

use std::mem::size_of;

use meter::edges::{CONCURRENCY_NAMES, GAP_S};
use meter::{Disagreement, Ending, ErrorType};
use scan::Dialect;

use super::*;
use crate::histogram::Histogram;

/// Dialects of one model: two of OpenAI's, Anthropic's, the server's own.
const DIALECTS: usize = 4;

#[test]
fn unused_block_is_small() {
    let most = size_of::<ModelCells>()
        + link::<Arc<str>, UpstreamCells>()
        + link::<Dialect, [Count; Ending::ALL.len()]>() * DIALECTS
        + link::<Dialect, [Count; Disagreement::ALL.len()]>() * DIALECTS
        + size_of::<ServerReports>()
        + size_of::<[Count; TokenType::ALL.len()]>() * Provenance::ALL.len()
        + size_of::<Timings>()
        + size_of::<Histogram<{ GAP_S.len() + 1 }>>() * 2 * WEIGHTS.len()
        + size_of::<ByConcurrency>() * CONCURRENCY_NAMES.len();
    println!("idle {} B, all but gen_ai {most} B", size_of::<ModelCells>());
    let gen_ai = link::<GenAiAttributes, GenAi>() + link::<Option<ErrorType>, Operations>();
    println!("one attribute set of gen_ai with successes only {gen_ai} B");
    println!("a worker's own {} B", size_of::<crate::proxy::ProxyCells>());
    println!("an upstream of a model {} B", link::<Arc<str>, UpstreamCells>());
    assert!(size_of::<ModelCells>() <= 256);
    assert!(link::<Arc<str>, UpstreamCells>() <= 320, "a model at one more upstream");
    assert!(most + 3 * gen_ai <= 12 * 1024 + 384, "every cell in use, with three attribute sets");
}

/// Returns the bytes of one link of a chain: its key, its cells and the pointer to the next.
fn link<K, T>() -> usize {
    size_of::<(K, T, Chain<K, T>)>()
}
