//! The same load at rising concurrency, which measures the speed by concurrency.

use std::io;

use super::{Load, Pace, Report, run};

/// Concurrencies that show the curve in four rows.
pub const CONCURRENCIES: [u32; 4] = [1, 10, 25, 50];

/// One row.
#[derive(Clone, Debug)]
pub struct Step {
    /// The number of clients.
    pub concurrency: u32,
    /// Their measurements.
    pub report: Report,
}

/// Runs `load` once per concurrency, in order, and hands each finished step to `each`.
///
/// Replaces the load's pace. Its number of requests is per client: a step at concurrency 25 has
/// 25 times as many. Its time limit is per step.
pub async fn steps(load: &Load, concurrencies: &[u32], mut each: impl FnMut(&Step)) -> io::Result<Vec<Step>> {
    let mut steps = Vec::with_capacity(concurrencies.len());
    for &concurrency in concurrencies {
        let load = Load {
            pace: Pace::Closed { concurrency },
            requests: load.requests.saturating_mul(u64::from(concurrency)),
            ..load.clone()
        };
        let step = Step { concurrency, report: run(&load).await? };
        each(&step);
        steps.push(step);
    }
    Ok(steps)
}
