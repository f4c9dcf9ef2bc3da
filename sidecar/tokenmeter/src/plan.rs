//! The settings as they will run. One step turns what was written into what each part needs, and
//! it either succeeds or tells every mistake there is: no part ever sees a setting (law 13), and
//! nothing is looked at twice.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use engine::Scrape;
use relay::Kind;
use usage::Policy;

use crate::effective::Effective;
use crate::log;
use crate::loops;
use crate::machine::Machine;
use crate::mistake::{Mistake, Mistakes};
use crate::nearest;
use crate::origin::Origin;
use crate::settings::{AUTO, Entry, Form, KINDS, SCRAPES, USAGE, Value, Written, setting};
use crate::url::Url;

/// Everything the process runs by.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the data plane needs.
    pub relay: relay::Plan,
    /// How the upstreams' own metrics pages are read; its targets are in the relay's order.
    pub engine: engine::Plan,
    /// Where each upstream's listen address was written, in the relay's order.
    pub listen_origins: Vec<Origin>,
    /// The admin listener's address.
    pub admin: SocketAddr,
    /// Where it was written.
    pub admin_origin: Origin,
    /// Host names under which it may be asked.
    pub admin_hosts: Vec<String>,
    /// Models with labels of their own.
    pub max_models: usize,
    /// Records that may wait for the control plane.
    pub outbox_records: usize,
    /// Tokenizers for models whose servers count nothing.
    pub tokenizers: Vec<TokenizerFile>,
    /// What is logged, and how.
    pub log: log::Plan,
    /// The effective settings, for showing.
    pub effective: Effective,
    /// What runs, but probably not as meant.
    pub warnings: Vec<Mistake>,
}

impl Plan {
    /// Plans a run by what was written, on this machine.
    pub fn make(written: &Written, machine: &dyn Machine) -> Result<Self, Mistakes> {
        let mut reader = Reader { written, mistakes: written.mistakes.clone(), warnings: Vec::new() };
        let upstreams = reader.upstreams();
        let admin = reader.address_of("admin");
        let listeners: Vec<&Placed> =
            upstreams.iter().filter_map(|upstream| upstream.listen.as_ref()).collect();
        reader.check_distinct(&listeners, admin.as_ref());
        reader.check_loops(machine, &upstreams, admin.as_ref());
        let tokenizers = reader.tokenizers();
        let relay = relay::Plan {
            upstreams: upstreams.iter().filter_map(Wanted::planned).collect(),
            workers: match written.values.contains_key("workers") {
                true => reader.count("workers"),
                false => machine.cores(),
            },
            stall: reader.milliseconds("stall_ms"),
            tokens_max: reader.number("max_tokens_claimed"),
            connect_timeout: reader.milliseconds("connect_timeout_ms"),
            head_timeout: reader.milliseconds("head_timeout_ms"),
            pool_idle: reader.pool_idle(),
            pool_size: reader.count("pool_size"),
            drain_delay: reader.milliseconds("drain_delay_ms"),
            drain_grace: reader.milliseconds("drain_grace_ms"),
            half_close: reader.switch("half_close"),
            connections: reader.count("connections"),
            tokenized: tokenizers.iter().map(|file| file.model.clone()).collect::<HashSet<_>>().into(),
        };
        let engine = engine::Plan {
            targets: upstreams.iter().filter_map(Wanted::watched).collect(),
            every: reader.milliseconds("engine_metrics_interval_ms"),
        };
        let max_models = reader.count("max_models");
        let outbox_records = reader.count("outbox_records");
        let log = reader.log();
        let admin_hosts = reader.names("admin_hosts");
        match admin {
            Some(admin) if reader.mistakes.is_empty() => Ok(Self {
                listen_origins: upstreams
                    .iter()
                    .filter_map(|upstream| upstream.listen.as_ref().map(|listen| listen.origin.clone()))
                    .collect(),
                effective: Effective::of(written, &relay, &engine),
                relay,
                engine,
                admin: admin.address,
                admin_origin: admin.origin,
                admin_hosts,
                max_models,
                outbox_records,
                tokenizers,
                log,
                warnings: reader.warnings,
            }),
            _ => Err(Mistakes(reader.mistakes)),
        }
    }
}

/// A model's tokenizer, as named.
#[derive(Clone, Debug)]
pub struct TokenizerFile {
    /// The model, by the name that requests have.
    pub model: String,
    /// Its `tokenizer.json`, or the folder that holds it.
    pub path: PathBuf,
    /// Where it was named.
    pub origin: Origin,
}

/// An address and where it was written.
#[derive(Clone, Debug)]
struct Placed {
    address: SocketAddr,
    origin: Origin,
}

/// An upstream as far as it could be understood.
struct Wanted {
    name: String,
    url: Option<Url>,
    url_origin: Origin,
    /// None is to be found out.
    kind: Option<Kind>,
    usage: Policy,
    listen: Option<Placed>,
    scrape: Scrape,
}

impl Wanted {
    fn planned(&self) -> Option<relay::Upstream> {
        let (url, listen) = (self.url.as_ref()?, self.listen.as_ref()?);
        Some(relay::Upstream {
            name: self.name.as_str().into(),
            listen: listen.address,
            host: url.host.as_str().into(),
            port: url.port,
            prefix: url.prefix.as_str().into(),
            kind: self.kind,
            provider: self.kind.unwrap_or(Kind::Openai).name().into(),
            usage: self.usage,
        })
    }

    /// The same upstream, as long as it can be planned at all.
    fn watched(&self) -> Option<engine::Target> {
        let relay::Upstream { name, host, port, prefix, .. } = self.planned()?;
        Some(engine::Target { name, host, port, prefix, kind: self.kind, scrape: self.scrape })
    }
}

/// Reads values by key. A value that cannot be one is a mistake, and its default is read instead so
/// that the reading goes on to the next.
struct Reader<'a> {
    written: &'a Written,
    mistakes: Vec<Mistake>,
    warnings: Vec<Mistake>,
}

impl Reader<'_> {
    fn upstreams(&mut self) -> Vec<Wanted> {
        let written = self.written;
        match (written.values.get("upstream"), &written.upstreams) {
            (Some(one), Some((list, _))) if matches!(one.origin, Origin::File { .. }) => {
                let what = format!("`upstream` and `upstreams` ({list}) are both written");
                self.mistakes.push(Mistake::at(&one.origin, what, "keep one of them"));
                Vec::new()
            }
            (Some(one), list) => {
                if let Some((origin, _)) = list {
                    let what = format!("the upstreams listed here are not used: {} counts", one.origin);
                    self.warnings.push(Mistake::at(origin, what, "remove one of the two"));
                }
                vec![self.single(one)]
            }
            (None, Some((origin, entries))) if entries.is_empty() => {
                if self.mistakes.is_empty() {
                    let remedy = "write one `- url: http://HOST:PORT` for each upstream under it";
                    self.mistakes.push(Mistake::at(origin, "`upstreams` is empty", remedy));
                }
                Vec::new()
            }
            (None, Some((_, entries))) => self.listed(entries),
            (None, None) => {
                self.mistakes.push(Mistake::missing(
                    "--upstream",
                    "the inference server is not named",
                    "write --upstream http://HOST:PORT (or TOKENMETER_UPSTREAM, or `upstreams` in the file)",
                ));
                Vec::new()
            }
        }
    }

    fn single(&mut self, written: &Value) -> Wanted {
        let url = self.url(written);
        let kind = self.kind(self.written.values.get("kind"));
        let scrape = self.scrape(self.written.values.get("engine_metrics"));
        Wanted {
            name: url.as_ref().map(Url::authority).unwrap_or_default(),
            url,
            url_origin: written.origin.clone(),
            kind,
            usage: self.usage(self.written.values.get("usage")),
            listen: self.address_of("listen"),
            scrape,
        }
    }

    fn listed(&mut self, entries: &[Entry]) -> Vec<Wanted> {
        let mut wanted: Vec<Wanted> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let upstream = self.entry(index, entry);
            if !upstream.name.is_empty() && wanted.iter().any(|earlier| earlier.name == upstream.name) {
                let origin = entry.fields.get("name").map_or(&entry.origin, |name| &name.origin);
                let what = format!("two upstreams are named `{}`", upstream.name);
                self.mistakes.push(Mistake::at(origin, what, "give each a `name` of its own"));
            }
            wanted.push(upstream);
        }
        wanted
    }

    fn entry(&mut self, index: usize, entry: &Entry) -> Wanted {
        let (url, url_origin) = match entry.fields.get("url") {
            Some(written) => (self.url(written), written.origin.clone()),
            None => {
                let remedy = "add `url: http://HOST:PORT` to it";
                self.mistakes.push(Mistake::at(&entry.origin, "an upstream has no `url`", remedy));
                (None, entry.origin.clone())
            }
        };
        let listen = match (entry.fields.get("listen"), index) {
            (Some(written), _) => {
                if let (0, Some(unused)) = (index, self.written.values.get("listen")) {
                    let what =
                        format!("has no effect: the first upstream listens as {} says", written.origin);
                    self.warnings.push(Mistake::at(&unused.origin, what, "remove one of the two"));
                }
                self.address(written)
            }
            (None, 0) => self.address_of("listen"),
            (None, _) => {
                let remedy = "add `listen: ADDRESS:PORT` to it; only the first may go without";
                self.mistakes.push(Mistake::at(&entry.origin, "an upstream has no `listen`", remedy));
                None
            }
        };
        let kind = self.kind(entry.fields.get("kind").or(self.written.values.get("kind")));
        let usage = self.usage(entry.fields.get("usage").or(self.written.values.get("usage")));
        let scrape = entry.fields.get("engine_metrics").or(self.written.values.get("engine_metrics"));
        let scrape = self.scrape(scrape);
        for key in ["kind", "usage", "engine_metrics"] {
            self.note_overruled(entry, key);
        }
        let name = match entry.fields.get("name") {
            Some(written) => self.name(written),
            None => url.as_ref().map(Url::authority).unwrap_or_default(),
        };
        Wanted { name, url, url_origin, kind, usage, listen, scrape }
    }

    /// A flag or a variable does not overrule what an upstream's entry says of itself.
    fn note_overruled(&mut self, entry: &Entry, key: &'static str) {
        let (Some(own), Some(general)) = (entry.fields.get(key), self.written.values.get(key)) else {
            return;
        };
        if own.text != general.text && !matches!(general.origin, Origin::File { .. }) {
            let what = format!(
                "has no effect on the upstream whose entry says `{key}: {}` at {}",
                own.text, own.origin
            );
            self.warnings.push(Mistake::at(
                &general.origin,
                what,
                "change the entry, or remove the key there",
            ));
        }
    }

    fn url(&mut self, written: &Value) -> Option<Url> {
        match Url::parse(&written.text) {
            Ok(url) => {
                if url.prefix.ends_with("/v1") {
                    let what = "the URL ends in /v1, so a client's /v1/… will arrive as /v1/v1/…";
                    self.warnings.push(Mistake::at(&written.origin, what, "remove /v1 unless that is meant"));
                }
                Some(url)
            }
            Err(refused) => {
                self.mistakes.push(Mistake::at(&written.origin, refused.what, refused.remedy));
                None
            }
        }
    }

    fn name(&mut self, written: &Value) -> String {
        let text = &written.text;
        if text.is_empty() || text.len() > NAME_BYTES || text.chars().any(char::is_control) {
            let what = "the name is empty, too long or not printable";
            let remedy = format!("write 1 to {NAME_BYTES} bytes of printable text");
            self.mistakes.push(Mistake::at(&written.origin, what, remedy));
        }
        text.clone()
    }

    fn kind(&mut self, written: Option<&Value>) -> Option<Kind> {
        match written.map(|written| self.one_of(written, &KINDS)) {
            None | Some(AUTO) => None,
            Some(name) => Kind::from_name(name),
        }
    }

    fn scrape(&mut self, written: Option<&Value>) -> Scrape {
        let Some(written) = written else { return Scrape::Auto };
        match written.text.as_str() {
            // YAML has read an unquoted `on` or `off` as a truth value.
            "true" => Scrape::On,
            "false" => Scrape::Off,
            _ => match self.one_of(written, &SCRAPES) {
                "on" => Scrape::On,
                "off" => Scrape::Off,
                _ => Scrape::Auto,
            },
        }
    }

    fn usage(&mut self, written: Option<&Value>) -> Policy {
        let name = match written {
            Some(written) => self.one_of(written, &USAGE),
            None => setting("usage").default,
        };
        Policy::ALL.into_iter().find(|policy| policy.name() == name).unwrap_or(Policy::Inject)
    }

    fn address_of(&mut self, key: &'static str) -> Option<Placed> {
        let value = self.value(key);
        self.address(&value)
    }

    fn address(&mut self, written: &Value) -> Option<Placed> {
        let text = match written.text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => written.text.clone(),
        };
        match text.parse() {
            Ok(address) => Some(Placed { address, origin: written.origin.clone() }),
            Err(_) => {
                let what = format!("`{}` is not ADDRESS:PORT", written.text.escape_debug());
                let remedy = "write it as in 127.0.0.1:9800, or 0.0.0.0:9800 for every interface";
                self.mistakes.push(Mistake::at(&written.origin, what, remedy));
                None
            }
        }
    }

    fn check_distinct(&mut self, listeners: &[&Placed], admin: Option<&Placed>) {
        let all: Vec<&Placed> = listeners.iter().copied().chain(admin).collect();
        for (index, later) in all.iter().enumerate() {
            let Some(earlier) = all[..index].iter().find(|earlier| clash(earlier.address, later.address))
            else {
                continue;
            };
            // A default has no place of its own to change.
            let origin = if later.origin == Origin::Default { &earlier.origin } else { &later.origin };
            let what = format!("{} and {} take the same port", earlier.address, later.address);
            self.mistakes.push(Mistake::at(origin, what, "give each listener a port of its own"));
        }
    }

    fn check_loops(&mut self, machine: &dyn Machine, upstreams: &[Wanted], admin: Option<&Placed>) {
        let placed = upstreams.iter().filter_map(|upstream| upstream.listen.as_ref()).chain(admin);
        let own: Vec<SocketAddr> = placed.map(|placed| placed.address).collect();
        for upstream in upstreams {
            let Some(url) = &upstream.url else { continue };
            if let Some(reached) = loops::reaches(machine, &url.host, url.port, own.iter()) {
                self.mistakes.push(self_reference(&upstream.url_origin, url, reached));
            }
        }
    }

    fn pool_idle(&mut self) -> Duration {
        let idle = self.milliseconds("pool_idle_ms");
        if idle >= UVICORN_KEEP_ALIVE {
            let what = "uvicorn, which vLLM and SGLang run on, closes idle connections after 5000 ms, \
                        so a request may meet a connection that is just closing";
            let origin = self.value("pool_idle_ms").origin;
            self.warnings.push(Mistake::at(&origin, what, "stay below 5000"));
        }
        idle
    }

    fn log(&mut self) -> log::Plan {
        let (level, format) = (self.value("log_level"), self.value("log_format"));
        log::Plan {
            level: log::Level::named(self.one_of_setting("log_level", &level)),
            format: log::Format::named(self.one_of_setting("log_format", &format)),
            access: self.switch("access_log"),
        }
    }

    fn names(&mut self, key: &'static str) -> Vec<String> {
        let value = self.value(key);
        let names = value.text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        let is_name = |name: &String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        if let Some(odd) = names.iter().find(|name| !is_name(name)) {
            let what = format!("`{}` is not a host name", odd.escape_debug());
            self.mistakes.push(Mistake::at(&value.origin, what, "write names without a scheme or a port"));
        }
        names
    }

    /// `MODEL=PATH`, separated by commas.
    fn tokenizers(&mut self) -> Vec<TokenizerFile> {
        let Value { text, origin } = self.value("tokenizers");
        let mut files = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some((model, path)) if !model.is_empty() && !path.is_empty() => files.push(TokenizerFile {
                    model: model.to_owned(),
                    path: path.into(),
                    origin: origin.clone(),
                }),
                _ => {
                    let what = format!("`{}` is not MODEL=PATH", pair.escape_debug());
                    let remedy = "write the model's name and its tokenizer.json, as in qwen3-8b=/models/qwen3-8b/tokenizer.json";
                    self.mistakes.push(Mistake::at(&origin, what, remedy));
                }
            }
        }
        if !files.is_empty() && !cfg!(feature = "tokenizer") {
            let what = "this tokenmeter was built without tokenizers";
            self.mistakes.push(Mistake::at(&origin, what, "build it with the feature `tokenizer`"));
        }
        files
    }

    fn milliseconds(&mut self, key: &'static str) -> Duration {
        Duration::from_millis(self.number(key))
    }

    fn count(&mut self, key: &'static str) -> usize {
        usize::try_from(self.number(key)).unwrap_or(usize::MAX)
    }

    fn number(&mut self, key: &'static str) -> u64 {
        let Form::Number { unit, min, max } = setting(key).form else {
            unreachable!("{key} is a number in the table")
        };
        let value = self.value(key);
        match value.text.parse() {
            Ok(number) if (min..=max).contains(&number) => number,
            _ => {
                let what = format!("`{}` is not a number of {unit}", value.text.escape_debug());
                let remedy = format!("write a whole number from {min} to {max}");
                self.mistakes.push(Mistake::at(&value.origin, what, remedy));
                min
            }
        }
    }

    fn switch(&mut self, key: &'static str) -> bool {
        let value = self.value(key);
        match value.text.as_str() {
            "true" => true,
            "false" => false,
            other => {
                let what = format!("`{}` is neither true nor false", other.escape_debug());
                self.mistakes.push(Mistake::at(&value.origin, what, "write true or false"));
                false
            }
        }
    }

    fn one_of_setting(&mut self, key: &'static str, value: &Value) -> &'static str {
        let Form::Choice(known) = setting(key).form else { unreachable!("{key} is a choice in the table") };
        self.one_of(value, known)
    }

    fn one_of(&mut self, value: &Value, known: &'static [&'static str]) -> &'static str {
        if let Some(found) = known.iter().find(|known| **known == value.text) {
            return found;
        }
        let what = format!("`{}` is not one of {}", value.text.escape_debug(), known.join(", "));
        let remedy = match nearest::word(&value.text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write one of these".to_owned(),
        };
        self.mistakes.push(Mistake::at(&value.origin, what, remedy));
        known[0]
    }

    /// What counts for a key: what was written, or its default.
    fn value(&self, key: &'static str) -> Value {
        self.written
            .values
            .get(key)
            .cloned()
            .unwrap_or_else(|| Value { text: setting(key).default.to_owned(), origin: Origin::Default })
    }
}

/// The mistake of an upstream that is one of our own listeners.
fn self_reference(origin: &Origin, url: &Url, reached: SocketAddr) -> Mistake {
    Mistake::at(
        origin,
        format!("{url} is tokenmeter's own listener {reached}, so a request would go round for ever"),
        "name the inference server's own address, or listen on another port",
    )
}

fn clash(one: SocketAddr, other: SocketAddr) -> bool {
    let any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (any || one.ip() == other.ip())
}

/// Bytes of an upstream's name: what a label may have.
const NAME_BYTES: usize = 128;

/// Uvicorn's default `timeout_keep_alive`.
const UVICORN_KEEP_ALIVE: Duration = Duration::from_secs(5);

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
