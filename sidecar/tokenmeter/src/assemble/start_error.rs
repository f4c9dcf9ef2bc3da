//! The errors of a start: the cause, the setting and the remedy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use origin::Origin;
use relay::ListenAddress;

use crate::plan::Plan;
use crate::settings::setting;

/// The error of a start. Every part that had started was stopped again.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener could not be bound.
    #[error(
        "{}: cannot listen on {address}: {cause}; {}",
        writer(flag, origin),
        bind_remedy(address, flag, cause)
    )]
    Bind {
        /// The address.
        address: ListenAddress,
        /// The flag that sets it.
        flag: String,
        /// The origin of the address.
        origin: Origin,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// The system chose a port for a listener that is an upstream's port.
    #[error(
        "--upstream: {url} is tokenmeter's own listener {reached}; start the inference server, or name its own address"
    )]
    Loop {
        /// The upstream's URL.
        url: String,
        /// The listener.
        reached: SocketAddr,
    },
    /// Rules of the kernel send tokenmeter's own connections to its listener.
    #[error(
        "--transparent: tokenmeter's own connections to {url} are redirected to its listener; run \
         `tokenmeter redirect` with --exclude-uid {uid}"
    )]
    Redirected {
        /// The upstream's URL.
        url: String,
        /// The user of this process.
        uid: u32,
    },
    /// Another process of this host writes the ledger.
    #[error(
        "--ledger: process {writer} writes {}; give each process its own file, stop that process, or write \
         --ledger-wait to keep rows in memory until it ends",
        path.display()
    )]
    LedgerInUse {
        /// The open month's file.
        path: PathBuf,
        /// The other process.
        writer: u32,
    },
    /// Tokenizers could not be read.
    #[error("{origin}: {}", errors.join("; "))]
    Tokenizers {
        /// The error of each.
        errors: Vec<String>,
        /// The origin of the setting.
        origin: Origin,
    },
    /// The GPUs cannot be read as the settings require.
    #[error("cannot read the GPUs: {0}; change the settings gpu, gpu_exporter, gpus")]
    Gpu(#[source] io::Error),
    /// A thread, or its event loop, could not be created.
    #[error("cannot create a thread: {0}; raise the limit on threads or open files")]
    Thread(#[source] io::Error),
}

impl StartError {
    pub(crate) fn page(error: page::Error, plan: &Plan) -> Self {
        match error {
            page::Error::Bind { address, cause } => {
                let with_tls = plan.admin_tls.as_ref().filter(|_| address != plan.admin);
                let (key, origin) =
                    with_tls.map_or(("admin", &plan.admin_origin), |(_, origin)| ("admin_tls", origin));
                let address = ListenAddress::Tcp(address);
                Self::Bind { address, flag: setting(key).flag(), origin: origin.clone(), cause }
            }
            page::Error::Start(cause) => Self::Thread(cause),
        }
    }

    pub(crate) fn relay(error: relay::StartError, plan: &Plan) -> Self {
        match error {
            relay::StartError::Listen { upstream, address, source: cause } => {
                let planned = plan.relay.upstreams.iter();
                let planned = planned.flat_map(|of| of.listen.iter().map(|listen| (&of.name, listen)));
                let mut planned = planned.zip(&plan.listen_origins);
                let found =
                    planned.find(|((name, listen), _)| **name == upstream && listen.address == address);
                let (key, origin) = found.map_or(("listen", Origin::Default), |(_, origin)| origin.clone());
                Self::Bind { address, flag: setting(key).flag(), origin, cause }
            }
            relay::StartError::Thread(cause) => Self::Thread(cause),
        }
    }
}

/// The setting of an address, or where it is written.
fn writer(flag: &str, origin: &Origin) -> String {
    match origin {
        Origin::Default => format!("{flag} (its default)"),
        written => written.to_string(),
    }
}

fn bind_remedy(address: &ListenAddress, flag: &str, cause: &io::Error) -> String {
    match (cause.kind(), address) {
        (io::ErrorKind::NotFound, ListenAddress::Unix { .. }) => {
            format!("create the directory, or choose another path with {flag}")
        }
        (io::ErrorKind::AddrInUse, ListenAddress::Unix { .. }) => {
            format!("stop the process that listens there, or choose another path with {flag}")
        }
        (_, ListenAddress::Unix { .. }) => format!("choose another path with {flag}"),
        (io::ErrorKind::AddrInUse, _) => {
            format!("stop the process that listens there, or choose another port with {flag}")
        }
        (io::ErrorKind::AddrNotAvailable, ListenAddress::Tcp(address)) => {
            format!("choose an address of this machine with {flag}, as in 0.0.0.0:{}", address.port())
        }
        (io::ErrorKind::PermissionDenied, _) => {
            format!("choose a port from 1024 on with {flag}, or permit tokenmeter this one")
        }
        _ => format!("choose another address with {flag}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};
    use std::path::Path;

    use origin::Origin;

    use super::StartError;

    fn bind(origin: Origin, kind: ErrorKind) -> String {
        let cause = Error::new(kind, "no");
        let address = relay::ListenAddress::Tcp(([10, 0, 0, 1], 80).into());
        StartError::Bind { address, flag: "--listen".to_owned(), origin, cause }.to_string()
    }

    #[test]
    fn error_of_a_unix_socket_has_its_remedy() {
        let bind = |kind| {
            let address =
                relay::ListenAddress::Unix { path: Path::new("/run/t/chat.sock").into(), mode: 0o660 };
            let (cause, origin) = (Error::new(kind, "no"), Origin::Flag("--listen".to_owned()));
            StartError::Bind { address, flag: "--listen".to_owned(), origin, cause }.to_string()
        };
        for (kind, remedy) in [
            (ErrorKind::NotFound, "create the directory, or choose another path with --listen"),
            (
                ErrorKind::AddrInUse,
                "stop the process that listens there, or choose another path with --listen",
            ),
            (ErrorKind::PermissionDenied, "choose another path with --listen"),
        ] {
            let expected = format!("--listen: cannot listen on unix:/run/t/chat.sock: no; {remedy}");
            assert_eq!(bind(kind), expected);
        }
    }

    #[test]
    fn error_names_origin_and_remedy() {
        let file = Origin::File { path: "t.yaml".into(), line: 4 };
        for (shown, expected) in [
            (
                bind(Origin::Default, ErrorKind::AddrInUse),
                "--listen (its default): cannot listen on 10.0.0.1:80: no; stop the process that listens there, or choose \
                 another port with --listen",
            ),
            (
                bind(file, ErrorKind::AddrNotAvailable),
                "t.yaml:4: cannot listen on 10.0.0.1:80: no; choose an address of this machine with --listen, as \
                 in 0.0.0.0:80",
            ),
            (
                bind(Origin::Flag("--listen".to_owned()), ErrorKind::PermissionDenied),
                "--listen: cannot listen on 10.0.0.1:80: no; choose a port from 1024 on with --listen, or permit \
                 tokenmeter this one",
            ),
            (
                bind(Origin::Env("TOKENMETER_LISTEN".to_owned()), ErrorKind::OutOfMemory),
                "TOKENMETER_LISTEN: cannot listen on 10.0.0.1:80: no; choose another address with --listen",
            ),
            (
                StartError::Loop { url: "http://a:1".to_owned(), reached: ([10, 0, 0, 1], 1).into() }
                    .to_string(),
                "--upstream: http://a:1 is tokenmeter's own listener 10.0.0.1:1; start the inference server, or \
                 name its own address",
            ),
            (
                StartError::Redirected { url: "http://a:1".to_owned(), uid: 7 }.to_string(),
                "--transparent: tokenmeter's own connections to http://a:1 are redirected to its listener; run \
                 `tokenmeter redirect` with --exclude-uid 7",
            ),
            (
                StartError::Thread(Error::other("no")).to_string(),
                "cannot create a thread: no; raise the limit on threads or open files",
            ),
        ] {
            assert_eq!(shown, expected);
        }
    }
}
