//! Exchanges to count: a simulated server behind a real tokenmeter, and clients.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use faults::{Handle, Options, Server, Shape};
use simulator::load::{Load, Report};

use crate::card::Card;
use crate::http;
use crate::meter_page::Page;
use crate::proxy::Proxy;

/// The server and the proxy before it.
pub(crate) struct Line {
    /// Dropping it stops it.
    _server: Handle,
    pub(crate) proxy: Proxy,
    /// The proxy's files; dropped after it.
    _files: Option<Files>,
}

impl Line {
    /// Starts both, the proxy with these flags and variables.
    pub(crate) async fn start(flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let options = Options::instant(Shape::Vllm);
        let server =
            Server::bind("127.0.0.1:0".parse().expect("an address"), options).await.expect("it listens");
        let proxy = Proxy::start_with(server.addr(), flags, environment);
        Self { _server: server, proxy, _files: None }
    }

    /// As [`Self::start`], with as many families on the page as possible: a card, an objective, prices of the card and
    /// of one model's tokens, a budget, a ledger, and the server's own page. `more` are further flags.
    pub(crate) async fn start_full(card: &Card, more: &[&str], environment: &[(&str, &str)]) -> Self {
        let exporter = card.url();
        let mut flags = vec!["--gpu", "exporter", "--gpu-exporter", &exporter, "--gpu-sample-ms", "250"];
        flags.extend(["--gpu-hour-usd", "2.5", "--kwh-usd", "0.3", "--objective", "floor"]);
        flags.extend(["--kind", "vllm", "--engine-metrics", "on", "--engine-metrics-interval-ms", "1000"]);
        let files = Files::new();
        let [settings, prices] = [("settings.yaml", SETTINGS), ("prices.yaml", PRICES)]
            .map(|(name, text)| files.write(name, text));
        let ledger = files.path("ledger.db");
        flags.extend(["--config", &settings, "--prices", &prices, "--ledger", &ledger]);
        flags.extend(more);
        Self { _files: Some(files), ..Self::start(&flags, environment).await }
    }

    /// Sends `requests` requests, four at once, and waits until all are counted.
    pub(crate) async fn ask(&self, requests: u64, headers: &[(&str, &str)]) -> Report {
        let mut load = self.load(requests, 4);
        load.headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.run(load).await
    }

    /// Sends every kind of request that this server supports, and waits until all are counted: each range of
    /// concurrency and of positions, a cached prompt, a tool call, a refusal, a stall, and a model beyond a cap of one.
    /// Returns the number of exchanges.
    pub(crate) async fn ask_everything(&self) -> u64 {
        let before = self.exchanges();
        for concurrency in [1, 4, 8, 16, 32, 64, 128, 192] {
            let mut load = self.load(u64::from(concurrency), concurrency);
            load.output_tokens = 16;
            // All are in flight at once, at any speed of the machine. Tokens that the proxy reads at once have one time
            // and no rate, so they come at two times.
            let directives = "slow-head=500ms, stall-after=8, stall=20ms";
            load.headers = vec![("x-simulate".to_owned(), directives.to_owned())];
            self.run(load).await;
        }
        let mut long = self.load(1, 1);
        long.output_tokens = 17_000;
        self.run(long).await;
        let mut tool = self.load(4, 1);
        tool.fields = vec![("simulate".to_owned(), serde_json::json!({ "cached": 32, "tool": 16 }))];
        self.run(tool).await;
        let mut refused = self.load(4, 1);
        refused.headers = vec![("x-simulate".to_owned(), "error-status=503".to_owned())];
        self.run(refused).await;
        let mut stalled = self.load(2, 1);
        stalled.headers = vec![("x-simulate".to_owned(), "stall-after=3, stall=1500ms".to_owned())];
        self.run(stalled).await;
        let mut beyond = self.load(4, 1);
        beyond.model = Some("beyond".to_owned());
        self.run(beyond).await;
        self.exchanges() - before
    }

    fn load(&self, requests: u64, concurrency: u32) -> Load {
        let mut load = Load::new(self.proxy.data);
        load.requests = requests;
        load.concurrency = concurrency;
        load.model = Some("sim".to_owned());
        load
    }

    fn exchanges(&self) -> u64 {
        self.proxy.page().sum("tokenmeter_exchanges_total", &[]) as u64
    }

    async fn run(&self, load: Load) -> Report {
        let (before, requests) = (self.exchanges() as f64, load.requests);
        let report = simulator::load::run(&load).await.expect("the load can run");
        let counted = |page: &Page| {
            page.sum("tokenmeter_exchanges_total", &[]) == before + requests as f64
                && page.sum("tokenmeter_exchanges_in_flight", &[]) == 0.0
        };
        self.proxy.page_when("every exchange has ended", counted);
        report
    }

    /// The page in OpenMetrics.
    pub(crate) fn page(&self) -> String {
        http::get(self.proxy.admin, "/metrics", "application/openmetrics-text")
    }
}

/// A budget that is not spent. A daily one would have a forecast, except in the hour after midnight.
const SETTINGS: &str = "budgets:\n- name: all\n  tenants: [\"*\"]\n  max_budget: 1000000\n  soft_budget: 900000\n  \
                        budget_duration: 30d\n";

/// Prices of one model; the other has none.
const PRICES: &str = "version: test-1\ncurrency: USD\nunit: per_million\nmodels:\n- { name: sim, input: 0.5, cached_input: 0.1, \
     output: 2 }\n";

/// A folder of files; dropping it removes them.
struct Files(PathBuf);

impl Files {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tokenmeter-files-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Self(folder)
    }

    /// The path of a file in it.
    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a file and returns its path.
    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).expect("it can be written");
        self.path(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
