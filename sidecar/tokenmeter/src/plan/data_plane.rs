//! Plans the data plane.

use std::sync::Arc;
use std::time::Duration;

use origin::Diagnostic;
use relay::{Plan, Tracing, Upstream};

use super::TokenizerFile;
use super::values::Reader;
use crate::plan::machine::Machine;
use crate::settings::APPEND;

impl Reader<'_> {
    /// Returns the plan of the data plane with these upstreams.
    pub(super) fn data_plane(
        &mut self,
        machine: &dyn Machine,
        upstreams: Vec<Upstream>,
        trace: Option<Tracing>,
        tokenizers: &[TokenizerFile],
    ) -> Plan {
        // In the order in which errors are reported.
        let workers = match self.written.values.contains_key("workers") {
            true => self.count("workers"),
            false => machine.cores(),
        };
        let stall = self.milliseconds("stall_ms");
        let tokens_max = self.number("max_tokens_claimed");
        let connect_timeout = self.milliseconds("connect_timeout_ms");
        let head_timeout = self.milliseconds("head_timeout_ms");
        let pool_idle = self.pool_idle();
        let pool_size = self.count("pool_size");
        let drain_delay = self.milliseconds("drain_delay_ms");
        let drain_grace = self.milliseconds("drain_grace_ms");
        let half_close = self.switch("half_close");
        let forwards = self.forwards();
        let refuse_detached = self.refuses_detached();
        let transparent = self.switch("transparent");
        let connections = self.count("connections");
        let report_rejections = self.switch("access_log");
        if transparent {
            self.check_ports(&upstreams);
        }
        let shares = self.shares(machine, upstreams.len(), workers, connections);
        Plan {
            upstreams,
            report_rejections,
            tokenized: Arc::new(tokenizers.iter().map(|file| file.model.clone()).collect()),
            workers,
            trace,
            stall,
            tokens_max,
            connect_timeout,
            head_timeout,
            pool_idle,
            pool_size,
            drain_delay,
            drain_grace,
            half_close,
            forwards,
            refuse_detached,
            transparent,
            connections,
            shares,
        }
    }

    fn pool_idle(&mut self) -> Duration {
        let idle = self.milliseconds("pool_idle_ms");
        if idle >= UVICORN_KEEP_ALIVE {
            let what = "uvicorn, which vLLM and SGLang run on, closes idle connections after 5000 ms, \
                        so a request may use a connection that is just closing";
            let origin = self.value("pool_idle_ms").origin;
            self.warnings.push(Diagnostic::at(&origin, what, "write less than 5000"));
        }
        idle
    }

    fn forwards(&mut self) -> bool {
        let value = self.value("forwarded");
        self.one_of_setting("forwarded", &value) == APPEND
    }

    /// Checks that the port of a redirected connection names one upstream.
    fn check_ports(&mut self, upstreams: &[Upstream]) {
        let port = |upstream: &Upstream| upstream.target.address().port();
        for (index, later) in upstreams.iter().enumerate() {
            let origin = self.value("transparent").origin;
            let Some(of_later) = port(later) else {
                let what =
                    format!("{} is a Unix socket, which no redirected connection addresses", later.name);
                self.errors.push(Diagnostic::at(
                    &origin,
                    what,
                    "name its TCP port, or remove one of the two",
                ));
                continue;
            };
            if let Some(earlier) = upstreams[..index].iter().find(|earlier| port(earlier) == Some(of_later)) {
                let what = format!("{} and {} have the same port {of_later}", earlier.name, later.name);
                let remedy = "give each upstream of redirected connections a port of its own";
                self.errors.push(Diagnostic::at(&origin, what, remedy));
            }
        }
    }
}

/// Uvicorn's default `timeout_keep_alive`.
const UVICORN_KEEP_ALIVE: Duration = Duration::from_secs(5);
