//! The command `drain`: orders the drain of a running tokenmeter and waits for its end. It finds the admin address and
//! the token as `run` does, so that it needs no flags in the same container.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use agent::{Agent, Error, Options, Request, Response};
use clap::Args;
use origin::Diagnostic;

use super::print_message;
use super::setting::{named, with_variable};
use crate::plan::machine::ThisMachine;
use crate::settings::setting;
use crate::token_file::TokenFile;

/// The arguments of `drain`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct DrainArgs {
    #[arg(long, value_name = "ADDR", help = with_variable("Admin address of the running tokenmeter", "admin"))]
    admin: Option<String>,
    #[arg(long, value_name = "FILE", help = with_variable("File with the drain token, as set for the running tokenmeter", TOKEN_FILE))]
    drain_token_file: Option<String>,
    #[arg(long, value_name = "FILE", help = with_variable("Settings file with `admin` and `drain_token_file`", "config"))]
    config: Option<String>,
}

const TOKEN_FILE: &str = "drain_token_file";

/// Starts the drain and waits for its end.
pub(crate) fn run(args: &DrainArgs) -> Result<ExitCode, DrainError> {
    let config = args.config.as_deref();
    let find = |key: &str, flag: &Option<String>| {
        named(key, flag.as_deref(), config, &ThisMachine).map_err(DrainError::Config)
    };
    let admin = find("admin", &args.admin)?.unwrap_or_else(|| setting("admin").default.to_owned());
    let file = find(TOKEN_FILE, &args.drain_token_file)?.ok_or(DrainError::NoTokenFile)?;
    let address = reachable(&admin).map_err(|error| DrainError::Address(admin, error))?;
    let token = TokenFile::at(&file).read().map_err(|error| DrainError::Token(file.into(), error))?;
    let order = Request::post(format!("http://{address}/drain"));
    let order = order.header("authorization", format!("Bearer {token}")).header("connection", "close");
    let ordered = agent(Some(ORDER_MAX_TIME)).send(order, &[]);
    expect(address, 202, ordered.map_err(|error| DrainError::Order(address, error))?)?;
    print_message("draining; waiting for the last stream and the last record");
    // A drain takes as long as its settings allow, so there is no time limit here.
    let drained = agent(None).send(Request::get(format!("http://{address}/drained")), ());
    expect(address, 200, drained.map_err(|error| DrainError::Wait(address, error))?)?;
    print_message("drained");
    Ok(ExitCode::SUCCESS)
}

fn agent(within: Option<Duration>) -> Agent {
    Agent::new(&Options {
        secure: false,
        roots: None,
        through_proxy: false,
        within,
        redirects: 0,
        body_max_bytes: BODY_MAX_BYTES,
    })
}

/// Returns the address at which a listener on `text` is reached from this machine.
fn reachable(text: &str) -> io::Result<SocketAddr> {
    let mut address = text.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    Ok(address)
}

fn expect(address: SocketAddr, status: u16, response: Response) -> Result<(), DrainError> {
    if response.status == status {
        return Ok(());
    }
    let body = response.body.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let line = body.lines().next().unwrap_or_default();
    Err(DrainError::Status(address, response.status, line.chars().filter(|c| !c.is_control()).collect()))
}

/// The error of the command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DrainError {
    /// The settings file cannot be read.
    #[error("{0}")]
    Config(Diagnostic),
    /// No token file is named.
    #[error(
        "no token file is named; add {} FILE, or set {} as for the proxy",
        setting(TOKEN_FILE).flag(),
        setting(TOKEN_FILE).variable()
    )]
    NoTokenFile,
    /// The token file cannot be read.
    #[error(
        "the token file {path} cannot be read: {1}; name the file of the running tokenmeter, which creates it",
        path = .0.display()
    )]
    Token(PathBuf, io::Error),
    /// The admin address is invalid.
    #[error("{text} is not an admin address: {1}; write ADDRESS:PORT", text = .0.escape_debug())]
    Address(String, io::Error),
    /// The order got no response.
    #[error(
        "http://{0}/drain cannot be reached: {1}; name the admin address of a running tokenmeter with --admin"
    )]
    Order(SocketAddr, Error),
    /// The connection ended before the drain.
    #[error("the tokenmeter at {0} ended before the drain was complete: {1}; its log has the reason")]
    Wait(SocketAddr, Error),
    /// The status, and the first line of the body.
    #[error("http://{0} responds {1}: {2}")]
    Status(SocketAddr, u16, String),
}

/// The maximum time of the order, which is answered at once.
const ORDER_MAX_TIME: Duration = Duration::from_secs(10);

/// Bytes that are read of an error's body.
const BODY_MAX_BYTES: u64 = 4096;

const EXAMPLES: &str = "\
Examples:
  tokenmeter drain
  tokenmeter drain --admin 10.0.0.7:9464 --drain-token-file drain.token

Exit codes: 0 drained; 1 not drained, with the reason; 2 invalid flags.";

#[cfg(test)]
mod tests {
    use super::reachable;

    #[test]
    fn unspecified_address_is_reached_on_loopback() {
        for (written, reached) in
            [("0.0.0.0:9464", "127.0.0.1:9464"), ("[::]:1", "[::1]:1"), ("10.0.0.7:2", "10.0.0.7:2")]
        {
            assert_eq!(reachable(written).unwrap().to_string(), reached);
        }
        assert!(reachable("no port").is_err());
    }
}
