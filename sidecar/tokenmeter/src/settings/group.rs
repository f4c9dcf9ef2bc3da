//! The groups of settings: headings of `--help` and of `configuration.md`.

/// A heading of the help and of `configuration.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Addresses, connections, time limits, the end of the process.
    Proxy,
    /// Sources of token counts.
    Counting,
    /// Metrics, traces and log records about exchanges.
    Telemetry,
    /// Readings of GPUs and their cost.
    Gpu,
    /// Tenants, prices, the ledger and budgets.
    Spend,
    /// The process's own log.
    Logging,
}

impl Group {
    /// Every group, in the order of the help.
    pub const ALL: [Self; 6] =
        [Self::Proxy, Self::Counting, Self::Telemetry, Self::Gpu, Self::Spend, Self::Logging];

    /// Returns the heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Proxy => "Proxy",
            Self::Counting => "Token counts",
            Self::Telemetry => "Telemetry",
            Self::Gpu => "GPU",
            Self::Spend => "Spend",
            Self::Logging => "Logging",
        }
    }
}
