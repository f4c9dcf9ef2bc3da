//! The groups of settings: headings of `--help` and of `configuration.md`.

meter::listed_enum! {
    /// A heading of the help and of `configuration.md`, in their order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Group {
        /// Addresses, connections, time limits, the end of the process.
        Proxy = "Proxy",
        /// Sources of token counts.
        Counting = "Token counts",
        /// Metrics, traces and log records about exchanges.
        Telemetry = "Telemetry",
        /// Readings of GPUs and their cost.
        Gpu = "GPU",
        /// Tenants, prices, the ledger and budgets.
        Spend = "Spend",
        /// The process's own log.
        Logging = "Logging",
    }
    /// Returns the heading.
    pub fn title(self);
}
