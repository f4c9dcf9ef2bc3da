//! Runs the proxy, from the plan to the exit code: start, wait for a signal, drain.

pub(crate) mod signals;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use tokio::runtime::Builder;

use crate::assemble::Process;
use crate::assemble::start_error::StartError;
use crate::log;
use crate::plan::Plan;
use crate::run::signals::{Signals, Stop};

/// Runs until a signal. `Err` if the process did not start.
pub(crate) fn run(plan: &Plan) -> Result<ExitCode, StartError> {
    log::begin(&plan.log);
    for warning in &plan.warnings {
        tracing::warn!("{warning}");
    }
    for note in &plan.notes {
        tracing::info!("{note}");
    }
    let runtime = Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
    runtime.block_on(async {
        // Before anything is started, so that an early signal is not lost.
        let mut signals = Signals::listen().map_err(StartError::Thread)?;
        let process = Process::start(plan)?;
        log::started(&plan.log, &process.summary());
        for line in plan.telemetry.exports() {
            tracing::info!("OpenTelemetry: {line}");
        }
        signals.stop(|| process.reload()).await;
        Ok(drain(process, plan, signals).await)
    })
}

async fn drain(process: Process, plan: &Plan, mut signals: Signals) -> ExitCode {
    // The delay serves load balancers that still send requests. A process on a terminal has none in front of it, so
    // without a request in flight it ends at once.
    if io::stdin().is_terminal() && process.is_idle() {
        tracing::info!("stopping: nothing is in flight");
        process.stop_now();
    } else {
        tracing::info!(
            delay_ms = millis(plan.relay.drain_delay),
            grace_ms = millis(plan.relay.drain_grace),
            "draining: readiness fails now; a second signal exits at once"
        );
        process.drain();
    }
    let joined = tokio::task::spawn_blocking(move || process.join());
    tokio::select! {
        // The panic hook has reported a worker's panic; the drain is over in any case.
        _ = joined => {
            tracing::info!("stopped");
            ExitCode::SUCCESS
        }
        second = signals.stop(|| ()) => end_at_once(second),
    }
}

/// Exits: a return would wait for the drain's thread.
fn end_at_once(stop: Stop) -> ! {
    tracing::warn!("second signal: requests in flight are cut");
    std::process::exit(i32::from(stop.exit_code()))
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
