//! The command line.

use std::path::PathBuf;

use collector::Fault;

use crate::Failure;
use crate::peers::Proxy;
use crate::scenario::{self, Scenario};
use crate::tls::Tls;

/// The help text.
pub(crate) const HELP: &str = "\
bench-proxy [--rounds N] [--scenarios a,b] [--proxies a,b] [--tls a,b] [--tokenmeter PATH] [--spin]
bench-proxy --collectors[=a,b] [--rounds N] [--tokenmeter PATH]
bench-proxy crowd [--rounds N] [--tokenmeter PATH]
bench-proxy instructions [--tokenmeter PATH] [--budget FILE] [--profiles FOLDER]
bench-proxy --ledger[=DIR] [--rounds N] [--scenarios a,b] [--tokenmeter PATH]

  --rounds N         alternating rounds, 1 to 100 (default 5)
  --scenarios a,b    of slow1000, sat, sat4k, short, brief, lat16, lat64, memory, idle,
                     cancel (default all)
  --proxies a,b      of floor, nginx, haproxy-http, tokenmeter (default), litellm, vllm-router;
                     litellm writes frames anew, so only their texts are compared
  --tls a,b          of off, client, upstream, both: the connections that use TLS, each a table of its
                     own (default off); floor has none and is left out with it
  --tokenmeter PATH  the binary to measure (default: the one beside this one)
  --collectors       instead: what telemetry costs the traffic when its collector misbehaves
  --ledger[=DIR]     instead: what tenants, prices and a ledger in DIR (default here) cost the
                     traffic, by the scenarios short, brief, lat16 and lat64
  crowd              instead: the times of one client while another one takes all that it can get
  instructions       instead: instructions per frame and per request, counted by valgrind on any
                     machine; with --budget it fails if one exceeds the file's by more than 3 %;
                     --profiles keeps callgrind's files in a folder, for callgrind_annotate
  --spin             keep both cores awake at idle priority: read only p50 then
Tables go to stdout, progress to stderr. It needs two cores, taskset, setpriv and chrt.";

/// The parsed command line.
pub(crate) struct Options {
    /// Number of rounds.
    pub(crate) rounds: u32,
    /// The scenarios.
    pub(crate) scenarios: Vec<Scenario>,
    /// The proxies.
    pub(crate) proxies: Vec<Proxy>,
    /// The connections that use TLS.
    pub(crate) tls: Vec<Tls>,
    /// The path of tokenmeter.
    pub(crate) tokenmeter: PathBuf,
    /// True to measure misbehaving collectors instead.
    pub(crate) collectors: Vec<Fault>,
    /// The folder of a ledger, to measure its cost instead.
    pub(crate) ledger: Option<PathBuf>,
    /// The file of the budget of instructions.
    pub(crate) budget: Option<PathBuf>,
    /// The folder that keeps callgrind's files.
    pub(crate) profiles: Option<PathBuf>,
    /// True to keep cores awake.
    pub(crate) spin: bool,
}

impl Options {
    /// Reads the command line.
    pub(crate) fn read(words: &[&str]) -> Result<Self, Failure> {
        let beside = std::env::current_exe()?.with_file_name("tokenmeter");
        let mut options = Self {
            rounds: 5,
            scenarios: scenario::ALL.to_vec(),
            proxies: Proxy::DEFAULT.to_vec(),
            tls: vec![Tls::Off],
            tokenmeter: beside,
            collectors: Vec::new(),
            ledger: None,
            budget: None,
            profiles: None,
            spin: false,
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if word == "--spin" {
                options.spin = true;
                continue;
            }
            if word == "--collectors" {
                options.collectors = Fault::ALL.to_vec();
                continue;
            }
            if word == "--ledger" {
                options.ledger = Some(PathBuf::from("."));
                continue;
            }
            if let Some(folder) = word.strip_prefix("--ledger=") {
                options.ledger = Some(PathBuf::from(folder));
                continue;
            }
            if let Some(names) = word.strip_prefix("--collectors=") {
                options.collectors =
                    list(names, |name| Fault::ALL.into_iter().find(|each| each.name() == name))?;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{word}: a value must follow\n{HELP}"))?;
            match word {
                "--rounds" => options.rounds = value.parse()?,
                "--tokenmeter" => options.tokenmeter = PathBuf::from(value),
                "--budget" => options.budget = Some(PathBuf::from(value)),
                "--profiles" => options.profiles = Some(PathBuf::from(value)),
                "--scenarios" => {
                    let named = |name: &str| scenario::ALL.into_iter().find(|each| each.name == name);
                    options.scenarios = list(value, named)?;
                }
                "--tls" => {
                    options.tls = list(value, |name| Tls::ALL.into_iter().find(|each| each.name() == name))?;
                }
                "--proxies" => {
                    let named = |name: &str| Proxy::ALL.into_iter().find(|each| each.name() == name);
                    options.proxies = list(value, named)?;
                }
                _ => return Err(format!("there is no {word}\n{HELP}").into()),
            }
        }
        if !(1..=100).contains(&options.rounds) {
            return Err("--rounds: 1 to 100".into());
        }
        Ok(options)
    }
}

fn list<T>(names: &str, named: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Failure> {
    let found = names.split(',').map(|name| named(name).ok_or_else(|| format!("there is no {name}\n{HELP}")));
    Ok(found.collect::<Result<_, _>>()?)
}
