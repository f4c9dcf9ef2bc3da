//! The admin listener of a running tokenmeter: its JSON, and errors that say what happened and what to do.

use live::curve::Curves;
use live::{History, Now, Step};
use scrape::{BearerToken, Fetcher, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use text::printable;

use crate::scope::ScopeName;

/// The admin listener.
#[derive(Clone, Debug)]
pub struct Admin {
    fetcher: Fetcher,
    token: Option<BearerToken>,
}

impl Admin {
    /// Names the listener by the client of its pages.
    pub fn at(fetcher: Fetcher) -> Self {
        Self { fetcher, token: None }
    }

    /// Adds the token of the requests; `None` if it has a character that no header field can hold.
    pub fn with_token(self, token: &str) -> Option<Self> {
        Some(Self { token: Some(BearerToken::new(token)?), ..self })
    }

    /// Returns the state now.
    pub(crate) fn now(&self) -> Result<Now, AdminError> {
        let response = self.get("/api/now")?;
        match response.status {
            200 => self.parse(&response.text),
            404 => Err(self.without_api()),
            status => Err(self.rejected(status, &response.text)),
        }
    }

    /// Returns the last quarter of an hour of a scope, by the second.
    pub(crate) fn history(&self, scope: &ScopeName) -> Result<History, AdminError> {
        self.json(&format!("/api/history?scope={}&step={}", scope.query(), Step::Second.seconds()))
    }

    /// Returns the degradation curves since the start.
    pub(crate) fn curves(&self) -> Result<Curves, AdminError> {
        self.json("/api/curve")
    }

    fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, AdminError> {
        let response = self.get(path)?;
        match response.status {
            200 => self.parse(&response.text),
            status => Err(self.rejected(status, &response.text)),
        }
    }

    fn parse<T: DeserializeOwned>(&self, text: &str) -> Result<T, AdminError> {
        serde_json::from_str(text).map_err(|_| {
            let page: Option<Value> = serde_json::from_str(text).ok();
            match page.as_ref().and_then(|page| page["version"].as_str()) {
                Some(version) => self.error(Kind::OtherVersion(printable(version))),
                None => self.error(Kind::Foreign),
            }
        })
    }

    fn get(&self, path: &str) -> Result<Response, AdminError> {
        let response = self.fetcher.get_blocking_with_token(path, self.token.as_ref());
        response.map_err(|error| self.error(Kind::Unreached(error.to_string())))
    }

    /// Tells an older tokenmeter from another program.
    fn without_api(&self) -> AdminError {
        let metrics = self.get("/metrics");
        let is_ours = metrics.is_ok_and(|page| page.status == 200 && page.text.contains("\ntokenmeter_"));
        self.error(if is_ours { Kind::Older } else { Kind::Foreign })
    }

    fn rejected(&self, status: u16, body: &str) -> AdminError {
        self.error(match (status, &self.token) {
            (401, None) => Kind::NeedsToken,
            (401, Some(_)) => Kind::WrongToken,
            _ => Kind::Status(status, reason(body)),
        })
    }

    fn error(&self, kind: Kind) -> AdminError {
        let Fetcher { target, prefix } = &self.fetcher;
        AdminError { address: format!("{target}{prefix}"), kind }
    }
}

/// Returns the error of a JSON body, or the first line of another.
fn reason(body: &str) -> String {
    let json: Option<Value> = serde_json::from_str(body).ok();
    let error = json.as_ref().and_then(|json| json["error"].as_str());
    let line = error.or(body.lines().next()).unwrap_or_default();
    printable(&line.chars().take(REASON_MAX_CHARS).collect::<String>())
}

/// The error of a request to the admin listener, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", kind.text(address))]
pub struct AdminError {
    address: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Unreached(String),
    NeedsToken,
    WrongToken,
    Older,
    OtherVersion(String),
    Foreign,
    /// The status, and the reason in the body.
    Status(u16, String),
}

impl Kind {
    fn text(&self, address: &str) -> String {
        match self {
            Self::Unreached(why) => {
                format!("no tokenmeter answers at {address}: {why}; name its admin address with --admin")
            }
            Self::NeedsToken => {
                format!("{address} needs the admin token; name the file that has it with --token-file")
            }
            Self::WrongToken => {
                format!("{address} rejects the token; name the file of that tokenmeter with --token-file")
            }
            Self::Older => format!(
                "the tokenmeter at {address} is older than this one and has no /api; update it, or use \
                 `tokenmeter curve --from {address}` and /metrics"
            ),
            Self::OtherVersion(version) => format!(
                "the tokenmeter at {address} has version {version} and other numbers than this one ({}); use the \
                 `tokenmeter top` of that version",
                env!("CARGO_PKG_VERSION")
            ),
            Self::Foreign => {
                format!("{address} is not a tokenmeter; name the admin address of a running one with --admin")
            }
            Self::Status(status, reason) => format!("{address} responds {status}: {reason}"),
        }
    }
}

/// Characters of an error's reason that are printed.
const REASON_MAX_CHARS: usize = 200;
