//! The command `top`: the current numbers of a running tokenmeter. It finds the admin address and the token as `run` does,
//! so that it needs no flags in the same container.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use connect::Address;
use origin::Diagnostic;
use top::{Admin, AdminError, Ending, TopError};

use super::admin_client::{AdminClientError, admin_client};
use super::print;
use super::setting::{named, with_variable};
use crate::plan::machine::{Machine, ThisMachine};
use crate::plan::url::Url;
use crate::settings::setting;
use crate::token_file::TokenFile;

/// The arguments of `top`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    #[arg(long, value_name = "ADDR", help = with_variable("Admin address of the running tokenmeter, or its URL", "admin"))]
    admin: Option<String>,
    /// Trusted root certificates of an https URL (PEM), in place of the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    #[arg(long, value_name = "FILE", help = with_variable("File with the admin token, if that tokenmeter has one", TOKEN_FILE))]
    token_file: Option<String>,
    #[arg(long, value_name = "FILE", help = with_variable("Settings file with `admin` and `admin_token_file`", "config"))]
    config: Option<String>,
    /// Print the numbers once, as text.
    #[arg(long)]
    once: bool,
}

const TOKEN_FILE: &str = "admin_token_file";

/// Shows the numbers until the user ends it, or prints them once.
pub(crate) fn run(args: &TopArgs) -> Result<ExitCode, TopCommandError> {
    let admin = admin(args)?;
    if args.once || !is_screen() {
        print(&top::text(&admin).map_err(TopCommandError::Admin)?);
        return Ok(ExitCode::SUCCESS);
    }
    match top::run(&admin, has_colours(&ThisMachine)).map_err(TopCommandError::Top)? {
        Ending::Quit => Ok(ExitCode::SUCCESS),
        Ending::Signal(number) => Ok(ExitCode::from(128 + u8::try_from(number).unwrap_or(0))),
    }
}

fn admin(args: &TopArgs) -> Result<Admin, TopCommandError> {
    let find = |key: &str, flag: &Option<String>| {
        named(key, flag.as_deref(), args.config.as_deref(), &ThisMachine).map_err(TopCommandError::Config)
    };
    let address = find("admin", &args.admin)?.unwrap_or_else(|| setting("admin").default.to_owned());
    let url = url(&address)?;
    let admin = Admin::at(admin_client(&url, args.ca.as_deref()).map_err(TopCommandError::Tls)?);
    let Some(file) = find(TOKEN_FILE, &args.token_file)? else { return Ok(admin) };
    let token = TokenFile::at(&file).read();
    let token = token.and_then(|token| {
        let admin = admin.with_token(&token);
        admin.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it has control characters"))
    });
    token.map_err(|error| TopCommandError::Token(file.into(), error))
}

/// Parses `ADDRESS:PORT` or a URL. A listener on the unspecified address is reached on loopback.
fn url(text: &str) -> Result<Url, TopCommandError> {
    let invalid = |problem: &str| TopCommandError::Address(text.to_owned(), problem.to_owned());
    let has_scheme = text.contains("://");
    // Without a scheme it is the setting of the listener, which has a port.
    let digits = |(_, port): (&str, &str)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !has_scheme && !text.rsplit_once(':').is_some_and(digits) {
        return Err(invalid("it has no port"));
    }
    let written = if has_scheme { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&written).map_err(|error| invalid(error.problem))?;
    if let Address::Host { host, .. } = &mut url.address {
        match &**host {
            "0.0.0.0" => *host = "127.0.0.1".into(),
            "::" => *host = "::1".into(),
            _ => {}
        }
    }
    Ok(url)
}

/// Returns true if stdout can be drawn on and keys can be read.
fn is_screen() -> bool {
    let is_dumb = ThisMachine.variable("TERM").is_some_and(|name| name == "dumb");
    io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb
}

/// Returns false if the user wants no colours (<https://no-color.org>).
fn has_colours(machine: &dyn Machine) -> bool {
    machine.variable("NO_COLOR").is_none_or(|text| text.is_empty())
}

/// The error of the command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TopCommandError {
    /// The settings file cannot be read.
    #[error("{0}")]
    Config(Diagnostic),
    /// The admin address is invalid: the text and the problem.
    #[error(
        "{} is not an admin address: {}; write ADDRESS:PORT or http://HOST:PORT, as in {}",
        .0.escape_debug(),
        .1,
        setting("admin").default
    )]
    Address(String, String),
    /// The trusted roots are invalid.
    #[error("{0}")]
    Tls(AdminClientError),
    /// The token file cannot be read.
    #[error(
        "the token file {0} cannot be read: {1}; name the admin token file of that tokenmeter with --token-file"
    )]
    Token(PathBuf, io::Error),
    /// The numbers cannot be read.
    #[error("{0}")]
    Admin(AdminError),
    /// The display failed.
    #[error("{0}")]
    Top(TopError),
}

const EXAMPLES: &str = "\
Examples:
  tokenmeter top
  tokenmeter top --admin http://10.0.0.7:9464 --token-file admin.token
  tokenmeter top --admin https://10.0.0.7:9465 --ca ca.crt
  kubectl exec -it POD -c tokenmeter -- tokenmeter top
  tokenmeter top --once

Keys: ? in the display. NO_COLOR is respected.
Exit codes: 1 no numbers, with the reason; 2 invalid flags.";

#[cfg(test)]
mod tests {
    use super::{has_colours, url};
    use crate::plan::machine::Alone;

    #[test]
    fn address_is_a_listener_or_a_url() {
        for (written, reached) in [
            ("127.0.0.1:9464", "http://127.0.0.1:9464"),
            ("0.0.0.0:9464", "http://127.0.0.1:9464"),
            ("[::]:1", "http://[::1]:1"),
            ("tokenmeter:9464", "http://tokenmeter:9464"),
            ("http://proxy/meter/", "http://proxy:80/meter"),
        ] {
            assert_eq!(url(written).unwrap().to_string(), reached);
        }
    }

    #[test]
    fn invalid_address_has_a_remedy() {
        for (written, part) in [
            (
                "10.0.0.7",
                "10.0.0.7 is not an admin address: it has no port; write ADDRESS:PORT or http://HOST:PORT",
            ),
            ("[::1]", "it has no port"),
            ("ftp://a:1", "neither http nor https"),
            ("a b:1", "neither a name nor an address"),
            ("\u{1b}:1", "\\u{1b}:1 is not an admin address"),
        ] {
            let error = url(written).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn no_color_is_respected() {
        assert!(has_colours(&Alone(&[])) && has_colours(&Alone(&[("NO_COLOR", "")])));
        assert!(!has_colours(&Alone(&[("NO_COLOR", "1")])));
    }
}
