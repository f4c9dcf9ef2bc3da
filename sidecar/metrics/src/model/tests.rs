//! A model's cells, one law each.

use std::mem::size_of;

use super::*;

/// Dialects one model is spoken to in: two of OpenAI's, Anthropic's, the server's own.
const DIALECTS: usize = 4;

#[test]
fn a_models_block_is_small_until_it_is_used() {
    let most = size_of::<ModelCells>()
        + link::<Dialect, [Count; Ending::ALL.len()]>() * DIALECTS
        + size_of::<Served>()
        + size_of::<[Count; TokenType::ALL.len()]>() * Provenance::ALL.len()
        + size_of::<Timed>()
        + size_of::<Histogram<{ GAP_S.len() + 1 }>>() * 2 * WEIGHTS.len()
        + size_of::<Loaded>() * CONCURRENCY_NAMES.len();
    println!("idle {} B, all but gen_ai {most} B", size_of::<ModelCells>());
    println!("a flavour of gen_ai {} B", link::<Flavour, GenAi>());
    println!("a worker's own {} B", size_of::<crate::proxy::ProxyCells>());
    assert!(size_of::<ModelCells>() <= 512);
    assert!(most + 3 * link::<Flavour, GenAi>() <= 12 * 1024, "every cell in use, with three flavours");
}

#[test]
fn a_concurrency_is_rounded_before_it_is_put_in_a_bucket() {
    for (mean, name) in [
        (0.0, "1"),
        (1.4, "1"),
        (1.5, "2-4"),
        (4.4, "2-4"),
        (4.5, "5-8"),
        (128.4, "65-128"),
        (128.5, "129+"),
        (1e300, "129+"),
        (f64::NAN, "1"),
    ] {
        assert_eq!(CONCURRENCY_NAMES[concurrency(mean)], name, "{mean}");
    }
}

/// Bytes of one link of a chain: its key, its cells and the way to the next.
fn link<K, T>() -> usize {
    size_of::<(K, T, Chain<K, T>)>()
}
