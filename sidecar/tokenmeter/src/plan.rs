//! Turns the settings into the plan of each part in one step, which succeeds or reports every
//! error. No part reads a setting (law 13).

pub(crate) mod attributes;
mod budgets;
pub(crate) mod certificates;
mod data_plane;
pub mod effective;
mod enforcement;
mod gpu;
mod hosted;
mod ledger;
pub(crate) mod loops;
pub mod machine;
#[cfg(test)]
mod names_tests;
mod objectives;
pub(crate) mod prices;
mod shares;
pub(crate) mod store;
mod telemetry;
pub mod tenants;
mod tls;
mod upstreams;
pub(crate) mod url;
mod values;
mod variables;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use metrics::Objective;
use origin::{Diagnostic, Diagnostics, Origin};

use crate::log;
use crate::plan::effective::Effective;
use crate::plan::machine::Machine;
use crate::settings::{RawSettings, Value};
use crate::token_file::TokenFile;

use certificates::{ADMIN_TLS, Certificate, LISTEN_TLS};
use upstreams::{ListenerDraft, UpstreamDraft};
use values::Reader;

pub use accounting::{BudgetsPlan, LedgerPlan};
pub use telemetry::Telemetry;
use tenants::Tenancy;

/// The plan of a process.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The data plane.
    pub relay: relay::Plan,
    /// The scraping of the upstreams' own metrics pages; its targets are in the relay's order.
    pub servers: servers::Plan,
    /// The setting and the origin of each listener of the relay, in its order.
    pub listen_origins: Vec<(&'static str, Origin)>,
    /// The certificates of all listeners with TLS.
    pub certificates: Vec<Certificate>,
    /// The admin listener's address.
    pub admin: SocketAddr,
    /// The origin of that address.
    pub admin_origin: Origin,
    /// The admin listener with TLS, and the origin of its address.
    pub admin_tls: Option<(page::TlsListener, Origin)>,
    /// Host names that its requests may carry.
    pub admin_hosts: Vec<String>,
    /// Concurrent connections to it.
    pub admin_connections: usize,
    /// The file with the token for its numbers.
    pub(crate) admin_token: Option<TokenFile>,
    /// The file with the token of the drain.
    pub(crate) drain_token: Option<TokenFile>,
    /// Models with labels of their own.
    pub max_models: usize,
    /// The latency objectives; the first that matches an exchange applies.
    pub objectives: Vec<Objective>,
    /// The budgets and their alerts.
    pub budgets: BudgetsPlan,
    /// The GPU readings; its upstreams are in the relay's order.
    pub gpu: Option<::gpu::Plan>,
    /// The tenant rules, and the files that may change them.
    pub tenancy: Tenancy,
    /// The ledger and the central store.
    pub ledger: LedgerPlan,
    /// The price book.
    pub prices: Option<Arc<::price::Book>>,
    /// The path of the price file.
    pub prices_path: Option<PathBuf>,
    /// The export to a collector.
    pub telemetry: Telemetry,
    /// Records queued for the control plane.
    pub outbox_records: usize,
    /// Tokenizers for models whose servers report no counts.
    pub tokenizers: Vec<TokenizerFile>,
    /// The log.
    pub log: log::Plan,
    /// The effective settings.
    pub effective: Effective,
    /// Consequences of settings for others, for the log.
    pub notes: Vec<String>,
    /// Settings that are valid, but probably not intended.
    pub warnings: Vec<Diagnostic>,
}

impl Plan {
    /// Plans a run on `machine`.
    pub fn make(written: &RawSettings, machine: &dyn Machine) -> Result<Self, Diagnostics> {
        let mut reader = Reader { written, errors: written.errors.clone(), warnings: Vec::new() };
        let upstreams = reader.upstreams(machine);
        let admin = reader.address_of("admin");
        let admin_tls = reader.tls_listener(&ADMIN_TLS, &|key| written.values.get(key).cloned());
        let (admin_tls, admin_certificate) = admin_tls.unzip();
        let admin_certificate = admin_certificate.flatten();
        let of_upstreams = upstreams.iter().flat_map(|upstream| &upstream.listeners);
        let listeners: Vec<&ListenerDraft> = of_upstreams.clone().chain(&admin).chain(&admin_tls).collect();
        reader.check_distinct(&listeners);
        reader.check_loops(machine, &upstreams, &listeners);
        let is_used = upstreams.iter().any(|upstream| upstream.certificate.is_some());
        reader.check_tls_files(&LISTEN_TLS, is_used || !reader.errors.is_empty());
        reader.check_tls_files(&ADMIN_TLS, admin_tls.is_some());
        let tokenizers = reader.tokenizers();
        let targets: Vec<relay::Upstream> = upstreams.iter().filter_map(UpstreamDraft::for_relay).collect();
        let telemetry = reader.telemetry(machine, targets.iter().map(named).collect());
        let relay = reader.data_plane(machine, targets, telemetry.trace, &tokenizers);
        let servers = servers::Plan {
            targets: upstreams.iter().filter_map(UpstreamDraft::for_servers).collect(),
            every: reader.milliseconds("engine_metrics_interval_ms"),
        };
        let max_models = reader.count("max_models");
        let admin_connections = reader.admin_connections(machine);
        let gpu =
            reader.gpu(machine, upstreams.iter().filter_map(UpstreamDraft::for_gpu).collect(), max_models);
        let objectives = reader.objectives();
        let tenancy = reader.tenants();
        if reader.errors.is_empty() {
            reader.check_proxy_protocol(&upstreams, &tenancy.now.spec.trusted);
            reader.check_certificate_rules(&upstreams, &tenancy);
        }
        reader.check_attributes();
        reader.check_choice("focus_billing");
        let budgets = reader.budgets();
        if reader.errors.is_empty() {
            reader.check_covers(&budgets, &tenancy.now.spec);
        }
        let prices = reader.prices();
        if let Some(book) = &prices {
            reader.check_names(&relay.upstreams, book);
        }
        let ledger = reader.ledger(machine);
        let outbox_records = reader.count("outbox_records");
        let log = reader.log();
        reader.check_variables(machine);
        let notes = reader.usage_notes();
        let admin_hosts = reader.names("admin_hosts");
        let token_file =
            |key| Some(reader.value(key).text).filter(|path| !path.is_empty()).map(TokenFile::at);
        let (admin_token, drain_token) = (token_file("admin_token_file"), token_file("drain_token_file"));
        match admin.as_ref().and_then(|admin| Some((admin, admin.tcp()?))) {
            Some((admin, admin_address)) if reader.errors.is_empty() => Ok(Self {
                listen_origins: of_upstreams
                    .map(|listener| (listener.key, listener.origin.clone()))
                    .collect(),
                certificates: upstreams
                    .iter()
                    .filter_map(|upstream| upstream.certificate.clone())
                    .chain(admin_certificate.clone())
                    .collect(),
                effective: Effective::of(
                    written,
                    &relay,
                    &servers,
                    &objectives,
                    &budgets,
                    &telemetry,
                    notes.clone(),
                ),
                relay,
                servers,
                admin: admin_address,
                admin_origin: admin.origin.clone(),
                admin_tls: admin_certificate.zip(admin_tls).map(|(certificate, listener)| {
                    let Certificate { address, tls, .. } = certificate;
                    (page::TlsListener { address, tls }, listener.origin)
                }),
                admin_hosts,
                admin_connections,
                admin_token,
                drain_token,
                max_models,
                objectives,
                budgets,
                gpu,
                tenancy,
                ledger,
                prices_path: prices.is_some().then(|| reader.value("prices").text.into()),
                prices: prices.map(Arc::new),
                telemetry,
                outbox_records,
                tokenizers,
                log,
                notes,
                warnings: reader.warnings,
            }),
            _ => Err(Diagnostics(reader.errors)),
        }
    }
}

/// Returns an upstream's name and address for telemetry.
fn named(upstream: &relay::Upstream) -> metrics::Upstream {
    let address = upstream.target.address();
    metrics::Upstream { name: upstream.name.clone(), host: address.name(), port: address.port() }
}

/// A model and its tokenizer file.
#[derive(Clone, Debug)]
pub struct TokenizerFile {
    /// The model's name in requests.
    pub model: String,
    /// The path of `tokenizer.json`, or of its folder.
    pub path: PathBuf,
    /// The origin of the setting.
    pub origin: Origin,
}

impl Reader<'_> {
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
            self.errors.push(Diagnostic::at(&value.origin, what, "write names without a scheme or a port"));
        }
        names
    }

    /// Reads `MODEL=PATH` pairs, separated by commas.
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
                    self.errors.push(Diagnostic::at(&origin, what, remedy));
                }
            }
        }
        if !files.is_empty() && !cfg!(feature = "tokenizer") {
            let what = "this tokenmeter was built without tokenizers";
            self.errors.push(Diagnostic::at(&origin, what, "build it with the feature `tokenizer`"));
        }
        files
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
