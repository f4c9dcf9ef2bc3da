//! SIGTERM and SIGINT stop us, SIGHUP has files read again.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals we were sent.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// Which signal told us to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

impl Stop {
    /// The exit code of a process that such a signal ended: 128 and its number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Terminate => 143,
            Self::Interrupt => 130,
        }
    }
}

impl Signals {
    /// Begins to listen; from here on the signals no longer end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next signal to stop; what came before it to read files again is passed on.
    pub(crate) async fn stop(&mut self, reload: impl Fn()) -> Stop {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return Stop::Terminate,
                _ = self.interrupt.recv() => return Stop::Interrupt,
                _ = self.hang_up.recv() => {
                    tracing::info!("SIGHUP: tenants and prices are read again; settings are read at the start only");
                    reload();
                }
            }
        }
    }
}
