//! A thread that keeps its core from going idle. On a virtual machine an idle core halts, and
//! waking it costs more than any proxy's work; run at idle priority this never takes a core from
//! anybody who wants it.

use std::time::{Duration, Instant};

use crate::Failure;

/// It ends by itself even if nobody stops it.
const LONGEST: Duration = Duration::from_secs(3600);

/// Spins.
pub(crate) fn run() -> Result<(), Failure> {
    let began = Instant::now();
    while began.elapsed() < LONGEST {
        std::hint::spin_loop();
    }
    Ok(())
}
