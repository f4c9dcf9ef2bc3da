//! The demonstration: a simulated server, the proxy and clients in one process. The proxy is the real one; only the
//! server's speed is computed.

mod files;
mod schedule;
mod table;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use files::{DemoFiles, TENANT_HEADER, TENANTS};
use metrics::Snapshot;
use origin::{Diagnostic, Diagnostics};
use report as spend;
use schedule::Schedule;
use simulator::load::{self, CONCURRENCIES, Load, Report};
use simulator::server::{Handle, Options, Server};
use simulator::shape::Vllm;
use tokio::runtime::Builder;
use tokio::time::{Instant, interval, sleep, sleep_until};

use crate::assemble::Process;
use crate::assemble::start_error::StartError;
use crate::log;
use crate::plan::Plan;
use crate::plan::machine::ThisMachine;
use crate::run::signals::Signals;
use crate::settings::{RawSettings, setting};

/// The arguments of `demo`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Duration in seconds; without it the demonstration runs until Ctrl-C.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: Option<u64>,
    /// Address of the proxy [default: 127.0.0.1:9800, or a free port if that is in use].
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Address of the live page and /metrics [default: 127.0.0.1:9464, or a free port if that is in use].
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  tokenmeter demo
  tokenmeter demo --seconds 60 --listen 127.0.0.1:9800 --admin 127.0.0.1:9464";

/// The error of the demonstration.
#[derive(Debug)]
pub(crate) enum DemoError {
    /// An address is invalid.
    Settings(Diagnostics),
    /// The proxy did not start.
    Start(StartError),
    /// The simulated server or its clients could not run.
    Simulation(io::Error),
}

/// Runs for `seconds`, or until it is interrupted. Without `listen` and `admin`, it uses the default ports, or free ones
/// if those are in use.
pub(crate) fn run(DemoArgs { seconds, listen, admin }: DemoArgs) -> Result<ExitCode, DemoError> {
    // Server and clients share a thread: both wait most of the time, and the proxy has its own threads.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(DemoError::Simulation)?;
    runtime.block_on(async {
        let mut signals = Signals::listen().map_err(DemoError::Simulation)?;
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), Options::<Vllm>::default())
            .await
            .map_err(DemoError::Simulation)?;
        let files = DemoFiles::open().map_err(DemoError::Simulation)?;
        let (plan, notes) = plan(&server, &files, listen, admin)?;
        log::begin(&plan.log);
        let process = Process::start(&plan).map_err(DemoError::Start)?;
        let admin = reachable(process.admin());
        table::introduce(&mut io::stdout(), reachable(process.address()), admin, &notes);
        let shown = tokio::select! {
            _ = signals.stop(|| process.reload()) => Ok(()),
            ended = cycles(&process, &files, seconds) => ended.map_err(DemoError::Simulation),
        };
        table::conclude(&mut io::stdout(), io::stdout().is_terminal());
        process.stop_now();
        // The workers' sockets are on other threads, so this thread may block.
        process.join().end();
        server.shutdown().await;
        shown.map(|()| ExitCode::SUCCESS)
    })
}

/// Plans the proxy in front of `server`, through the usual settings. The notes are about its addresses.
fn plan(
    server: &Handle,
    files: &DemoFiles,
    listen: Option<String>,
    admin: Option<String>,
) -> Result<(Plan, Vec<String>), DemoError> {
    let mut notes = Vec::new();
    let mut flags = BTreeMap::from([
        ("upstream", server.url()),
        ("kind", "vllm".to_owned()),
        // So that the live page has an objective.
        ("objective", "chat".to_owned()),
        ("log_level", "warn".to_owned()),
        ("log_format", "text".to_owned()),
    ]);
    flags.extend(files.flags());
    flags.insert("listen", listen.unwrap_or_else(|| default_or_free("listen", &mut notes)));
    flags.insert("admin", admin.unwrap_or_else(|| default_or_free("admin", &mut notes)));
    let plan = Plan::make(&RawSettings::merge(&flags, &|_| None, None), &ThisMachine)
        .map_err(DemoError::Settings)?;
    let listen = plan.relay.upstreams[0].listen[0].address.clone();
    let relay::ListenAddress::Tcp(listen) = listen else { unreachable!("the flag is an address") };
    let listen = listen.ip();
    if !listen.is_loopback() && !listen.is_unspecified() {
        return Err(DemoError::Settings(Diagnostics(vec![Diagnostic::at(
            &plan.listen_origins[0].1,
            format!("the demo's clients use loopback addresses only, and {listen} is not one"),
            "write 127.0.0.1:PORT, or 0.0.0.0:PORT to be reachable from other hosts, too",
        )])));
    }
    Ok((plan, notes))
}

/// Returns the default address of a setting; if its port is in use, one with a free port, and a note.
fn default_or_free(key: &str, notes: &mut Vec<String>) -> String {
    let usual = setting(key).default;
    match TcpListener::bind(usual) {
        Ok(_) => usual.to_owned(),
        Err(_) => {
            notes.push(format!("{usual} is in use, so a free port is used instead."));
            format!("{}:0", Ipv4Addr::LOCALHOST)
        }
    }
}

/// Steps through the concurrencies, in as many cycles as fill the time.
async fn cycles(process: &Process, files: &DemoFiles, seconds: Option<u64>) -> io::Result<()> {
    let schedule = Schedule::of(seconds.map(Duration::from_secs));
    let began = Instant::now();
    let mut client_totals = ClientTotals::default();
    let mut steps: u32 = 0;
    let mut cycle = 0;
    while schedule.cycles.is_none_or(|cycles| cycle < cycles) {
        table::head(&mut io::stdout());
        for concurrency in CONCURRENCIES {
            steps = steps.saturating_add(1);
            let left = (began + schedule.step * steps).saturating_duration_since(Instant::now());
            let load = Load {
                model: Some(MODEL.to_owned()),
                prompt_tokens: PROMPT_TOKENS,
                output_tokens: schedule.output_tokens,
                concurrency,
                requests: MAX_REQUESTS,
                time: schedule.starting(concurrency, left).max(MIN_STEP),
                round: (TENANT_HEADER.to_owned(), TENANTS.map(str::to_owned).to_vec()),
                // Prompts differ between steps too.
                seed: u64::from(steps) * MAX_REQUESTS,
                ..Load::new(reachable(process.address()))
            };
            let report = watched(process, concurrency, &load).await?;
            table::row(&mut io::stdout(), concurrency, &report);
            client_totals.add(&report);
        }
        let (counted, bill) = settled(process, files, client_totals.completed).await;
        table::compare(&mut io::stdout(), &client_totals, &counted);
        table::bill(&mut io::stdout(), bill.as_ref(), exchanges(&counted), &files.ledger());
        cycle += 1;
    }
    // The page stays open for the whole time.
    sleep_until(began + schedule.step * steps).await;
    Ok(())
}

/// Waits until the meter and the ledger have the same exchanges, and no fewer than the clients completed.
///
/// A client has its last byte before its exchange ends, an exchange is counted before its record leaves the
/// outbox, and a record leaves the outbox before the ledger commits its row: equal sums are the only sign that
/// nothing is on its way. Requests in flight are waited for only so long: another person may try the demo. After
/// [`SETTLE_MAX`] the two are returned as they are.
async fn settled(process: &Process, files: &DemoFiles, completed: u64) -> (Snapshot, Option<spend::Report>) {
    let began = Instant::now();
    loop {
        let snapshot = process.metrics().snapshot();
        let running =
            snapshot.models.iter().any(|model| model.in_flight > 0) && began.elapsed() < IN_FLIGHT_MAX;
        let bill = files.bill();
        let billed = bill.as_ref().map(table::billed);
        let counted = exchanges(&snapshot);
        let is_settled = !running && counted >= completed && billed == Some(counted.into());
        if is_settled || began.elapsed() >= SETTLE_MAX {
            return (snapshot, bill);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Returns the exchanges of all models.
fn exchanges(counted: &Snapshot) -> u64 {
    counted.models.iter().map(|model| model.exchanges).sum()
}

/// Runs a step; a terminal shows the current rate in place.
async fn watched(process: &Process, concurrency: u32, load: &Load) -> io::Result<Report> {
    if !io::stdout().is_terminal() {
        return load::run(load).await;
    }
    let live =
        || -> u64 { process.metrics().snapshot().models.iter().map(|model| model.live_output_tokens).sum() };
    let mut before = live();
    let mut ticks = interval(LINE_INTERVAL);
    ticks.tick().await;
    let mut running = std::pin::pin!(load::run(load));
    loop {
        tokio::select! {
            report = &mut running => {
                table::clear(&mut io::stdout());
                return report;
            }
            _ = ticks.tick() => {
                let now = live();
                let rate = now.saturating_sub(before) as f64 / LINE_INTERVAL.as_secs_f64();
                table::glance(&mut io::stdout(), concurrency, rate);
                before = now;
            }
        }
    }
}

/// The totals of the clients in all steps so far.
#[derive(Debug, Default)]
struct ClientTotals {
    completed: u64,
    failed: u64,
    output_tokens: u64,
}

impl ClientTotals {
    fn add(&mut self, report: &Report) {
        self.completed += report.completed;
        self.failed += report.failed();
        self.output_tokens += report.output_tokens;
    }
}

/// Returns the loopback address of a listener that may be on the unspecified address.
fn reachable(listener: SocketAddr) -> SocketAddr {
    let ip = match listener.ip() {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        own => own,
    };
    SocketAddr::new(ip, listener.port())
}

/// The model that the clients request.
const MODEL: &str = "simulated-8b";

/// The length of a prompt of a few paragraphs.
const PROMPT_TOKENS: u64 = 256;

/// More requests than fit into a step, which its time ends first.
const MAX_REQUESTS: u64 = 100_000;

/// The minimum time of a step, in which each client sends a request.
const MIN_STEP: Duration = Duration::from_millis(1);

/// The longest wait for the last rows: usually tens of milliseconds, seconds on an overloaded machine.
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// The longest wait for requests in flight: an exchange of the demo's own clients ends within microseconds of its last byte.
const IN_FLIGHT_MAX: Duration = Duration::from_secs(1);

/// The time between two comparisons.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The interval of the line in place; live counters lag up to a second.
const LINE_INTERVAL: Duration = Duration::from_millis(500);
