//! A thread that keeps its core awake. On a virtual machine an idle core halts, and waking it costs more than any
//! proxy's work; at idle priority this thread never delays another one.

use std::time::{Duration, Instant};

use crate::Failure;

/// Ends by itself after this time.
const LONGEST: Duration = Duration::from_secs(3600);

/// Spins.
pub(crate) fn run() -> Result<(), Failure> {
    let began = Instant::now();
    while began.elapsed() < LONGEST {
        std::hint::spin_loop();
    }
    Ok(())
}
