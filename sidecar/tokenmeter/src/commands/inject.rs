//! `tokenmeter inject`: the admission webhook, from its start to SIGTERM, or what it would make of a manifest.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use inject::dry_run::{self, DryRun};
use inject::webhook::{Options, Webhook};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use super::{print, print_message};
use crate::log::{self, Format, Level};
use crate::run::signals::Signals;

/// The arguments of `inject`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct InjectArgs {
    /// Injection config (YAML) with the sidecar's container and the known servers; the Helm chart writes it.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print the pods and pod templates of a manifest (YAML) with the sidecar, or why they get none; serve nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "cert", "key"])]
    dry_run: Option<PathBuf>,
    /// Address of the HTTPS listener, ADDRESS:PORT.
    #[arg(long, value_name = "ADDR", required_unless_present = "dry_run")]
    listen: Option<SocketAddr>,
    /// Certificate chain (PEM). All files are read again when they change.
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run")]
    cert: Option<PathBuf>,
    /// Private key (PEM).
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run")]
    key: Option<PathBuf>,
    /// Trusted root certificates (PEM) of the API server's client certificate; with it, a review needs a certificate of
    /// theirs, and a probe does not.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    client_ca: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  helm template tokenmeter helm/tokenmeter --set injection.mode=webhook \\
    --show-only templates/injection/config.yaml > injection.yaml
  tokenmeter inject --config injection.yaml --dry-run deployment.yaml
  tokenmeter inject --config injection.yaml --listen 0.0.0.0:8443 \\
    --cert tls.crt --key tls.key

Exit codes: 0 done; 1 failure, or --dry-run met a pod that gets no sidecar;
2 invalid flags.";

/// The error of a webhook that did not start, or that stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InjectError {
    #[error("{0}")]
    Start(#[source] inject::webhook::Error),
    #[error("{0}: {1}")]
    Read(PathBuf, io::Error),
    #[error("{0}: {1}")]
    Parse(PathBuf, inject::ConfigError),
    #[error("the webhook cannot run: {0}")]
    Thread(#[source] io::Error),
}

pub(crate) fn run(args: &InjectArgs) -> Result<ExitCode, InjectError> {
    match (args.listen, &args.cert, &args.key) {
        (Some(listen), Some(certificate), Some(key)) => serve(&Options {
            listen,
            config: args.config.clone(),
            certificate: certificate.clone(),
            key: key.clone(),
            client_ca: args.client_ca.clone(),
        }),
        _ => preview(&args.config, args.dry_run.as_deref().unwrap_or(Path::new(""))),
    }
}

/// Prints what becomes of the objects of a manifest.
fn preview(config: &Path, manifest: &Path) -> Result<ExitCode, InjectError> {
    let read =
        |path: &Path| fs::read_to_string(path).map_err(|cause| InjectError::Read(path.to_owned(), cause));
    let error = |path: &Path| {
        let path = path.to_owned();
        |cause| InjectError::Parse(path, cause)
    };
    let injection = dry_run::config(&read(config)?).map_err(error(config))?;
    let mut code = ExitCode::SUCCESS;
    for DryRun { object, result } in
        dry_run::dry_run(&read(manifest)?, &injection).map_err(error(manifest))?
    {
        match result {
            Ok((yaml, warnings)) => {
                for warning in warnings {
                    print_message(&format!("{object}: {warning}"));
                }
                print(&format!("---\n{yaml}"));
            }
            Err(reason) => {
                print_message(&format!("{object}: not metered: {reason}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// Serves until SIGTERM or SIGINT; a second one ends the process at once.
fn serve(options: &Options) -> Result<ExitCode, InjectError> {
    let plan = log::Plan { level: Level::named("info"), format: Format::named("auto"), access: false };
    log::begin(&plan);
    let runtime = Builder::new_current_thread().enable_all().build().map_err(InjectError::Thread)?;
    LocalSet::new().block_on(&runtime, async {
        let mut signals = Signals::listen().map_err(InjectError::Thread)?;
        let webhook = Webhook::bind(options).map_err(InjectError::Start)?;
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
