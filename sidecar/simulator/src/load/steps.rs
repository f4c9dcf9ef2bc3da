//! The same load at rising concurrency: the speed-versus-concurrency curve, measured.

use std::io;

use super::{Load, Pace, Report, run};

/// Concurrencies that show the curve in four rows.
pub const CONCURRENCIES: [u32; 4] = [1, 10, 25, 50];

/// One row.
#[derive(Clone, Debug)]
pub struct Step {
    /// Clients that asked at the same time.
    pub concurrency: u32,
    /// What they measured.
    pub report: Report,
}

/// Runs `load` once per concurrency, one after the other, and hands each finished step to `each`.
///
/// The load's pace is replaced. Its requests are those of one client: a step at concurrency 25 has
/// 25 times as many. Its bound of time holds for each step.
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
