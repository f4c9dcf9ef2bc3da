//! The command `tenants`: hashes API keys, says in words what a tenants file does, and whose a
//! request would be. Keys and requests are read from stdin: what is on a command line is seen by
//! everybody on the machine, and kept by shells (law 11).

mod missed;
mod request;
mod words;

use std::fmt;
use std::io::{self, IsTerminal, Read, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::{Arg, ArgMatches, Command};
use tenant::{HashKey, Live};

use crate::diagnostic::Diagnostics;
use crate::machine::{Machine, ThisMachine};
use crate::origin::Origin;
use crate::plan::tenants::{Tenancy, TenantFiles, hash_key, load, warn_if_public};
use crate::reload::{TenantsWatch, Watch};
use crate::settings::{setting, variable};

use request::Request;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantsArgs {
    what: What,
    hash_key: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// The hashes of keys.
    HashKey,
    /// What a file does.
    Check { file: PathBuf },
    /// Whose a request would be.
    Who { file: PathBuf, peer: IpAddr },
}

impl TenantsArgs {
    /// As the flags have it.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let (name, matches) = matches.subcommand().expect("clap asks for one of them");
        let file = || matches.get_one::<PathBuf>("file").cloned().expect("clap asks for it");
        let variable = || ThisMachine.variable(&variable("hash_key_file")).filter(|path| !path.is_empty());
        Self {
            what: match name {
                "hash-key" => What::HashKey,
                "check" => What::Check { file: file() },
                _ => What::Who { file: file(), peer: *matches.get_one("peer").expect("it has a default") },
            },
            hash_key: matches.get_one("hash-key-file").cloned().or_else(|| variable().map(PathBuf::from)),
        }
    }
}

/// The command line of `tenants`.
pub(crate) fn command() -> Command {
    let hash_key = || {
        let help = format!("{} [env: {}]", setting("hash_key_file").help, variable("hash_key_file"));
        let path = Arg::new("hash-key-file").long("hash-key-file").value_name("FILE");
        path.value_parser(clap::value_parser!(PathBuf)).help(help)
    };
    let file = || {
        let path = Arg::new("file").value_name("FILE").required(true);
        path.value_parser(clap::value_parser!(PathBuf)).help("The tenants file")
    };
    Command::new("tenants")
        .about("Hash API keys for a tenants file, check one, or ask it whose a request would be")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("hash-key")
                .about("Print the hash of each API key on stdin, one a line, as a tenants file has it")
                .arg(hash_key()),
        )
        .subcommand(
            Command::new("check")
                .about("Say in words what a tenants file does; exit 2 and all errors if it is wrong")
                .arg(file())
                .arg(hash_key()),
        )
        .subcommand(
            Command::new("who")
                .about("Say whose the request on stdin would be: its first line, header lines, an empty line, the body")
                .arg(file())
                .arg(hash_key())
                .arg(
                    Arg::new("peer")
                        .long("peer")
                        .value_name("ADDRESS")
                        .value_parser(clap::value_parser!(IpAddr))
                        .default_value("127.0.0.1")
                        .help("Who sends it"),
                ),
        )
}

/// Does it, and prints.
pub(crate) fn run(args: &TenantsArgs) -> Result<ExitCode, TenantsError> {
    let text = match &args.what {
        What::HashKey => {
            let path = args.hash_key.as_ref().ok_or(TenantsError::NoHashKey)?;
            let key = hash_key(path).map_err(TenantsError::HashKey)?;
            if let Some(warning) = warn_if_public(path, &Origin::Flag(setting("hash_key_file").flag())) {
                let _ = writeln!(io::stderr(), "tokenmeter: warning: {warning}");
            }
            hashes(&key, &stdin("the API keys, one a line")?)?
        }
        What::Check { file } => {
            let tenancy = tenancy(file, args)?;
            for warning in &tenancy.now.warnings {
                // Without a stderr there is nobody to tell.
                let _ = writeln!(io::stderr(), "tokenmeter: warning: {warning}");
            }
            words::rules(&tenancy.now)
        }
        What::Who { file, peer } => {
            let tenancy = tenancy(file, args)?;
            let live = Arc::new(Live::default());
            let mut news = Vec::new();
            TenantsWatch::new(tenancy, Arc::clone(&live)).look(Instant::now(), false, &mut news);
            for why in news.into_iter().filter_map(|news| news.said.err()) {
                let _ = writeln!(io::stderr(), "tokenmeter: warning: {why}");
            }
            let request = stdin("the request")?;
            let request = Request::read(&request).map_err(TenantsError::Request)?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            request.who(&live.load(), *peer, now)
        }
    };
    // A reader that hung up has read what it wanted.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn tenancy(file: &std::path::Path, args: &TenantsArgs) -> Result<Tenancy, TenantsError> {
    let files = TenantFiles { rules: Some(file.to_owned()), hash_key: args.hash_key.clone() };
    let origins = (Origin::Flag("FILE".to_owned()), Origin::Flag(setting("hash_key_file").flag()));
    let now = load(&files, (&origins.0, &origins.1)).map_err(TenantsError::Diagnostics)?;
    Ok(Tenancy { files, now })
}

/// A line for each key.
fn hashes(key: &HashKey, text: &str) -> Result<String, TenantsError> {
    let keys: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if keys.is_empty() {
        return Err(TenantsError::NoKey);
    }
    if let Some(at) = keys.iter().position(|key| key.contains(char::is_whitespace) || !key.is_ascii()) {
        return Err(TenantsError::OddKey(at + 1));
    }
    Ok(keys.into_iter().map(|text| format!("{}\n", key.api_key(text.as_bytes()))).collect())
}

fn stdin(what: &str) -> Result<String, TenantsError> {
    if io::stdin().is_terminal() {
        let _ = writeln!(io::stderr(), "tokenmeter: reading {what} from here; Ctrl-D ends");
    }
    let mut text = String::new();
    io::stdin().take(STDIN_BYTES).read_to_string(&mut text).map_err(TenantsError::Stdin)?;
    Ok(text)
}

/// Bytes that are read from stdin: ten thousand keys, or any request.
const STDIN_BYTES: u64 = 8 * 1024 * 1024;

/// Why it could not be done.
#[derive(Debug)]
pub(crate) enum TenantsError {
    /// The files are wrong.
    Diagnostics(Diagnostics),
    /// No hash key file is named.
    NoHashKey,
    /// It is wrong.
    HashKey(String),
    /// Nothing came.
    NoKey,
    /// What is on this line is no API key.
    OddKey(usize),
    /// What came is no request.
    Request(&'static str),
    /// Nothing could be read.
    Stdin(io::Error),
}

impl fmt::Display for TenantsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diagnostics(errors) => write!(f, "{errors}"),
            Self::NoHashKey => f.write_str(
                "no hash key file is named; give --hash-key-file FILE, made once as by \
                 `head -c 32 /dev/urandom > FILE` and the same for a fleet",
            ),
            Self::HashKey(what) => write!(f, "{what}; name a file of 32 random bytes or more"),
            Self::NoKey => f.write_str("there is no API key on stdin; pipe it in, one a line"),
            Self::OddKey(line) => write!(
                f,
                "what is on line {line} of stdin is no API key: one has no spaces and only ASCII; \
                 write the key alone, without `Bearer` or quotes"
            ),
            Self::Request(what) => write!(
                f,
                "what is on stdin is no request: {what}; write `POST /path`, then `name: value` lines, an empty \
                 line, and the JSON body"
            ),
            Self::Stdin(error) => write!(f, "stdin cannot be read: {error}"),
        }
    }
}

impl std::error::Error for TenantsError {}

const EXAMPLES: &str = "\
Examples:
  head -c 32 /dev/urandom > hash.key && chmod 600 hash.key
  printf %s \"$API_KEY\" | tokenmeter tenants hash-key --hash-key-file hash.key
  tokenmeter tenants check tenants.yaml --hash-key-file hash.key
  printf 'POST /v1/chat/completions\\nx-tenant: acme\\n\\n{\"user\": \"ann\"}' |
    tokenmeter tenants who tenants.yaml --peer 10.0.0.7 --hash-key-file hash.key";

#[cfg(test)]
#[path = "tenants_tests.rs"]
mod tests;
