//! Exporters of a library that was built without them.

use std::net::SocketAddr;
use std::sync::Arc;

use meter::Record;
use metrics::Metrics;
use price::{Book, Charge};

use super::Settings;
use crate::status::{Fault, Status};

/// Exporters, of which this library has none.
pub(crate) enum Exporters {}

impl Exporters {
    /// Returns why nothing starts.
    pub(crate) fn start(
        settings: &Settings<'_>,
        upstream: &Arc<str>,
        metrics: &Metrics,
        prices: Option<&Arc<Book>>,
    ) -> Result<Self, Fault> {
        // The other build uses them.
        let Settings { listen, hosts, ledger, ledger_keep_days, otlp_variables } = settings;
        let _ = (listen, hosts, ledger, ledger_keep_days, otlp_variables, upstream, metrics, prices);
        Err(Fault::new(
            Status::Unsupported,
            "the library was built without exporters: build it with the feature `exporters`",
        ))
    }

    pub(crate) fn charge(&self, _: &Arc<Record>) -> Charge {
        match *self {}
    }

    pub(crate) fn set_prices(&self, _: &Arc<Book>) {
        match *self {}
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match *self {}
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        match *self {}
    }

    pub(crate) fn shutdown(self) {
        match self {}
    }
}
