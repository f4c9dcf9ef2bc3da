//! Runs the proxy, from the plan to the exit code: start, wait for a signal or a request to drain, drain, end.

pub(crate) mod signals;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use tokio::runtime::Builder;
use tokio::sync::watch;

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
        let cause = tokio::select! {
            _ = signals.stop(|| process.reload()) => Cause::Signal,
            () = process.drain_ordered() => Cause::Request,
        };
        Ok(drain(process, plan, signals, cause).await)
    })
}

/// The cause of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// A stop signal: the process ends after the drain.
    Signal,
    /// `POST /drain`: the process serves its admin address until a stop signal.
    Request,
}

async fn drain(process: Process, plan: &Plan, mut signals: Signals, cause: Cause) -> ExitCode {
    let second = match cause {
        Cause::Signal => "a second signal exits at once",
        Cause::Request => "requested by POST /drain; a signal ends the process after the drain",
    };
    // The delay serves load balancers that still send requests. A process on a terminal has none in front of it, so
    // without a request in flight it ends at once.
    if cause == Cause::Signal && io::stdin().is_terminal() && process.is_idle() {
        tracing::info!("stopping: nothing is in flight");
        process.stop_now();
    } else {
        tracing::info!(
            delay_ms = millis(plan.relay.drain_delay),
            grace_ms = millis(plan.relay.drain_grace),
            "draining: readiness fails now; {second}"
        );
        process.drain();
    }
    let (is_stopping, mut stopping) = watch::channel(cause == Cause::Signal);
    let mut ending = tokio::spawn(async move {
        let drained = tokio::task::spawn_blocking(move || process.join()).await;
        if !*stopping.borrow() {
            tracing::info!("drained: only the admin address is served until a signal");
        }
        // The sender lives until the end.
        let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
        // The panic hook has reported a panic; the drain is over in any case.
        let Ok(drained) = drained else { return ExitCode::SUCCESS };
        tokio::task::spawn_blocking(|| drained.end()).await.unwrap_or(ExitCode::SUCCESS)
    });
    if cause == Cause::Request {
        signals.stop(|| ()).await;
        tracing::info!("stopping after the drain; a second signal exits at once");
        is_stopping.send_replace(true);
    }
    tokio::select! {
        ended = &mut ending => {
            tracing::info!("stopped");
            ended.unwrap_or(ExitCode::SUCCESS)
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
