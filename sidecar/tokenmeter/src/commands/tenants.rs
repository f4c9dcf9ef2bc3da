//! The command `tenants`: hashes API keys, describes a tenants file and an attributes file, and determines the tenant of
//! a request. Keys and requests are read from stdin, because a command line is visible to every user
//! of the machine and stored by shells (law 11).

mod attributes;
mod describe;
mod misses;
mod request;

use std::io::{self, IsTerminal, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use origin::{Diagnostics, Origin};
use rules::{TenantFiles, hash_key, load, warn_if_public};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tenant::{CertificateNames, HashKey, Live};

use crate::plan::machine::{Machine, ThisMachine};
use crate::plan::tenants::Tenancy;
use crate::reload::{TenantsWatch, Watch};
use crate::settings::{setting, variable};

use super::setting::with_variable;
use super::{print, print_message};
use request::Request;

/// The arguments of `tenants`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct TenantsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
enum Action {
    /// Print the hash of each API key on stdin, one per line, for a tenants file.
    HashKey {
        #[command(flatten)]
        hash_key: HashKeyFile,
    },
    /// Describe the rules of a tenants file, or print all errors with exit code 2.
    Check {
        /// Tenants file.
        file: PathBuf,
        #[command(flatten)]
        hash_key: HashKeyFile,
    },
    /// Describe an attributes file of tenants, or print all errors with exit code 2.
    Attributes {
        /// Attributes file.
        file: String,
    },
    /// Print the tenant of the request on stdin: request line, header lines, an empty line, the body.
    Who {
        /// Tenants file.
        file: PathBuf,
        #[command(flatten)]
        hash_key: HashKeyFile,
        /// Address of the peer that sends the request.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
        peer: IpAddr,
        /// PEM file of the certificate that the client presents to a listener with TLS; it counts as verified.
        #[arg(long, value_name = "FILE")]
        certificate: Option<PathBuf>,
    },
}

/// The file of the key of hashes, as the setting of the proxy.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
struct HashKeyFile {
    #[arg(
        long = "hash-key-file",
        value_name = "FILE",
        help = with_variable(setting("hash_key_file").help, "hash_key_file")
    )]
    path: Option<PathBuf>,
}

impl HashKeyFile {
    /// Returns the path of the flag, or else of the variable.
    fn path(&self) -> Option<PathBuf> {
        let variable = || ThisMachine.variable(&variable("hash_key_file")).filter(|path| !path.is_empty());
        self.path.clone().or_else(|| variable().map(PathBuf::from))
    }
}

/// Executes the subcommand.
pub(crate) fn run(args: &TenantsArgs) -> Result<ExitCode, TenantsError> {
    let text = match &args.action {
        Action::HashKey { hash_key: file } => {
            let path = &file.path().ok_or(TenantsError::NoHashKey)?;
            let key = hash_key(path).map_err(TenantsError::HashKey)?;
            if let Some(warning) = warn_if_public(path, &Origin::Flag(setting("hash_key_file").flag())) {
                print_message(&format!("warning: {warning}"));
            }
            hashes(&key, &stdin("the API keys, one per line")?)?
        }
        Action::Check { file, hash_key } => {
            let tenancy = tenancy(file, hash_key)?;
            for warning in &tenancy.now.warnings {
                print_message(&format!("warning: {warning}"));
            }
            describe::rules(&tenancy.now)
        }
        Action::Attributes { file } => {
            let read = crate::plan::attributes::read(file, &Origin::Flag("FILE".to_owned()));
            attributes::describe(&read.map_err(TenantsError::Diagnostics)?)
        }
        Action::Who { file, hash_key, peer, certificate } => {
            let certificate = certificate.as_deref().map(names).transpose()?;
            let tenancy = tenancy(file, hash_key)?;
            let live = Arc::new(Live::default());
            let mut results = Vec::new();
            TenantsWatch::new(tenancy, Arc::clone(&live)).check(Instant::now(), false, &mut results);
            for why in results.into_iter().filter_map(|result| result.outcome.err()) {
                print_message(&format!("warning: {why}"));
            }
            let request = stdin("the request")?;
            let request = Request::read(&request).map_err(TenantsError::Request)?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            request.who(&live.load(), (*peer, certificate.as_ref()), now)
        }
    };
    print(&text);
    Ok(ExitCode::SUCCESS)
}

/// Reads the names in the first certificate of a PEM file.
fn names(path: &Path) -> Result<CertificateNames, TenantsError> {
    let failed = |error: String| TenantsError::Certificate(format!("{}: {error}", path.display()));
    let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let certificate = CertificateDer::from_pem_slice(&pem);
    let certificate = certificate.map_err(|_| failed("no certificate in PEM".to_owned()))?;
    relay::certificate_names(&certificate).ok_or_else(|| failed("the certificate is damaged".to_owned()))
}

fn tenancy(file: &Path, hash_key: &HashKeyFile) -> Result<Tenancy, TenantsError> {
    let files = TenantFiles { rules: Some(file.to_owned()), hash_key: hash_key.path() };
    let origins = (Origin::Flag("FILE".to_owned()), Origin::Flag(setting("hash_key_file").flag()));
    let now = load(&files, (&origins.0, &origins.1)).map_err(TenantsError::Diagnostics)?;
    Ok(Tenancy { files, now })
}

/// Renders the hash of each key, one per line.
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

fn stdin(noun: &str) -> Result<String, TenantsError> {
    if io::stdin().is_terminal() {
        print_message(&format!("reading {noun} from the terminal; Ctrl-D ends"));
    }
    let mut text = String::new();
    io::stdin().take(STDIN_BYTES).read_to_string(&mut text).map_err(TenantsError::Stdin)?;
    Ok(text)
}

/// The maximum size of stdin in bytes: ten thousand keys, or any request.
const STDIN_BYTES: u64 = 8 * 1024 * 1024;

/// The error of a subcommand.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TenantsError {
    /// The files are invalid.
    #[error("{0}")]
    Diagnostics(Diagnostics),
    /// No hash key file is set.
    #[error(
        "no hash key file is set; add --hash-key-file FILE, created once by `head -c 32 /dev/urandom > FILE` and the \
         same for a fleet"
    )]
    NoHashKey,
    /// The hash key file is invalid.
    #[error("{0}; name a file of 32 random bytes or more")]
    HashKey(String),
    /// Stdin holds no key.
    #[error("there is no API key on stdin; pipe keys in, one per line")]
    NoKey,
    /// This line holds no API key.
    #[error(
        "line {0} of stdin is not an API key, which is ASCII without spaces; write the key alone, without `Bearer` \
         or quotes"
    )]
    OddKey(usize),
    /// The certificate cannot be read.
    #[error("{0}; name a PEM file with --certificate")]
    Certificate(String),
    /// Stdin holds no request.
    #[error(
        "stdin is not a request: {0}; write `POST /path`, then `name: value` lines, an empty line, and the JSON body"
    )]
    Request(&'static str),
    /// Stdin cannot be read.
    #[error("stdin cannot be read: {0}")]
    Stdin(io::Error),
}

const EXAMPLES: &str = "\
Examples:
  head -c 32 /dev/urandom > hash.key && chmod 600 hash.key
  printf %s \"$API_KEY\" | tokenmeter tenants hash-key --hash-key-file hash.key
  tokenmeter tenants check tenants.yaml --hash-key-file hash.key
  tokenmeter tenants attributes attributes.yaml
  printf 'POST /v1/chat/completions\\nx-tenant: acme\\n\\n{\"user\": \"ann\"}' |
    tokenmeter tenants who tenants.yaml --peer 10.0.0.7 --hash-key-file hash.key";

#[cfg(test)]
#[path = "tenants_tests.rs"]
mod tests;
