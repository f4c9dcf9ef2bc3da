//! The command `curve`: asks a running tokenmeter for its metrics page, once or at both ends of a
//! window, and prints what the crate of that name makes of it.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use curve::{Curves, Reading, ReadingError, Window};
use scrape::{Error, Fetcher};
use text::nearest;
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::settings::setting;
use crate::url::{Url, WRITE};

/// What is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurveArgs {
    from: Url,
    model: Option<String>,
    over: Option<Duration>,
    format: Format,
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Table,
    Json,
    Svg,
}

impl CurveArgs {
    /// As the flags have it.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        Self {
            from: matches.get_one::<Url>("from").cloned().expect("it has a default"),
            model: matches.get_one("model").cloned(),
            over: matches.get_one("over").copied(),
            format: match matches.get_one::<String>("format").map(String::as_str) {
                Some("json") => Format::Json,
                Some("svg") => Format::Svg,
                _ => Format::Table,
            },
            output: matches.get_one("output").cloned(),
        }
    }
}

/// The command line of `curve`.
pub(crate) fn command() -> Command {
    // Clap wants defaults that live as long as the process; this is built once.
    let usual: &'static str = format!("http://{}", setting("admin").default).leak();
    Command::new("curve")
        .about("Show how one stream slows down as more share the server, from a running tokenmeter's metrics")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("URL")
                .default_value(usual)
                .value_parser(admin)
                .help("That tokenmeter's admin address, as http://HOST:PORT"),
        )
        .arg(
            Arg::new("model")
                .long("model")
                .value_name("NAME")
                .help("This model only; by default every one that was timed"),
        )
        .arg(Arg::new("over").long("over").value_name("TIME").value_parser(over).help(
            "Only what happens from now on for so long, as in 60s or 5m; by default all since its start",
        ))
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("NAME")
                .value_parser(["table", "json", "svg"])
                .default_value("table")
                .help("For people, for programs, or a picture"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Where it is written; by default to the screen"),
        )
}

/// Asks, and prints.
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
        None => {
            // A reader that hung up has read what it wanted.
            let _ = io::stdout().write_all(text.as_bytes());
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn curves(args: &CurveArgs) -> Result<Curves, CurveError> {
    let first = read(&args.from).await?;
    let (reading, window) = match args.over {
        None => (first, Window::SinceStart),
        Some(over) => {
            if io::stderr().is_terminal() {
                let _ = writeln!(io::stderr(), "tokenmeter: read once; again in {} s", over.as_secs());
            }
            sleep(over).await;
            let later = read(&args.from).await?;
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

async fn read(from: &Url) -> Result<Reading, CurveError> {
    let asker =
        Fetcher { host: from.host.as_str().into(), port: from.port, prefix: from.prefix.as_str().into() };
    let answer = asker.get_at_most("/metrics", PAGE_BYTES).await;
    let answer = answer.map_err(|failure| CurveError::Unreached(from.clone(), failure))?;
    if answer.status != 200 {
        let said = answer.text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control());
        return Err(CurveError::Status(from.clone(), answer.status, said.take(SAID).collect()));
    }
    Reading::of(&answer.text).map_err(|why| CurveError::ReadingError(from.clone(), why))
}

/// Why there is no curve.
#[derive(Debug)]
pub(crate) enum CurveError {
    Runtime(io::Error),
    Unreached(Url, Error),
    /// And the first line of what it says to it.
    Status(Url, u16, String),
    ReadingError(Url, ReadingError),
    /// The page is right, but there is nothing on it of what was wished for.
    Nothing {
        args: Box<CurveArgs>,
        timed: Vec<String>,
    },
    Svg(String),
    Write(PathBuf, io::Error),
}

impl fmt::Display for CurveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(error) => write!(f, "cannot start: {error}"),
            Self::Unreached(from, failure) => write!(
                f,
                "{from}/metrics cannot be read: {failure}; name the admin address of a running tokenmeter with --from"
            ),
            Self::Status(from, status, said) => {
                write!(f, "{from}/metrics answers {status}: {said}")?;
                match status {
                    421 => Ok(()),
                    _ => f.write_str("; name the admin address of a running tokenmeter with --from"),
                }
            }
            Self::ReadingError(from, why) => write!(f, "{from}/metrics: {why}"),
            Self::Nothing { args, timed } => nothing(f, args, timed),
            Self::Svg(error) => {
                write!(f, "the picture cannot be drawn: {error}; --format table has the same numbers")
            }
            Self::Write(path, error) => {
                write!(f, "cannot write {}: {error}; name another file with --output", path.display())
            }
        }
    }
}

impl std::error::Error for CurveError {}

fn nothing(f: &mut fmt::Formatter<'_>, args: &CurveArgs, timed: &[String]) -> fmt::Result {
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
            "no stream ended within those {} s; wait longer, or leave --over out for all since its start",
            over.as_secs()
        ),
        (_, None) => write!(
            f,
            "{from}/metrics has timed no stream yet; send streamed requests through that tokenmeter and ask again"
        ),
    }
}

/// The admin address; `/metrics` behind it is as good.
fn admin(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text).map_err(|refused| match refused.remedy {
        // The example of an upstream's URL has an inference server's port.
        WRITE => {
            format!("{}; write http://HOST:PORT, as in http://{}", refused.what, setting("admin").default)
        }
        remedy => format!("{}; {remedy}", refused.what),
    })?;
    if let Some(prefix) = url.prefix.strip_suffix("/metrics") {
        url.prefix.truncate(prefix.len());
    }
    Ok(url)
}

/// A time in seconds, minutes or hours.
fn over(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(TIME.to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| TIME.to_owned())?;
    let seconds = number.checked_mul(unit).filter(|seconds| (1..=LONGEST).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| TIME.to_owned())
}

const TIME: &str = "write a whole number of seconds, minutes or hours up to a day, as in 60s, 5m or 2h";

/// Seconds of a window: a day.
const LONGEST: u64 = 86_400;

/// Bytes of a page: four times the longest, which a thousand models have.
const PAGE_BYTES: usize = 64 * 1024 * 1024;

/// Characters of what a server says to its refusal.
const SAID: usize = 200;

const EXAMPLES: &str = "\
Examples:
  tokenmeter curve
  tokenmeter curve --from http://10.0.0.7:9464 --model qwen3-8b --over 5m
  tokenmeter curve --format svg --output curve.svg

Exit codes: 1 nothing to show, and why; 2 wrong flags.";

#[cfg(test)]
#[path = "curve_tests.rs"]
mod tests;
