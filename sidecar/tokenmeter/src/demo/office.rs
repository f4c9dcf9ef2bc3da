//! The demonstration's books: a ledger, prices and three tenants, in a folder that goes with it.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use ledger::Store;
use ledger::report::{Ask, Basis, Key, Order, Range, Report, make};

/// The header by which the clients say whose they are.
pub(super) const TENANT_HEADER: &str = "x-tenant";

/// Whose they are.
pub(super) const TENANTS: [&str; 3] = ["search", "support", "research"];

const TENANTS_FILE: &str = "trusted_peers: [127.0.0.1, \"::1\"]\nrules:\n  - header: x-tenant\n";

/// Dollars for a million tokens: invented, like the server.
const PRICES_FILE: &str = "\
version: demo
currency: USD
models:
  - name: simulated-8b
    input: 0.10
    cached_input: 0.01
    output: 0.40
";

/// The folder, gone when dropped.
#[derive(Debug)]
pub(super) struct Office(PathBuf);

impl Office {
    /// Makes the folder and what is written in it before the start.
    pub(super) fn open() -> io::Result<Self> {
        let folder = env::temp_dir().join(format!("tokenmeter-demo-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let office = Self(folder);
        fs::write(office.file("tenants.yaml"), TENANTS_FILE)?;
        fs::write(office.file("prices.yaml"), PRICES_FILE)?;
        Ok(office)
    }

    /// The settings that name them.
    pub(super) fn flags(&self) -> [(&'static str, String); 3] {
        [("ledger", "ledger.db"), ("prices", "prices.yaml"), ("tenants", "tenants.yaml")]
            .map(|(key, name)| (key, self.file(name).display().to_string()))
    }

    /// The ledger.
    pub(super) fn ledger(&self) -> PathBuf {
        self.file("ledger.db")
    }

    /// Returns each tenant's spend as the ledger has it now; `None` if it cannot be read.
    pub(super) fn bill(&self) -> Option<Report> {
        let store = Store::open_read(&self.ledger()).ok()?;
        let ask = Ask {
            range: Range::ALL,
            billed: None,
            by: vec![Key::Tenant],
            filters: Vec::new(),
            basis: Basis::Price,
            order: Order::default(),
            now_us: ledger::now_us(),
        };
        make(&store, &ask).ok()
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::new(&self.0).join(name)
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        // What cannot be removed lies among other temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
