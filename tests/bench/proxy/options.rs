//! The command line.

use std::path::PathBuf;

use collector::Fault;

use crate::Failure;
use crate::peers::{Binary, Proxy};
use crate::scenario::{self, Scenario};
use crate::tls::Tls;

/// The help text.
pub(crate) const HELP: &str = "\
bench-proxy [--rounds N] [--scenarios a,b] [--proxies a,b] [--tls a,b] [--tokenmeter [NAME=]PATH]… [--spin]
bench-proxy --collectors[=a,b] [--rounds N] [--tokenmeter PATH]
bench-proxy crowd [--rounds N] [--tokenmeter PATH]
bench-proxy instructions [--tokenmeter PATH] [--budget FILE] [--profiles FOLDER]
bench-proxy --ledger[=DIR] [--rounds N] [--scenarios a,b] [--tokenmeter PATH]

  --rounds N         alternating rounds, 1 to 100 (default 5)
  --scenarios a,b    of slow1000, unmetered, sat, sat4k, short, brief, lat16, lat64, memory,
                     idle, cancel (default all)
  --proxies a,b      of floor, nginx, haproxy-http, tokenmeter (default), litellm, vllm-router;
                     litellm writes frames anew, so only their texts are compared
  --tls a,b          of off, client, upstream, both: the connections that use TLS, each a table of its
                     own (default off); floor has none and is left out with it
  --tokenmeter PATH  the binary to measure (default: the one beside this one). NAME=PATH, repeated with
                     other names, compares several in the same rounds; `tokenmeter` in --proxies is all
                     of them
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
    /// The binaries of tokenmeter; at least one.
    pub(crate) binaries: Vec<Binary>,
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
        let known = || Proxy::PEERS.map(Proxy::name).into_iter().chain([TOKENMETER]);
        let default = Proxy::PEERS.into_iter().filter(|peer| peer.is_default());
        let mut names: Vec<&str> = default.map(Proxy::name).chain([TOKENMETER]).collect();
        let mut options = Self {
            rounds: 5,
            scenarios: scenario::ALL.to_vec(),
            proxies: Vec::new(),
            tls: vec![Tls::Off],
            binaries: Vec::new(),
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
                "--tokenmeter" => options.add_binary(value)?,
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
                    names = list(value, |name| known().find(|known| *known == name))?;
                }
                _ => return Err(format!("there is no {word}\n{HELP}").into()),
            }
        }
        if options.binaries.is_empty() {
            options.add_binary(&beside.to_string_lossy())?;
        }
        for name in names {
            match Proxy::PEERS.into_iter().find(|peer| peer.name() == name) {
                Some(peer) => options.proxies.push(peer),
                None => options.proxies.extend(options.binaries.iter().copied().map(Proxy::Tokenmeter)),
            }
        }
        if !(1..=100).contains(&options.rounds) {
            return Err("--rounds: 1 to 100".into());
        }
        Ok(options)
    }

    /// The only binary, as a measured proxy.
    pub(crate) fn tokenmeter(&self) -> Result<Proxy, Failure> {
        self.binary().map(Proxy::Tokenmeter)
    }

    /// The only binary.
    pub(crate) fn binary(&self) -> Result<Binary, Failure> {
        match self.binaries[..] {
            [binary] => Ok(binary),
            _ => Err("--tokenmeter: this command measures one binary".into()),
        }
    }

    /// Adds a binary, `PATH` or `NAME=PATH`.
    fn add_binary(&mut self, value: &str) -> Result<(), Failure> {
        let (name, path) =
            value.split_once('=').filter(|(name, _)| !name.contains('/')).unwrap_or((TOKENMETER, value));
        let names =
            Proxy::PEERS.map(Proxy::name).into_iter().chain(self.binaries.iter().map(|binary| binary.name));
        if name.is_empty() || names.into_iter().any(|known| known == name) {
            return Err(format!(
                "--tokenmeter {value}: several binaries need different names, as in NAME=PATH"
            )
            .into());
        }
        // The process needs them until its end.
        let keep = |text: &str| &*Box::leak(Box::<str>::from(text));
        self.binaries.push(Binary { name: keep(name), path: keep(path) });
        Ok(())
    }
}

/// The name of a binary without a name of its own.
const TOKENMETER: &str = "tokenmeter";

fn list<T>(names: &str, named: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Failure> {
    let found = names.split(',').map(|name| named(name).ok_or_else(|| format!("there is no {name}\n{HELP}")));
    Ok(found.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(words: &[&str]) -> Result<Vec<&'static str>, String> {
        let options = Options::read(words).map_err(|failure| failure.to_string())?;
        Ok(options.proxies.iter().map(|proxy| proxy.name()).collect())
    }

    #[test]
    fn several_binaries_take_the_place_of_one() {
        assert_eq!(proxies(&[]).unwrap(), ["floor", "nginx", "haproxy-http", "tokenmeter"]);
        let words = ["--proxies", "tokenmeter,nginx", "--tokenmeter", "a=/x=y", "--tokenmeter", "b=/z"];
        assert_eq!(proxies(&words).unwrap(), ["a", "b", "nginx"]);
        let options = Options::read(&words).unwrap();
        assert_eq!(options.binaries[0].path, "/x=y");
        assert!(options.tokenmeter().is_err());
        assert_eq!(Options::read(&["--tokenmeter", "/a=b"]).unwrap().binaries[0].path, "/a=b");
    }

    #[test]
    fn binaries_need_different_names() {
        for second in ["/b", "nginx=/b", "=/b"] {
            assert!(proxies(&["--tokenmeter", "/a", "--tokenmeter", second]).is_err(), "{second}");
        }
    }
}
