//! Plans the upstreams and their listeners.

use std::net::SocketAddr;
use std::sync::Arc;

use connect::{Address, Target};
use gpu::Gpus;
use meter::Role;
use origin::{Diagnostic, Origin};
use relay::{Listen, ListenAddress, RoleSource, ServerKind, UsagePolicy};
use scrape::Fetcher;
use servers::Scrape;
use tenant::Nets;

use super::certificates::{Certificate, LISTEN_TLS};
use super::hosted::Hosted;
use super::tls::TlsSettings;
use super::values::Reader;
use crate::plan::loops;
use crate::plan::machine::Machine;
use crate::plan::url::{Url, socket_path};
use crate::settings::{AUTO, Entry, KINDS, OFF, ON, ROLES, SCRAPES, UPSTREAMS, USAGE, Value, setting};

/// A listener: its address, and the setting that names it.
#[derive(Clone, Debug)]
pub(super) struct ListenerDraft {
    pub(super) address: ListenAddress,
    pub(super) origin: Origin,
    pub(super) key: &'static str,
}

impl ListenerDraft {
    /// Returns true if it is a listener with TLS.
    fn is_tls(&self) -> bool {
        self.key == LISTEN_TLS.address
    }

    /// The address, unless it is that of a Unix socket.
    pub(super) fn tcp(&self) -> Option<SocketAddr> {
        self.address.tcp()
    }
}

/// An upstream whose values are parsed; `None` where a value is invalid.
pub(super) struct UpstreamDraft {
    name: String,
    url: Option<Url>,
    url_origin: Origin,
    target: Option<Target>,
    /// `None` if it is to be detected.
    kind: Option<ServerKind>,
    usage: UsagePolicy,
    role: RoleSource,
    pub(super) listeners: Vec<ListenerDraft>,
    /// The certificate of the listener with TLS, the last one.
    pub(super) certificate: Option<Certificate>,
    /// True if connections to its listeners begin with a header of the PROXY protocol.
    proxy_protocol: bool,
    scrape: Scrape,
    /// The GPUs it uses; `None` if none are configured.
    gpus: Option<Gpus>,
}

impl UpstreamDraft {
    pub(super) fn for_relay(&self) -> Option<relay::Upstream> {
        let url = self.url.as_ref()?;
        let hosted = url.host().and_then(Hosted::of);
        let kind = self.kind.or(hosted.map(|hosted| hosted.kind));
        let provider = hosted.map_or(kind.unwrap_or(ServerKind::Openai).provider(), |hosted| hosted.provider);
        let usage = match self.usage {
            // No hosted provider has running counts, and OpenAI rejects requests for them.
            UsagePolicy::Continuous if hosted.is_some() => UsagePolicy::Inject,
            usage => usage,
        };
        let listen = self.listeners.iter().map(|listener| Listen {
            address: listener.address.clone(),
            tls: self.certificate.as_ref().filter(|_| listener.is_tls()).map(|of| Arc::clone(&of.tls)),
            proxy_protocol: self.proxy_protocol,
        });
        let target = self.target.clone()?;
        Some(relay::Upstream {
            name: self.name.as_str().into(),
            listen: listen.collect(),
            target,
            authority: (hosted.is_some() || url.has_named_tls()).then(|| url.host_field().into()),
            prefix: url.prefix.as_str().into(),
            kind,
            provider: provider.into(),
            usage,
            role: self.role,
        })
    }

    /// Returns the upstream's GPUs if the upstream is valid.
    pub(super) fn for_gpu(&self) -> Option<gpu::Upstream> {
        let relay::Upstream { name, .. } = self.for_relay()?;
        Some(gpu::Upstream { name, gpus: self.gpus.clone() })
    }

    /// Returns the scrape target if the upstream is valid.
    pub(super) fn for_servers(&self) -> Option<servers::Target> {
        let relay::Upstream { name, target, prefix, kind, .. } = self.for_relay()?;
        let fetcher = Fetcher { target, prefix };
        Some(servers::Target { name, fetcher, kind, scrape: self.scrape })
    }
}

impl Reader<'_> {
    pub(super) fn upstreams(&mut self, machine: &dyn Machine) -> Vec<UpstreamDraft> {
        let written = self.written;
        match (written.values.get("upstream"), &written.upstreams) {
            (Some(one), Some((list, _))) if matches!(one.origin, Origin::File { .. }) => {
                let problem = format!("`upstream` and `upstreams` ({list}) are both set");
                self.errors.push(Diagnostic::at(&one.origin, problem, "keep one of them"));
                Vec::new()
            }
            (Some(one), list) => {
                if let Some((origin, _)) = list {
                    let problem = format!("the upstreams listed here are not used: {} applies", one.origin);
                    self.warnings.push(Diagnostic::at(origin, problem, "remove one of the two"));
                }
                vec![self.single(machine, one)]
            }
            (None, Some((origin, entries))) if entries.is_empty() => {
                if self.errors.is_empty() {
                    self.errors.push(Diagnostic::at(origin, "`upstreams` is empty", UPSTREAMS.remedy()));
                }
                Vec::new()
            }
            (None, Some((list, entries))) => {
                self.check_single_tls(list);
                self.listed(machine, entries)
            }
            (None, None) if written.file_unread => Vec::new(),
            (None, None) => {
                self.errors.push(Diagnostic::missing(
                    "--upstream",
                    "the inference server is not named",
                    "write --upstream http://HOST:PORT (or TOKENMETER_UPSTREAM, or `upstreams` in the file)",
                ));
                Vec::new()
            }
        }
    }

    fn single(&mut self, machine: &dyn Machine, one: &Value) -> UpstreamDraft {
        let url = self.url(one);
        let tls = TlsSettings::of_single(self.written);
        let target = url.as_ref().and_then(|url| {
            let proxy = self.proxy(machine, url, None);
            self.upstream_target((url, &one.origin), tls, proxy)
        });
        let kind = self.kind(self.written.values.get("kind"));
        let scrape = self.scrape(self.written.values.get("engine_metrics"));
        let written = self.written;
        let get = |key: &'static str| written.values.get(key).cloned();
        let (listeners, certificate) = self.listeners(get("listen"), true, &get);
        UpstreamDraft {
            name: url.as_ref().map(default_name).unwrap_or_default(),
            url,
            url_origin: one.origin.clone(),
            target,
            kind,
            usage: self.usage(self.written.values.get("usage")),
            role: self.role(self.written.values.get("role")),
            listeners,
            certificate,
            proxy_protocol: self.switch("proxy_protocol"),
            scrape,
            gpus: self.written.values.get("gpus").map(|written| Gpus::parse(&written.text)),
        }
    }

    fn listed(&mut self, machine: &dyn Machine, entries: &[Entry]) -> Vec<UpstreamDraft> {
        let mut drafts: Vec<UpstreamDraft> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let upstream = self.entry(machine, index, entry);
            if !upstream.name.is_empty() && drafts.iter().any(|earlier| earlier.name == upstream.name) {
                let origin = entry.fields.get("name").map_or(&entry.origin, |name| &name.origin);
                let problem = format!("two upstreams are named `{}`", upstream.name);
                self.errors.push(Diagnostic::at(origin, problem, "give each a `name` of its own"));
            }
            drafts.push(upstream);
        }
        drafts
    }

    fn entry(&mut self, machine: &dyn Machine, index: usize, entry: &Entry) -> UpstreamDraft {
        let (url, url_origin) = match entry.fields.get("url") {
            Some(written) => (self.url(written), written.origin.clone()),
            None => {
                let remedy = "add `url: http://HOST:PORT` to it";
                self.errors.push(Diagnostic::at(&entry.origin, "an upstream has no `url`", remedy));
                (None, entry.origin.clone())
            }
        };
        let tls = TlsSettings::of_entry(entry);
        let target = url.as_ref().and_then(|url| {
            let proxy = self.proxy(machine, url, entry.fields.get("proxy"));
            self.upstream_target((url, &url_origin), tls, proxy)
        });
        let written = self.written;
        let own = |key: &str| entry.fields.get(key).cloned();
        for key in ["listen", "listen_tls"] {
            if let (0, Some(own), Some(unused)) = (index, own(key), written.values.get(key)) {
                let problem =
                    format!("has no effect: the first upstream has a {key} address at {}", own.origin);
                self.warnings.push(Diagnostic::at(&unused.origin, problem, "remove one of the two"));
            }
        }
        // The first upstream has the addresses that the settings name, and the default one.
        let general = |key: &str| written.values.get(key).cloned();
        let of_first = |key: &str| own(key).or_else(|| general(key).filter(|_| index == 0));
        let tls = |key: &'static str| match key {
            "listen_tls" => of_first(key),
            _ => own(key).or_else(|| general(key)),
        };
        let (listeners, certificate) = self.listeners(of_first("listen"), index == 0, &tls);
        if listeners.is_empty() && index > 0 && own("listen").is_none() && own("listen_tls").is_none() {
            let remedy = "add `listen: ADDRESS:PORT` to it; only the first has a default";
            self.errors.push(Diagnostic::at(&entry.origin, "an upstream has no `listen`", remedy));
        }
        let proxy_protocol = match entry.fields.get("proxy_protocol") {
            Some(own) => self.truth(own),
            None => self.switch("proxy_protocol"),
        };
        let kind = self.kind(entry.fields.get("kind").or(self.written.values.get("kind")));
        let usage = self.usage(entry.fields.get("usage").or(self.written.values.get("usage")));
        let role = self.role(entry.fields.get("role").or(self.written.values.get("role")));
        let scrape = entry.fields.get("engine_metrics").or(self.written.values.get("engine_metrics"));
        let scrape = self.scrape(scrape);
        let gpus = entry.fields.get("gpus").or(self.written.values.get("gpus"));
        let gpus = gpus.map(|written| Gpus::parse(&written.text));
        for key in ["kind", "usage", "role", "proxy_protocol", "engine_metrics", "gpus"] {
            self.check_overridden(entry, key);
        }
        let name = match entry.fields.get("name") {
            Some(written) => self.name(written),
            None => url.as_ref().map(default_name).unwrap_or_default(),
        };
        UpstreamDraft {
            name,
            url,
            url_origin,
            target,
            kind,
            usage,
            role,
            listeners,
            certificate,
            proxy_protocol,
            scrape,
            gpus,
        }
    }

    /// Reports upstreams that expect the header of the PROXY protocol while no peer may send it: every connection would
    /// be closed.
    pub(super) fn check_proxy_protocol(&mut self, upstreams: &[UpstreamDraft], trusted: &Nets) {
        let expects = upstreams.iter().filter(|upstream| upstream.proxy_protocol && trusted.is_empty());
        for upstream in expects {
            let problem = "`proxy_protocol` is set, and no peer is trusted to send the header";
            let remedy = "list the load balancer under `trusted_peers` of the tenants file";
            self.errors.push(Diagnostic::at(&upstream.url_origin, problem, remedy));
        }
    }

    /// Warns of a flag or a variable that an upstream's entry overrides.
    fn check_overridden(&mut self, entry: &Entry, key: &'static str) {
        let (Some(own), Some(general)) = (entry.fields.get(key), self.written.values.get(key)) else {
            return;
        };
        if own.text != general.text && !matches!(general.origin, Origin::File { .. }) {
            let problem = format!(
                "has no effect on the upstream whose entry has `{key}: {}` at {}",
                own.text, own.origin
            );
            self.warnings.push(Diagnostic::at(
                &general.origin,
                problem,
                "change the entry, or remove the key there",
            ));
        }
    }

    fn url(&mut self, written: &Value) -> Option<Url> {
        match Url::parse(&written.text) {
            Ok(url) => {
                if url.prefix.ends_with("/v1") {
                    let problem = "the URL ends in /v1, so a client's /v1/… reaches the upstream as /v1/v1/…";
                    self.warnings.push(Diagnostic::at(
                        &written.origin,
                        problem,
                        "remove /v1 unless that is intended",
                    ));
                }
                Some(url)
            }
            Err(refused) => {
                self.errors.push(Diagnostic::at(&written.origin, refused.problem, refused.remedy));
                None
            }
        }
    }

    pub(super) fn name(&mut self, written: &Value) -> String {
        let text = &written.text;
        if text.is_empty() || text.len() > NAME_MAX_BYTES || text.chars().any(char::is_control) {
            let problem = "the name is empty, too long or not printable";
            let remedy = format!("write 1 to {NAME_MAX_BYTES} bytes of printable text");
            self.errors.push(Diagnostic::at(&written.origin, problem, remedy));
        }
        text.clone()
    }

    fn kind(&mut self, written: Option<&Value>) -> Option<ServerKind> {
        match written.map(|written| self.one_of(written, &KINDS)) {
            None | Some(AUTO) => None,
            Some(name) => ServerKind::from_name(name),
        }
    }

    fn scrape(&mut self, written: Option<&Value>) -> Scrape {
        match written.map(|written| self.one_of(written, &SCRAPES)) {
            Some(ON) => Scrape::On,
            Some(OFF) => Scrape::Off,
            _ => Scrape::Auto,
        }
    }

    fn usage(&mut self, written: Option<&Value>) -> UsagePolicy {
        let Some(written) = written else { return self.default_usage() };
        let name = self.one_of(written, &USAGE);
        let policy = UsagePolicy::ALL.into_iter().find(|policy| policy.name() == name).unwrap_or_default();
        self.check_usage(written, policy);
        policy
    }

    fn role(&mut self, written: Option<&Value>) -> RoleSource {
        let name = match written {
            Some(written) => self.one_of(written, &ROLES),
            None => setting("role").default,
        };
        match Role::ALL.into_iter().find(|role| role.name() == name) {
            Some(role) => RoleSource::Fixed(role),
            None => RoleSource::Body,
        }
    }

    /// Plans the listeners of one upstream. `has_default`: without an address, it has that of the setting's default.
    fn listeners(
        &mut self,
        listen: Option<Value>,
        has_default: bool,
        tls: &dyn Fn(&'static str) -> Option<Value>,
    ) -> (Vec<ListenerDraft>, Option<Certificate>) {
        let with_tls = self.tls_listener(&LISTEN_TLS, tls);
        let is_default = has_default && with_tls.is_none();
        let listen = listen.or_else(|| is_default.then(|| self.value("listen")));
        let clear = listen.and_then(|listen| self.address(&listen));
        let (with_tls, certificate) = with_tls.unzip();
        (clear.into_iter().chain(with_tls).collect(), certificate.flatten())
    }

    /// Parses the address that a setting names.
    pub(super) fn address_of(&mut self, key: &'static str) -> Option<ListenerDraft> {
        let value = self.value(key);
        self.tcp_address(&value, key)
    }

    fn address(&mut self, written: &Value) -> Option<ListenerDraft> {
        let Some(path) = written.text.strip_prefix("unix:") else {
            return self.tcp_address(written, "listen");
        };
        let path = match socket_path(path) {
            Ok(path) => path,
            Err(refused) => {
                self.errors.push(Diagnostic::at(&written.origin, refused.problem, refused.remedy));
                return None;
            }
        };
        let address = ListenAddress::Unix { path, mode: self.listen_mode()? };
        Some(ListenerDraft { address, origin: written.origin.clone(), key: "listen" })
    }

    fn listen_mode(&mut self) -> Option<u32> {
        let value = self.value("listen_mode");
        let mode = u32::from_str_radix(&value.text, 8).ok().filter(|mode| *mode <= 0o777);
        if mode.is_none() {
            let problem = format!("`{}` is not a mode", value.text.escape_debug());
            self.errors.push(Diagnostic::at(&value.origin, problem, "write octal digits, as in \"0660\""));
        }
        mode
    }

    pub(super) fn tcp_address(&mut self, written: &Value, key: &'static str) -> Option<ListenerDraft> {
        let text = match written.text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => written.text.clone(),
        };
        match text.parse() {
            Ok(address) => {
                let address = ListenAddress::Tcp(address);
                Some(ListenerDraft { address, origin: written.origin.clone(), key })
            }
            Err(_) => {
                let problem = format!("`{}` is not ADDRESS:PORT", written.text.escape_debug());
                let remedy = "write it as in 127.0.0.1:9800, or 0.0.0.0:9800 for every interface";
                self.errors.push(Diagnostic::at(&written.origin, problem, remedy));
                None
            }
        }
    }

    pub(super) fn check_distinct(&mut self, all: &[&ListenerDraft]) {
        for (index, later) in all.iter().enumerate() {
            let Some(earlier) = all[..index].iter().find(|earlier| clash(&earlier.address, &later.address))
            else {
                continue;
            };
            // A default has no place that the operator can change.
            let origin = if later.origin == Origin::Default { &earlier.origin } else { &later.origin };
            let (problem, remedy) = match later.address {
                ListenAddress::Tcp(_) => ("use the same port", "give each listener a port of its own"),
                ListenAddress::Unix { .. } => ("are the same", "give each listener a path of its own"),
            };
            let problem = format!("{} and {} {problem}", earlier.address, later.address);
            self.errors.push(Diagnostic::at(origin, problem, remedy));
        }
    }

    pub(super) fn check_loops(
        &mut self,
        machine: &dyn Machine,
        upstreams: &[UpstreamDraft],
        listeners: &[&ListenerDraft],
    ) {
        let own: Vec<SocketAddr> = listeners.iter().filter_map(|listener| listener.tcp()).collect();
        for upstream in upstreams {
            let Some(url) = &upstream.url else { continue };
            if let Some(reached) = loops::reaches(machine, &url.address, own.iter()) {
                self.errors.push(self_reference(&upstream.url_origin, url, reached));
            }
        }
    }
}

/// Returns the name of an upstream without one: `HOST:PORT`, or the path of its socket.
fn default_name(url: &Url) -> String {
    match &url.address {
        address @ Address::Host { .. } => address.authority(),
        address @ Address::Unix(_) => address.name().to_string(),
    }
}

/// Returns the error of an upstream that is one of the process' own listeners.
fn self_reference(origin: &Origin, url: &Url, reached: SocketAddr) -> Diagnostic {
    Diagnostic::at(
        origin,
        format!("{url} is tokenmeter's own listener {reached}, so a request would loop forever"),
        "name the inference server's own address, or listen on another port",
    )
}

fn clash(one: &ListenAddress, other: &ListenAddress) -> bool {
    match (one, other) {
        (ListenAddress::Tcp(one), ListenAddress::Tcp(other)) => {
            let any = one.ip().is_unspecified() || other.ip().is_unspecified();
            one.port() != 0 && one.port() == other.port() && (any || one.ip() == other.ip())
        }
        (ListenAddress::Unix { path: one, .. }, ListenAddress::Unix { path: other, .. }) => one == other,
        _ => false,
    }
}

/// The maximum length of an upstream's name in bytes: that of a label.
const NAME_MAX_BYTES: usize = 128;
