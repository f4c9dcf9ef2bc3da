//! Exchanges to be counted: a simulated server behind a real tokenmeter, and clients that ask it.

use simulator::load::{Load, Pace, Report};
use simulator::server::{Handle, Options, Server, Shape};

use crate::card::Card;
use crate::http;
use crate::meter_page::Page;
use crate::proxy::Proxy;

/// The server and the proxy before it.
pub(crate) struct Line {
    /// Dropping it stops it.
    _server: Handle,
    pub(crate) proxy: Proxy,
}

impl Line {
    /// Starts both, the proxy with these flags and variables.
    pub(crate) async fn start(flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let options = Options::instant(Shape::Vllm);
        let server =
            Server::bind("127.0.0.1:0".parse().expect("an address"), options).await.expect("it listens");
        let proxy = Proxy::start_with(server.addr(), flags, environment);
        Self { _server: server, proxy }
    }

    /// The same with as many families on the page as there are: a card, an objective, prices, and the
    /// server's own page.
    pub(crate) async fn start_full(card: &Card, environment: &[(&str, &str)]) -> Self {
        let exporter = card.url();
        let mut flags = vec!["--gpu", "exporter", "--gpu-exporter", &exporter, "--gpu-sample-ms", "250"];
        flags.extend(["--gpu-hour-usd", "2.5", "--kwh-usd", "0.3", "--objective", "floor"]);
        flags.extend(["--kind", "vllm", "--engine-metrics", "on", "--engine-metrics-interval-ms", "1000"]);
        Self::start(&flags, environment).await
    }

    /// Asks `requests` times, four at once, and waits until all are counted.
    pub(crate) async fn ask(&self, requests: u64, headers: &[(&str, &str)]) -> Report {
        let before = self.proxy.page().sum("tokenmeter_exchanges_total", &[]);
        let mut load = Load::new(self.proxy.data);
        load.requests = requests;
        load.pace = Pace::Closed { concurrency: 4 };
        load.model = Some("sim".to_owned());
        load.headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
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
