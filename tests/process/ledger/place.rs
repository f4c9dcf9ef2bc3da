//! A folder with a price book, tenant rules and a ledger, and the binary started on them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use faults::{Handle, Options, Server, Shape};
use serde_json::Value;

use crate::meter_page::Page;
use crate::proxy::Proxy;

/// Prices of the two models that have a price.
pub(crate) const PRICES: &str = "version: prices-1\ncurrency: USD\nunit: per_million\nmodels:\n\
    - {name: small, input: 0.13, cached_input: 0.07, output: 0.61}\n\
    - {name: large, input: 2.50, cached_input: 1.25, output: 10.01, per_request: 0.000003}\n";

const TENANTS: &str = "trusted_peers: [127.0.0.1]\nrules:\n- header: x-tenant\n";

/// The folder; removed when dropped.
pub(crate) struct Place(PathBuf);

impl Place {
    /// A folder with prices and tenants, and no ledger yet.
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tokenmeter-spend-{}-{number}", std::process::id()));
        // From a run that was itself killed.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let place = Self(folder);
        place.write("prices.yaml", PRICES);
        place.write("tenants.yaml", TENANTS);
        place
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// Replaces a file atomically.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path("new"), text).expect("it can be written");
        std::fs::rename(self.path("new"), self.path(name)).expect("it can be renamed");
    }

    /// Starts the binary before `upstream`, on the ledger of this name, with further options.
    pub(crate) fn start(&self, upstream: SocketAddr, ledger: &str, more: &[&str]) -> Proxy {
        let [ledger, prices, tenants] = [ledger, "prices.yaml", "tenants.yaml"].map(|name| self.text(name));
        let mut options = vec!["--ledger", &ledger, "--prices", &prices, "--tenants", &tenants];
        options.extend(["--drain-delay-ms", "0"]);
        options.extend(more);
        Proxy::start(upstream, &options)
    }

    /// The output of `tokenmeter spend --format json` for a ledger.
    pub(crate) fn spend(&self, ledger: &str, by: &str) -> Vec<Value> {
        let text = command(&["spend", "--ledger", &self.text(ledger), "--by", by, "--format", "json"]);
        let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        report["rows"].as_array().cloned().unwrap_or_else(|| panic!("no rows: {text}"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// The output of a command of the binary; fails the test if the command fails.
#[track_caller]
pub(crate) fn command(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tokenmeter")).args(arguments).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A server without delays.
pub(crate) async fn server() -> Handle {
    let address = "127.0.0.1:0".parse().expect("an address");
    Server::bind(address, Options::instant(Shape::Vllm)).await.expect("it listens")
}

/// The locations of the rows of ended exchanges, by the metrics page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) acknowledged: u64,
    pub(crate) queued: u64,
    pub(crate) shed: u64,
    pub(crate) lost: u64,
}

/// Items besides rows that wait until the ledger is open: the event of the current prices.
pub(crate) const NOTES: u64 = 1;

impl Rows {
    pub(crate) fn of(page: &Page) -> Self {
        let of = |name: &str| page.sum(&format!("tokenmeter_ledger_{name}"), &[]) as u64;
        Self {
            acknowledged: of("rows_total"),
            queued: of("queued_rows"),
            shed: of("shed_rows_total"),
            lost: of("lost_rows_total"),
        }
    }

    pub(crate) fn all(self) -> u64 {
        self.acknowledged + self.queued + self.shed + self.lost
    }
}

/// Returns true if the ledger can be written, by the metrics page.
pub(crate) fn is_up(page: &Page) -> bool {
    page.sum("tokenmeter_ledger_up", &[]) == 1.0
}
