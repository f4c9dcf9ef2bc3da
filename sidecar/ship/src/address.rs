//! The address of the central store, `postgres://USER@HOST[:PORT]/DATABASE[?…]`; finds its password and keeps
//! it out of all output.
//!
//! Law: over a network the connection is encrypted and the server's certificate verified, unless the URL has
//! `sslmode=disable`. No mode lies between, because one that falls back to plain text protects nothing.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslMode};

/// A central store's address.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Config,
    /// A file of root certificates that replace the system's.
    pub(crate) roots: Option<PathBuf>,
    /// A password file in the format of libpq's `.pgpass`.
    passwords: Option<PathBuf>,
}

impl Address {
    /// Parses a URL.
    ///
    /// # Errors
    /// If the URL is not valid; the text never holds a password.
    pub fn parse(url: &str) -> Result<Self, String> {
        if !is_postgres(url) {
            return Err(format!("not a PostgreSQL URL; {WRITE_URL}"));
        }
        if !is_plain(url) {
            return Err(format!("the URL has an @ after the host; {WRITE_URL}, {ENCODED}"));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut passwords, mut rest) = (None, None, None, String::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "sslmode" => mode = Some(tls(value)?),
                "sslrootcert" if value == "system" => {}
                "sslrootcert" => roots = Some(PathBuf::from(decoded(value))),
                "passfile" => passwords = Some(PathBuf::from(decoded(value))),
                _ => rest = format!("{rest}{}{pair}", if rest.is_empty() { "?" } else { "&" }),
            }
        }
        let mut config: Config = format!("{base}{rest}").parse().map_err(|error| invalid_url(&error))?;
        if config.get_hosts().is_empty() {
            return Err(format!("the URL names no host; {WRITE_URL}"));
        }
        // `hostaddr` beside a host is the address that is connected to.
        let addresses_near = config.get_hostaddrs().iter().all(|ip| ip.to_canonical().is_loopback());
        let near = addresses_near && config.get_hosts().iter().all(is_near);
        config.ssl_mode(mode.unwrap_or(if near { SslMode::Disable } else { SslMode::Require }));
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.keepalives_idle(KEEPALIVE_IDLE).tcp_user_timeout(UNACKED_TIMEOUT);
        if config.get_application_name().is_none() {
            config.application_name("tokenmeter");
        }
        Ok(Self { config, roots, passwords })
    }

    /// Returns `HOST:PORT`, several separated by commas.
    pub(crate) fn hosts(&self) -> String {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(at, host)| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
            match host {
                Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        });
        hosts.collect::<Vec<_>>().join(",")
    }

    /// Returns the password file in the URL.
    pub fn passwords(&self) -> Option<&PathBuf> {
        self.passwords.as_ref()
    }

    /// Returns true if the URL has a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Sets the password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// Returns the password of the first line of a `.pgpass` file that matches this address.
    pub fn find_password(&self, lines: &str) -> Option<String> {
        let host = match self.config.get_hosts().first()? {
            Host::Tcp(name) => name.clone(),
            Host::Unix(_) => "localhost".to_owned(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(PORT).to_string();
        let user = self.config.get_user().unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or(user);
        let wanted = [host.as_str(), &port, database, user];
        lines.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let fields = fields(line);
            let fits = |(field, wanted): (&String, &&str)| field == "*" || field == wanted;
            (fields.len() == 5 && fields.iter().zip(&wanted).all(fits)).then(|| fields[4].clone())
        })
    }
}

impl fmt::Display for Address {
    /// Writes `postgres://USER@HOST:PORT/DATABASE` without password and parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        f.write_str("postgres://")?;
        if let Some(user) = config.get_user() {
            write!(f, "{user}@")?;
        }
        write!(f, "{}/{}", self.hosts(), config.get_dbname().or(config.get_user()).unwrap_or_default())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Returns true if a text has the scheme of a PostgreSQL URL.
pub fn is_postgres(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

/// Returns a URL for output, in which anything that may be a password is `***`, also if the URL is not valid.
pub fn redact(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "***".to_owned() };
    if rest.contains("password") {
        return format!("{scheme}://***");
    }
    // A password may hold characters that end an authority, so the last @ ends the credentials.
    let (hidden, rest) = match rest.rsplit_once('@') {
        // A plain user name is shown; anything else may hold a password.
        Some((user, rest)) if !user.contains([':', '/', '?', '@']) => (format!("{user}@"), rest),
        Some((credentials, rest)) => {
            let user = credentials.split([':', '/', '?', '@']).next().unwrap_or("");
            (format!("{user}:***@"), rest)
        }
        None => (String::new(), rest),
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut shown = format!("{scheme}://{hidden}{place}");
    for (at, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        let key = pair.split('=').next().unwrap_or("");
        shown.push(if at == 0 { '?' } else { '&' });
        match PLAIN_PARAMETERS.contains(&key) {
            true => shown.push_str(pair),
            false => shown.push_str(&format!("{key}=***")),
        }
    }
    shown
}

/// Returns true if the only @ ends the credentials: otherwise part of a password would be parsed as the host
/// and shown.
fn is_plain(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or("");
    rest.matches('@').count() == authority.matches('@').count() && authority.matches('@').count() <= 1
}

fn tls(mode: &str) -> Result<SslMode, String> {
    match mode {
        "disable" => Ok(SslMode::Disable),
        "require" | "verify-full" => Ok(SslMode::Require),
        _ => {
            Err("sslmode must be disable, or require, or verify-full, which is the same here: the server's \
                  certificate is always verified"
                .to_owned())
        }
    }
}

/// Returns true if a host is this machine.
fn is_near(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    }
}

fn invalid_url(error: &postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(" ({cause})")).unwrap_or_default();
    format!("the URL cannot be read{cause}; {WRITE_URL}, {ENCODED}")
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the fields of a `.pgpass` line, separated by colons; a backslash escapes the next character.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        match character {
            '\\' => fields[last].extend(characters.next()),
            // Everything after the fourth colon is the password, further colons included.
            ':' if fields.len() < 5 => fields.push(String::new()),
            other => fields[last].push(other),
        }
    }
    fields
}

const WRITE_URL: &str = "write postgres://USER@HOST:PORT/DATABASE";

const ENCODED: &str = "and percent-encode special characters of a password";

/// Parameters of a URL that are not secret.
const PLAIN_PARAMETERS: [&str; 9] = [
    "sslmode",
    "sslrootcert",
    "passfile",
    "host",
    "port",
    "user",
    "dbname",
    "application_name",
    "connect_timeout",
];

/// PostgreSQL's port.
const PORT: u16 = 5432;

/// Maximum time to connect to one host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle time of a connection before a keepalive probe is sent.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// Maximum time that sent data may stay unacknowledged.
const UNACKED_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
