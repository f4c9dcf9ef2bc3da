//! `tokenmeter inject`: the admission webhook, from its start to SIGTERM.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use inject::webhook::{Options, Webhook};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::log::{self, Format, Level};
use crate::run::signals::Signals;

/// The arguments of `inject`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct InjectArgs {
    /// Injection config (YAML) with the sidecar's container and the known servers; the Helm chart writes it.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Address of the HTTPS listener, ADDRESS:PORT.
    #[arg(long, value_name = "ADDR")]
    listen: SocketAddr,
    /// Certificate chain (PEM). Config, certificate and key are read again when they change.
    #[arg(long, value_name = "FILE")]
    cert: PathBuf,
    /// Private key (PEM).
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// The error of a webhook that did not start, or that stopped.
#[derive(Debug)]
pub(crate) enum InjectError {
    Start(inject::webhook::Error),
    Thread(io::Error),
}

impl fmt::Display for InjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(cause) => cause.fmt(f),
            Self::Thread(cause) => write!(f, "the webhook cannot run: {cause}"),
        }
    }
}

impl std::error::Error for InjectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start(cause) => Some(cause),
            Self::Thread(cause) => Some(cause),
        }
    }
}

/// Serves until SIGTERM or SIGINT; a second one ends the process at once.
pub(crate) fn run(args: &InjectArgs) -> Result<ExitCode, InjectError> {
    let plan = log::Plan { level: Level::named("info"), format: Format::named("auto"), access: false };
    log::begin(&plan);
    let options = Options {
        listen: args.listen,
        config: args.config.clone(),
        certificate: args.cert.clone(),
        key: args.key.clone(),
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(InjectError::Thread)?;
    LocalSet::new().block_on(&runtime, async {
        let mut signals = Signals::listen().map_err(InjectError::Thread)?;
        let webhook = Webhook::bind(&options).map_err(InjectError::Start)?;
        let address = webhook.address().map_err(InjectError::Thread)?;
        log::started(&plan, &format!("tokenmeter inject: listening on https://{address}"));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let serving = webhook.serve(async { drop(stopped.await) });
        let both = async {
            signals.stop(|| ()).await;
            let _ = stop.send(());
            signals.stop(|| ()).await
        };
        tokio::select! {
            ended = serving => ended.map(|()| ExitCode::SUCCESS).map_err(InjectError::Thread),
            second = both => Ok(ExitCode::from(second.exit_code())),
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::settings::{KINDS, ROLES, USAGE};

    /// The annotations of a pod become settings of its sidecar.
    #[test]
    fn annotations_have_the_values_of_settings() {
        let sorted = |values: &[&'static str]| {
            let mut values = values.to_vec();
            values.sort_unstable();
            values
        };
        assert_eq!(sorted(&inject::KINDS), sorted(&KINDS));
        assert_eq!(sorted(&inject::ROLES), sorted(&ROLES));
        assert_eq!(sorted(&inject::USAGES), sorted(&USAGE));
    }
}
