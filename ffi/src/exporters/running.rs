//! Exporters, made of the parts that the proxy has behind its outbox.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use accounting::BudgetsPlan;
use accounting::admin_page::AdminPage;
use accounting::billing::{self, Billing, LedgerPlan};
use accounting::export_link::Exports;
use accounting::gpu_link::AttributionQueue;
use accounting::pipeline::Pipeline;
use accounting::totals::Totals;
use ledger::PathProblem;
use live::{History, Now, Readiness, Step};
use meter::Record;
use metrics::Metrics;
use otlp::settings::Overrides;
use price::{Book, Charge};

use super::ledger_path::LedgerPath;
use super::{Settings, signals};
use crate::status::{Fault, Status};

/// Running exporters.
pub(crate) struct Exporters {
    pipeline: Pipeline,
    billing: Billing,
    state: billing::State,
    exports: Exports,
    page: Option<page::Running>,
    metrics: Metrics,
    ledger: Option<LedgerPath>,
}

impl Exporters {
    /// Starts all parts of the settings, or none.
    pub(crate) fn start(
        settings: &Settings<'_>,
        upstream: &Arc<str>,
        metrics: &Metrics,
        prices: Option<&Arc<Book>>,
    ) -> Result<Self, Fault> {
        let started = signals::blocked(|| Self::start_parts(settings, upstream, metrics, prices));
        if started.is_err() {
            billing::unset_metrics(metrics);
        }
        started
    }

    fn start_parts(
        settings: &Settings<'_>,
        upstream: &Arc<str>,
        metrics: &Metrics,
        prices: Option<&Arc<Book>>,
    ) -> Result<Self, Fault> {
        let otlp = otlp_plan(settings)?;
        let ledger = settings.ledger.as_deref().map(ledger_path).transpose()?;
        let ledger_plan = ledger_plan(ledger.as_ref(), settings.ledger_keep_days);
        let plan = billing::Plan { prices, budgets: &BudgetsPlan::default(), ledger: &ledger_plan };
        let billing = Billing::open(plan, metrics).map_err(start_fault)?;
        let state = billing.state();
        let page = match settings.listen {
            Some(listen) => {
                Some(listener(listen, settings, Box::new(Source(AdminPage::new(metrics, &state))))?)
            }
            None => None,
        };
        let exports = Exports::start(otlp, metrics).map_err(start_fault)?;
        let gpus = AttributionQueue::new(Vec::new(), metrics);
        let totals = Totals::new([upstream]);
        let pipeline = Pipeline::new(totals, metrics, &billing, gpus, exports.clone(), false);
        Ok(Self { pipeline, billing, state, exports, page, metrics: metrics.clone(), ledger })
    }

    /// Charges a finished exchange and enters it in the ledger and the export. Never waits.
    pub(crate) fn charge(&self, record: &Arc<Record>) -> Charge {
        self.pipeline.enter(Arc::clone(record))
    }

    /// Replaces the price book, by one of the same currency.
    pub(crate) fn set_prices(&self, book: &Arc<Book>) {
        // The meter has compared the currencies.
        let _ = self.billing.charger().replace_book(Arc::clone(book), "the price book");
    }

    /// Returns the address of the listener.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.page.as_ref().map(page::Running::address)
    }

    /// Returns the current problems.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.state.troubles()
    }

    /// Commits the ledger's queue, sends the last telemetry and closes the listener, in this order.
    pub(crate) fn shutdown(self) {
        let Self { pipeline, billing, state, exports, page, metrics, ledger } = self;
        drop((pipeline, billing));
        exports.shutdown();
        drop(page);
        // The metrics are those of the meter, which goes on.
        state.end_metrics(&metrics);
        drop(ledger);
    }
}

fn start_fault(error: std::io::Error) -> Fault {
    Fault::new(Status::Start, format!("a thread of the exporters cannot start: {error}"))
}

/// Claims the path of the ledger.
fn ledger_path(path: &Path) -> Result<LedgerPath, Fault> {
    let no_ledger = |problem: &dyn Display| {
        Fault::new(Status::Start, format!("`{}` is not a ledger: {problem}", path.display()))
    };
    if let Some(problem) = PathProblem::of(path) {
        return Err(no_ledger(&problem));
    }
    let claimed = LedgerPath::claim(path).map_err(|error| no_ledger(&error))?;
    if let Some(writer) = ledger::writer_on_this_host(claimed.path()) {
        return Err(no_ledger(&format_args!("the process {writer} writes it")));
    }
    Ok(claimed)
}

/// Plans the ledger.
fn ledger_plan(path: Option<&LedgerPath>, keep_days: u32) -> LedgerPlan {
    let plan = |path: &LedgerPath| ledger::Plan { keep_days, ..ledger::Plan::new(path.path()) };
    LedgerPlan { ledger: path.map(plan), ..LedgerPlan::default() }
}

/// Plans the export. Unlike the variables of a process, which other programs read, too, these were given to the call: an
/// error in one is an error of the call.
fn otlp_plan(settings: &Settings<'_>) -> Result<Option<otlp::Plan>, Fault> {
    let variables = &settings.otlp_variables;
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    // A record of the library has no trace context.
    let overrides = Overrides { spans: Some(false), ..Overrides::default() };
    let resolved = otlp::settings::resolve(&variable, &overrides);
    match &resolved.errors[..] {
        [] => Ok(resolved.plan),
        errors => {
            let lines: Vec<_> = errors
                .iter()
                .map(|error| format!("{}: {}; {}", error.variable, error.message, error.remedy))
                .collect();
            Err(Fault::new(Status::Start, lines.join("\n")))
        }
    }
}

fn listener(
    listen: SocketAddr,
    settings: &Settings<'_>,
    source: Box<dyn page::Source>,
) -> Result<page::Running, Fault> {
    let hosts = page::AllowedHosts::new(settings.hosts.iter().cloned());
    page::start(listen.into(), hosts, page::CONNECTIONS, source)
        .map_err(|error| Fault::new(Status::Start, error.to_string()))
}

/// The content of the admin listener.
struct Source(AdminPage);

impl page::Source for Source {
    fn metrics(&self, accept: &str) -> page::Content {
        self.0.scrape(accept)
    }

    fn ready(&self) -> Readiness {
        self.0.readiness()
    }

    fn sample(&mut self) -> Now {
        let readiness = self.0.readiness();
        self.0.sample(env!("CARGO_PKG_VERSION"), readiness, |_| Vec::new())
    }

    fn history(&self, scope: &str, step: Step) -> Option<History> {
        self.0.history(scope, step)
    }

    fn spend(&self) -> Option<page::Content> {
        self.0.spend()
    }
}
