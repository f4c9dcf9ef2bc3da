//! The command line, made of the table of settings: each row is a flag of `run` and of
//! `check-config`, with its variable, unit and default in the help. `run` is what happens if no
//! command is named.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::LazyLock;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::command::{ledger, prices, spend, tenants};
use crate::curve::{self, Wish};
use crate::settings::{Form, SETTINGS, Setting, variable};

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Run the proxy.
    Run(Flags),
    /// Show the effective settings, or what is wrong with them.
    CheckConfig {
        /// The settings to check.
        flags: Flags,
        /// Whether to say where each was written.
        show_origin: bool,
    },
    /// Show the degradation curve of a running proxy.
    Curve(Wish),
    /// Do something to a ledger by hand.
    Ledger(ledger::Wish),
    /// Show what each tenant spent.
    Spend(Box<spend::Wish>),
    /// Hash API keys, or ask a tenants file.
    Tenants(tenants::Wish),
    /// Do something with price files.
    Prices(prices::Wish),
    /// Run the demonstration.
    Demo {
        /// How long; until it is interrupted if not said.
        seconds: Option<u64>,
        /// Where the proxy listens, if said.
        listen: Option<String>,
        /// Where the page is, if said.
        admin: Option<String>,
    },
}

/// Settings written as flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The settings file, if one is named.
    pub config: Option<String>,
    /// By key.
    pub settings: BTreeMap<&'static str, String>,
}

/// Reads the command line. The error is clap's, and knows how to print itself: it is also how
/// `--help` and `--version` come out.
pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Asked, clap::Error> {
    let matches = command().try_get_matches_from(arguments).map_err(with_hint)?;
    Ok(match matches.subcommand() {
        Some(("check-config", matches)) => {
            Asked::CheckConfig { flags: flags(matches), show_origin: matches.get_flag("show-origin") }
        }
        Some(("curve", matches)) => Asked::Curve(Wish::of(matches)),
        Some(("ledger", matches)) => Asked::Ledger(ledger::Wish::of(matches)),
        Some(("spend", matches)) => Asked::Spend(Box::new(spend::Wish::of(matches))),
        Some(("tenants", matches)) => Asked::Tenants(tenants::Wish::of(matches)),
        Some(("prices", matches)) => Asked::Prices(prices::Wish::of(matches)),
        Some(("demo", matches)) => Asked::Demo {
            seconds: matches.get_one("seconds").copied(),
            listen: matches.get_one("listen").cloned(),
            admin: matches.get_one("admin").cloned(),
        },
        Some((_, matches)) => Asked::Run(flags(matches)),
        None => Asked::Run(flags(&matches)),
    })
}

/// Adds the remedy for `--access-log true`: the value of a switch is part of the same argument.
fn with_hint(mut error: clap::Error) -> clap::Error {
    // Before a subcommand's name a stray word is taken for one.
    let stray = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].map(|kind| error.get(kind));
    let stray = stray.into_iter().flatten().map(ToString::to_string);
    let value = { stray }.find(|word| ["true", "false"].contains(&word.as_str()));
    if let Some(value) = value {
        let hint = format!("write the value of a switch behind `=`, as in --access-log={value}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

/// The version, with the commit where the build was told it by `TOKENMETER_COMMIT`.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| match option_env!("TOKENMETER_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    });
    &VERSION
}

fn command() -> Command {
    Command::new("tokenmeter")
        .version(version())
        .about(
            "An electricity meter for LLM inference: a transparent proxy that counts tokens and times them",
        )
        .after_help(EXAMPLES)
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .args(settings())
        .subcommand(
            Command::new("run")
                .about("Run the proxy (what happens if no command is named)")
                .after_help(EXAMPLES)
                .args(settings()),
        )
        .subcommand(
            Command::new("check-config")
                .about("Print the settings that would run; exit 2 and all mistakes if they would not")
                .args(settings())
                .arg(
                    Arg::new("show-origin").long("show-origin").action(ArgAction::SetTrue).help(
                        "Say where each setting was written: flag, variable, file and line, or default",
                    ),
                ),
        )
        .subcommand(curve::command())
        .subcommand(spend::command())
        .subcommand(tenants::command())
        .subcommand(prices::command())
        .subcommand(ledger::command())
        .subcommand(demo())
}

fn demo() -> Command {
    Command::new("demo")
        .about("Show it at work: a simulated server, the proxy and clients, in one process")
        .after_help(DEMO_EXAMPLES)
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .value_name("N")
                .value_parser(clap::value_parser!(u64).range(1..=86_400))
                .help("End by itself after so many seconds; without it, Ctrl-C ends it"),
        )
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDR")
                .help("Where the proxy listens [default: 127.0.0.1:9800, or a free port if that is taken]"),
        )
        .arg(Arg::new("admin").long("admin").value_name("ADDR").help(
            "Where the live page and /metrics are [default: 127.0.0.1:9464, or a free port if that is taken]",
        ))
}

fn settings() -> impl Iterator<Item = Arg> {
    let config = Arg::new("config").long("config").value_name("FILE").help(format!(
        "A YAML file with the same settings, keys written with `_`; paths in it are relative to the folder \
         tokenmeter is started in, as those of flags are, not to the file [env: {}]",
        variable("config")
    ));
    std::iter::once(config).chain(SETTINGS.iter().map(argument))
}

fn argument(setting: &'static Setting) -> Arg {
    // Clap wants names that live as long as the process; this is built once.
    let flag: &'static str = setting.key.replace('_', "-").leak();
    let argument = Arg::new(setting.key).long(flag).help(help(setting));
    match setting.form {
        Form::Text(shape) => argument.value_name(shape),
        Form::Number { .. } | Form::Decimal { .. } => argument.value_name("N"),
        Form::Choice(_) => argument.value_name("NAME"),
        Form::Switch => {
            argument.value_name("BOOL").num_args(0..=1).require_equals(true).default_missing_value("true")
        }
    }
}

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

fn flags(matches: &ArgMatches) -> Flags {
    let written = |key: &str| matches.get_one::<String>(key).cloned();
    Flags {
        config: written("config"),
        settings: SETTINGS.iter().filter_map(|row| Some((row.key, written(row.key)?))).collect(),
    }
}

const EXAMPLES: &str = "\
Examples:
  tokenmeter run --upstream http://127.0.0.1:8000
  tokenmeter run --upstream http://vllm:8000 --kind vllm \\
    --listen 0.0.0.0:9800 --admin 0.0.0.0:9464 --admin-hosts tokenmeter
  tokenmeter check-config --config tokenmeter.yaml --show-origin
  tokenmeter demo

A setting counts where it is found first: flag, environment, file, default; what
an upstream's entry says of itself stands. A file for two servers:
  upstreams:
    - {name: chat, url: \"http://10.0.0.1:8000\", listen: \"127.0.0.1:9800\"}
    - {name: code, url: \"http://10.0.0.2:8080\", listen: \"127.0.0.1:9801\"}

Signals: SIGTERM or SIGINT drains and exits 0, a second one exits at once.
Exit codes: 1 could not run, 2 wrong settings.";

const DEMO_EXAMPLES: &str = "\
Examples:
  tokenmeter demo
  tokenmeter demo --seconds 60 --listen 127.0.0.1:9800 --admin 127.0.0.1:9464";

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
