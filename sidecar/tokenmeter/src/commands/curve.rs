//! The command `curve`: scrapes a running tokenmeter, once or at both ends of a window, and prints its degradation
//! curves.

use std::fmt;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use curve::{Curves, Reading, ReadingError, Window};
use origin::Diagnostic;
use scrape::{BearerToken, Error, Fetcher};
use text::nearest;
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::admin_client::{AdminClientError, admin_client};
use super::setting::{named, with_variable};
use super::{print, print_message};
use crate::plan::machine::ThisMachine;
use crate::plan::url::{URL_REMEDY, Url};
use crate::settings::setting;
use crate::token_file::TokenFile;

/// The arguments of `curve`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct CurveArgs {
    /// Admin address of that tokenmeter, http(s)://HOST:PORT.
    #[arg(long, value_name = "URL", default_value = default_admin(), value_parser = admin)]
    from: Url,
    /// Trusted root certificates of an https URL (PEM), in place of the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    #[arg(long, value_name = "FILE", help = with_variable("File with the admin token, if that tokenmeter has one", TOKEN_FILE))]
    token_file: Option<String>,
    /// Only this model; by default every timed one.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Only streams of a window from now on, as in 60s or 5m; by default all since its start.
    #[arg(long, value_name = "TIME", value_parser = over)]
    over: Option<Duration>,
    /// Output format.
    #[arg(long, value_name = "NAME", value_enum, default_value = "table")]
    format: Format,
    /// Output file; by default stdout.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Svg,
}

/// Returns the default admin address. Clap requires a static one; the command line is built once per process.
fn default_admin() -> &'static str {
    format!("http://{}", setting("admin").default).leak()
}

/// Scrapes, and prints the curves.
pub(crate) fn run(args: &CurveArgs) -> Result<ExitCode, CurveError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(CurveError::Runtime)?;
    let curves = runtime.block_on(curves(args))?;
    let text = match args.format {
        Format::Table => curve::table(&curves),
        Format::Json => curve::json(&curves),
        Format::Svg => curve::svg(&curves).map_err(|error| CurveError::Svg(error.to_string()))?,
    };
    match &args.output {
        Some(path) => std::fs::write(path, text).map_err(|error| CurveError::Write(path.clone(), error))?,
        None => print(&text),
    }
    Ok(ExitCode::SUCCESS)
}

async fn curves(args: &CurveArgs) -> Result<Curves, CurveError> {
    let token = token(args)?;
    let fetcher = admin_client(&args.from, args.ca.as_deref()).map_err(CurveError::Tls)?;
    let first = read(&args.from, &fetcher, token.as_ref()).await?;
    let (reading, window) = match args.over {
        None => (first, Window::SinceStart),
        Some(over) => {
            if io::stderr().is_terminal() {
                let seconds = over.as_secs();
                print_message(&format!("first scrape done; the second follows in {seconds} s"));
            }
            sleep(over).await;
            let later = read(&args.from, &fetcher, token.as_ref()).await?;
            let since = later.less(&first).map_err(|why| CurveError::ReadingError(args.from.clone(), why))?;
            (since, Window::Last(over))
        }
    };
    let curves = Curves::of(&reading, window, args.model.as_deref());
    if curves.models.is_empty() {
        let timed = reading.models().map(str::to_owned).collect();
        return Err(CurveError::Nothing { args: Box::new(args.clone()), timed });
    }
    Ok(curves)
}

/// Returns the token, if a file with one is named.
fn token(args: &CurveArgs) -> Result<Option<BearerToken>, CurveError> {
    let file =
        named(TOKEN_FILE, args.token_file.as_deref(), None, &ThisMachine).map_err(CurveError::Config)?;
    let Some(file) = file else { return Ok(None) };
    let token = TokenFile::at(&file).read().and_then(|token| {
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "it has control characters");
        BearerToken::new(&token).ok_or_else(invalid)
    });
    token.map(Some).map_err(|error| CurveError::Token(file.into(), error))
}

async fn read(from: &Url, fetcher: &Fetcher, token: Option<&BearerToken>) -> Result<Reading, CurveError> {
    let answer = fetcher.get_with_token("/metrics", PAGE_BYTES, token).await;
    let answer = answer.map_err(|error| CurveError::Unreached(from.clone(), error))?;
    if answer.status != 200 {
        let line = answer.text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control());
        return Err(CurveError::Status(from.clone(), answer.status, line.take(ERROR_MAX_CHARS).collect()));
    }
    Reading::of(&answer.text).map_err(|why| CurveError::ReadingError(from.clone(), why))
}

/// The error of the command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CurveError {
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    /// The trusted roots are invalid.
    #[error("{0}")]
    Tls(AdminClientError),
    /// A variable is invalid.
    #[error("{0}")]
    Config(Diagnostic),
    /// The token file cannot be read.
    #[error("the token file {path} cannot be read: {1}; name the file with --token-file", path = .0.display())]
    Token(PathBuf, io::Error),
    #[error("{0}/metrics cannot be read: {1}; name the admin address of a running tokenmeter with --from")]
    Unreached(Url, Error),
    /// The status, and the first line of the body.
    #[error("{0}/metrics responds {1}: {2}{remedy}", remedy = status_remedy(*.1))]
    Status(Url, u16, String),
    #[error("{0}/metrics: {1}")]
    ReadingError(Url, ReadingError),
    /// The page is valid but has no matching stream.
    #[error(fmt = nothing)]
    Nothing { args: Box<CurveArgs>, timed: Vec<String> },
    #[error("the SVG cannot be rendered: {0}; --format table has the same numbers")]
    Svg(String),
    #[error("cannot write {path}: {1}; name another file with --output", path = .0.display())]
    Write(PathBuf, io::Error),
}

fn status_remedy(status: u16) -> &'static str {
    match status {
        421 => "",
        401 => "; name that file with --token-file",
        _ => "; name the admin address of a running tokenmeter with --from",
    }
}

fn nothing(args: &CurveArgs, timed: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let CurveArgs { from, model, over, .. } = args;
    match (model, over) {
        (Some(model), _) if !timed.is_empty() => {
            write!(f, "{from}/metrics has timed no stream of a model `{}`; ", model.escape_debug())?;
            match nearest(model, timed.iter().map(String::as_str)) {
                Some(near) => write!(f, "did you mean `{}`?", near.escape_debug()),
                None => {
                    let timed: Vec<_> = timed.iter().map(|name| name.escape_debug().to_string()).collect();
                    write!(f, "it has {}", timed.join(", "))
                }
            }
        }
        (_, Some(over)) => write!(
            f,
            "no stream ended within those {} s; use a longer window, or omit --over for all since its start",
            over.as_secs()
        ),
        (_, None) => write!(
            f,
            "{from}/metrics has timed no stream yet; send streamed requests through that tokenmeter and try again"
        ),
    }
}

/// Parses the admin address; a trailing `/metrics` is allowed.
fn admin(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text).map_err(|error| match error.remedy {
        // The general remedy has the port of an inference server.
        URL_REMEDY => {
            format!("{}; write http://HOST:PORT, as in http://{}", error.problem, setting("admin").default)
        }
        remedy => format!("{}; {remedy}", error.problem),
    })?;
    if let Some(prefix) = url.prefix.strip_suffix("/metrics") {
        url.prefix.truncate(prefix.len());
    }
    Ok(url)
}

/// Parses a duration in seconds, minutes or hours.
fn over(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(TIME.to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| TIME.to_owned())?;
    let seconds = number.checked_mul(unit).filter(|seconds| (1..=WINDOW_MAX_S).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| TIME.to_owned())
}

const TIME: &str = "write a whole number of seconds, minutes or hours up to a day, as in 60s, 5m or 2h";

/// The longest window in seconds: a day.
const WINDOW_MAX_S: u64 = 86_400;

const TOKEN_FILE: &str = "admin_token_file";

/// The maximum size of a page in bytes: four times that of a thousand models.
const PAGE_BYTES: usize = 64 * 1024 * 1024;

/// Characters of an error body that are printed.
const ERROR_MAX_CHARS: usize = 200;

const EXAMPLES: &str = "\
Examples:
  tokenmeter curve
  tokenmeter curve --from http://10.0.0.7:9464 --model qwen3-8b --over 5m
  tokenmeter curve --format svg --output curve.svg

Exit codes: 1 nothing to show, with the reason; 2 invalid flags.";

#[cfg(test)]
#[path = "curve_tests.rs"]
mod tests;
