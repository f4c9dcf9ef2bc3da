//! The files of the demonstration: a ledger, prices and tenant rules, in a temporary folder.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use ledger::Store;
use report::{Key, Query, Report, make};

/// The header with the tenant of a client.
pub(super) const TENANT_HEADER: &str = "x-tenant";

/// The tenants of the clients.
pub(super) const TENANTS: [&str; 3] = ["search", "support", "research"];

const TENANTS_FILE: &str = "trusted_peers: [127.0.0.1, \"::1\"]\nrules:\n  - header: x-tenant\n";

/// Invented prices, in dollars per million tokens.
const PRICES_FILE: &str = "\
version: demo
currency: USD
models:
  - name: simulated-8b
    input: 0.10
    cached_input: 0.01
    output: 0.40
";

/// The folder, removed on drop.
#[derive(Debug)]
pub(super) struct DemoFiles(PathBuf);

impl DemoFiles {
    /// Creates the folder, the tenants file and the price file.
    pub(super) fn open() -> io::Result<Self> {
        let folder = env::temp_dir().join(format!("tokenmeter-demo-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let files = Self(folder);
        fs::write(files.file("tenants.yaml"), TENANTS_FILE)?;
        fs::write(files.file("prices.yaml"), PRICES_FILE)?;
        Ok(files)
    }

    /// Returns the settings that name the files.
    pub(super) fn flags(&self) -> [(&'static str, String); 3] {
        [("ledger", "ledger.db"), ("prices", "prices.yaml"), ("tenants", "tenants.yaml")]
            .map(|(key, name)| (key, self.file(name).display().to_string()))
    }

    /// Returns the path of the ledger.
    pub(super) fn ledger(&self) -> PathBuf {
        self.file("ledger.db")
    }

    /// Returns each tenant's spend as the ledger has it now; `None` if it cannot be read.
    pub(super) fn bill(&self) -> Option<Report> {
        let store = Store::open_read(&self.ledger()).ok()?;
        let ask = Query { by: vec![Key::Tenant], ..Query::all(ledger::now_us()) };
        make(&store, &ask).ok()
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::new(&self.0).join(name)
    }
}

impl Drop for DemoFiles {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among other temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
