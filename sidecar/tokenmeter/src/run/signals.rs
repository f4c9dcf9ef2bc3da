//! Signals: SIGTERM and SIGINT stop the process, SIGHUP reloads files.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The receivers of signals.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// The signal of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

impl Stop {
    /// Returns the exit code of a process that the signal ended: 128 plus its number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Terminate => 143,
            Self::Interrupt => 130,
        }
    }
}

impl Signals {
    /// Installs the handlers; from then on the signals no longer end the process.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a stop signal; calls `reload` for each SIGHUP before it.
    pub(crate) async fn stop(&mut self, reload: impl Fn()) -> Stop {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return Stop::Terminate,
                _ = self.interrupt.recv() => return Stop::Interrupt,
                _ = self.hang_up.recv() => {
                    tracing::info!("SIGHUP: reloading tenants and prices; settings are read at the start only");
                    reload();
                }
            }
        }
    }
}
