//! The command line. Each row of the table of settings is a flag of `run` and of `check-config`,
//! with its variable, unit and default in the help. `run` is the default command.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::completions::CompletionsArgs;
use crate::commands::curve::CurveArgs;
use crate::commands::drain::DrainArgs;
#[cfg(feature = "inject")]
use crate::commands::inject::InjectArgs;
use crate::commands::ledger::LedgerArgs;
use crate::commands::man::ManArgs;
use crate::commands::prices::PricesArgs;
#[cfg(feature = "redirect")]
use crate::commands::redirect::RedirectArgs;
use crate::commands::spend::SpendArgs;
use crate::commands::statement::StatementArgs;
use crate::commands::tenants::TenantsArgs;
#[cfg(feature = "top")]
use crate::commands::top::TopArgs;
#[cfg(feature = "demo")]
use crate::demo::DemoArgs;
use crate::settings::{Form, Group, SETTINGS, Setting, variable};
use crate::version::version;

/// The command line: settings, or a command with its arguments.
#[derive(Debug, Parser)]
#[command(
    name = "tokenmeter",
    version = version(),
    about = "A streaming proxy that meters LLM inference: tokens, latency, spend",
    override_usage = "tokenmeter [OPTIONS] | tokenmeter <COMMAND>",
    after_help = MORE,
    after_long_help = examples(EXAMPLES),
    args_conflicts_with_subcommands = true
)]
struct CommandLine {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    action: Option<Action>,
}

/// A parsed command line.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Action {
    /// Run the proxy (the default command).
    #[command(after_help = MORE, after_long_help = examples(EXAMPLES))]
    Run(Flags),
    /// Print the effective settings, or all errors with exit code 2.
    CheckConfig {
        /// The settings to check.
        #[command(flatten)]
        flags: Flags,
        /// Show the origin of each setting: flag, variable, file and line, or default.
        #[arg(long)]
        show_origin: bool,
    },
    /// Drain a running tokenmeter and wait for its end.
    #[command(
        long_about = "Drain a running tokenmeter: it serves new requests for the drain delay and lets streams finish. The command exits after the last record is committed"
    )]
    Drain(DrainArgs),
    /// Show how streams slow down under concurrency.
    #[command(
        long_about = "Show how streams slow down under concurrency, from the metrics of a running tokenmeter"
    )]
    Curve(CurveArgs),
    /// Show the current numbers in the terminal.
    #[cfg(feature = "top")]
    #[command(
        long_about = "Show the current numbers of a running tokenmeter in the terminal: speed, latency, errors, spend. If stdout is not a terminal, they are printed once as text"
    )]
    Top(TopArgs),
    /// Report the spend from the ledger.
    #[command(long_about = "Report the spend from the ledger, exactly, with the provenance of its counts")]
    Spend(Box<SpendArgs>),
    /// Write a printable statement of a tenant's month.
    #[command(
        long_about = "Write a printable statement of what a tenant is billed in a month: an HTML page and a CSV. \
                      For a closed month, both files are always the same, byte for byte"
    )]
    Statement(StatementArgs),
    /// Hash API keys, check a tenants file, try a request on it.
    Tenants(TenantsArgs),
    /// Import, check, compare and query price files.
    #[command(subcommand)]
    Prices(PricesArgs),
    /// Manage a ledger: close, verify, back up, reprice, adjust.
    #[command(subcommand, after_help = LEDGER)]
    Ledger(LedgerArgs),
    /// Redirect connections from a server's port to tokenmeter.
    #[cfg(feature = "redirect")]
    #[command(
        long_about = "Redirect connections from a server's port to tokenmeter, by nftables rules in the current network namespace. Needs NET_ADMIN and nft"
    )]
    Redirect(RedirectArgs),
    /// Serve the admission webhook that adds the sidecar to pods.
    #[cfg(feature = "inject")]
    Inject(InjectArgs),
    /// Run a simulated server, the proxy and clients in one process.
    #[cfg(feature = "demo")]
    Demo(DemoArgs),
    /// Print the completion script of a shell.
    #[command(hide = true)]
    Completions(CompletionsArgs),
    /// Write the manual pages into an existing folder.
    #[command(hide = true)]
    Man(ManArgs),
}

/// The settings given as flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The path of the settings file.
    pub config: Option<String>,
    /// The text of each flag, by key.
    pub settings: BTreeMap<&'static str, String>,
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(settings())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let written = |key: &str| matches.get_one::<String>(key).cloned();
        Ok(Self {
            config: written("config"),
            settings: SETTINGS.iter().filter_map(|row| Some((row.key, written(row.key)?))).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Parses the command line. `--help` and `--version` are errors of clap, too, which prints them.
pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Action, clap::Error> {
    let line = CommandLine::try_parse_from(arguments).map_err(with_hint)?;
    Ok(line.action.unwrap_or(Action::Run(line.flags)))
}

/// Returns the definition of the command line, from which completions and manual pages are made.
pub(crate) fn definition() -> Command {
    CommandLine::command()
}

/// Adds a remedy for `--access-log true`: the value of a switch is part of the same argument.
fn with_hint(mut error: clap::Error) -> clap::Error {
    // Clap reads a stray word before the command's name as a command.
    let stray = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].map(|kind| error.get(kind));
    let stray = stray.into_iter().flatten().map(ToString::to_string);
    let value = { stray }.find(|word| ["true", "false"].contains(&word.as_str()));
    if let Some(value) = value {
        let hint = format!("write the value of a switch after `=`, as in --access-log={value}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

fn settings() -> impl Iterator<Item = Arg> {
    let config = Arg::new("config").long("config").value_name("FILE").help("Settings file (YAML)").long_help(format!(
        "Settings file (YAML), keys written with `_`; paths in it are relative to the working directory, not to \
         the file [env: {}]",
        variable("config")
    ));
    let by_group =
        Group::ALL.into_iter().flat_map(|group| SETTINGS.iter().filter(move |row| row.group == group));
    std::iter::once(config).chain(by_group.map(argument))
}

fn argument(setting: &'static Setting) -> Arg {
    // Clap requires a static name; the command line is built once per process.
    let flag: &'static str = setting.key.replace('_', "-").leak();
    let first = FIRST_SETTINGS.iter().find(|(key, _)| *key == setting.key);
    let argument = Arg::new(setting.key)
        .long(flag)
        .help_heading(setting.group.title())
        .help(first.map_or("", |(_, brief)| *brief))
        .long_help(help(setting))
        .hide_short_help(first.is_none());
    match setting.form {
        Form::Text(shape) => argument.value_name(shape),
        Form::Number { .. } | Form::Decimal { .. } => argument.value_name("N"),
        Form::Choice(_) => argument.value_name("NAME"),
        Form::Switch => {
            argument.value_name("BOOL").num_args(0..=1).require_equals(true).default_missing_value("true")
        }
    }
}

/// Settings that `-h` lists, each in one line.
const FIRST_SETTINGS: [(&str, &str); 8] = [
    ("upstream", "URL of the inference server"),
    ("kind", "Type of the server; by default it is detected"),
    ("listen", "Address for clients; by default 127.0.0.1:9800"),
    ("admin", "Live page and /metrics; by default 127.0.0.1:9464"),
    ("otlp_endpoint", "Collector of metrics, traces and logs"),
    ("tenants", "Tenant rules file"),
    ("prices", "Price file; `tokenmeter prices init` writes one"),
    ("ledger", "Durable rows of all exchanges, for `tokenmeter spend`"),
];

/// The end of the help of `ledger`.
const LEDGER: &str = "\
After Ctrl-C (exit code 130) the ledger is whole; the same command completes
what it began.";

/// The end of `-h`.
const MORE: &str = "All settings: --help. Example: tokenmeter run --upstream http://127.0.0.1:8000";

fn help(setting: &Setting) -> StyledStr {
    let mut notes = Vec::new();
    if let Form::Choice(names) = setting.form {
        notes.push(names.join(", "));
    }
    match (&setting.form, setting.default) {
        (Form::Number { unit, .. } | Form::Decimal { unit }, "") => notes.push(format!("in {unit}")),
        (_, "") => {}
        (Form::Number { unit, .. }, default) => notes.push(format!("default: {default} {unit}")),
        (_, default) => notes.push(format!("default: {default}")),
    }
    notes.push(format!("env: {}", setting.variable()));
    format!("{} [{}]", setting.help, notes.join("] [")).into()
}

const EXAMPLES: &str = "\
Examples:
  tokenmeter run --upstream http://127.0.0.1:8000
  tokenmeter run --upstream http://vllm:8000 --kind vllm \\
    --listen 0.0.0.0:9800 --admin 0.0.0.0:9464 --admin-hosts tokenmeter
  tokenmeter check-config --config tokenmeter.yaml --show-origin
  tokenmeter demo

Precedence: flag, environment, file, default; a key in an upstream's entry
precedes them all. A settings file for two servers:
  upstreams:
    - {name: chat, url: \"http://10.0.0.1:8000\", listen: \"127.0.0.1:9800\"}
    - {name: code, url: \"http://10.0.0.2:8080\", listen: \"127.0.0.1:9801\"}

Signals: SIGTERM or SIGINT drains and exits 0, a second one exits at once; after
`tokenmeter drain` the first one exits 0 as soon as it has drained.
Exit codes: 1 failure, 2 invalid settings.";

/// Removes the examples of commands that this build lacks.
fn examples(text: &str) -> String {
    let is_here = |line: &&str| cfg!(feature = "demo") || line.trim() != "tokenmeter demo";
    text.lines().filter(is_here).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
